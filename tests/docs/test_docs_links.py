"""Links within the repository lead somewhere, and what the text names is there."""

import ast
import functools
import importlib
import re
from itertools import pairwise

import pytest
from docs_pages import FAMILIES, LANGUAGES, PAGES, ROOT, code_spans, headings, inline, links, tokens_of

from hf_lineage import PUBLIC_NAMES

FOLDERS = ("hf_lineage", "benchmarks", "tokenizer_training", "tests", "docs")
OUR_CLASS = re.compile(r"(Elmo|LineageAlbert|LineageXLNet)[A-Z]\w*")
ISSUE = re.compile(r"https://github\.com/[^/]+/[^/]+/(?:issues|pull)/(\d+)")
DOTTED_NAME = re.compile(rf"({'|'.join(FOLDERS[:3])})(\.\w+)+")


def targets(page: str) -> list[tuple[str, str]]:
    """Page and anchor of each link that stays in the repository."""
    found = []
    for link in links(page):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            target = (ROOT / page).parent / path if path else ROOT / page
            found.append((target.resolve().relative_to(ROOT).as_posix(), anchor))
    return found


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_links_lead_to_files_and_headings(page):
    for target, anchor in targets(page):
        assert (ROOT / target).exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in {heading.anchor for heading in headings(target)}, f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_issues_have_the_number_that_is_said(page):
    for link, text in pairwise(inline(page)):
        if link.type == "link_open" and (number := ISSUE.fullmatch(str(link.attrs["href"]))):
            assert text.content.endswith(f"#{number[1]}")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_in_the_index(page):
    if page.startswith("docs/") and page != "docs/README.md":
        assert page in {target for target, _ in targets("docs/README.md")}


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_the_text_exist(page):
    for span in code_spans(page):
        if not re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./<>-]*", span):
            continue
        for family in FAMILIES if "<family>" in span else ("",):
            path = ROOT / span.replace("<family>", family)
            assert path.exists(), f"{page} names {span}"


@pytest.mark.parametrize("page", PAGES)
def test_names_in_the_text_exist(page):
    for span in code_spans(page):
        name = span.removesuffix("()").removesuffix("(…)")
        if DOTTED_NAME.fullmatch(name):
            assert _resolves(name), f"{page} names {span}"
        elif OUR_CLASS.fullmatch(name):
            assert name in PUBLIC_NAMES or name in _classes(), f"{page} names {span}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_in_a_language_that_is_tested(page):
    assert {token.info for token in tokens_of(page) if token.type == "fence"} <= LANGUAGES
    assert not [token for token in tokens_of(page) if token.type == "code_block"], "indented blocks have no language"


def _resolves(name: str) -> bool:
    module, attribute = name, []
    while True:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            attribute.insert(0, last)
            if not module:
                return False
        else:
            break
    for part in attribute:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@functools.cache
def _classes() -> set[str]:
    """Names of all classes of the package."""
    return {
        node.name
        for path in (ROOT / "hf_lineage").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
