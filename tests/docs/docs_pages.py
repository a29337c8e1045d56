"""The pages of the documentation, and what they consist of."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/*.md")))
    if path.name != "CHANGELOG.md"
]
FAMILIES = ("albert", "elmo", "xlnet")
# What a block may be written in, so that none escapes its test by its name; text and math are not run
LANGUAGES = {"python", "bash", "yaml", "text", "math"}


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        page: Path of its page in the repository.
        line: Where it begins there, from 1.
        language: What stands behind the fence.
        code: What it holds.
    """

    page: str
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Heading:
    """A heading; its anchor is the one that GitHub makes."""

    level: int
    text: str
    anchor: str


@functools.cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@functools.cache
def tokens_of(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text_of(page))


def blocks(language: str, page: str | None = None) -> list[Block]:
    """The blocks of a language, of one page or of all."""
    pages = PAGES if page is None else [page]
    return [
        Block(page, token.map[0] + 1 if token.map else 0, token.info, token.content)
        for page in pages
        for token in tokens_of(page)
        if token.type == "fence" and token.info == language
    ]


def inline(page: str) -> Iterator[Token]:
    """What stands in paragraphs, headings and cells of tables."""
    for token in tokens_of(page):
        yield from token.children or ()


def code_spans(page: str) -> list[str]:
    """What stands in single backticks."""
    return [token.content for token in inline(page) if token.type == "code_inline"]


def links(page: str) -> list[str]:
    """Where links lead, in the order of the page."""
    return [str(token.attrs["href"]) for token in inline(page) if token.type == "link_open"]


def headings(page: str) -> list[Heading]:
    found: list[Heading] = []
    taken: dict[str, int] = {}
    for token, content in pairwise(tokens_of(page)):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in content.children or ())
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        taken[anchor] = number = taken.get(anchor, -1) + 1
        found.append(Heading(int(token.tag[1]), text, f"{anchor}-{number}" if number else anchor))
    return found


def table_rows(page: str) -> list[list[Token]]:
    """Rows of all tables of a page, as the content of their cells."""
    rows: list[list[Token]] = []
    for token, content in pairwise(tokens_of(page)):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(content)
    return rows


def spans_of(cell: Token) -> list[str]:
    """What stands in backticks in a cell."""
    return [child.content for child in cell.children or () if child.type == "code_inline"]
