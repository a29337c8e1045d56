"""What a tokenizer makes of a text, in figures, and the files that tell it."""

import heapq
import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from .segments import Piece, Segments, segment, vocabulary_size
from .text import TextLines

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

REPORT_NAME = "tokenizer_report"
_MOST_UNKNOWN = 10
_LONGEST_SPLIT = 10
_SHOWN = 100  # characters of a text; the JSON file has all of it
_WORDS = regex.compile(r"\S+")
_RUNS = regex.compile(r"[\p{L}\p{M}\p{N}]+")


@dataclass(frozen=True)
class TokenizerReport:
    """Counts of a text and its tokens.

    Args:
        vocab_size: Entries of the vocabulary.
        lines: Lines of the text.
        words: Words of it, as white space parts them.
        characters: Characters of it that are not white space.
        tokens: Tokens that it becomes, special ones not added.
        unknown: How many of these are the unknown token.
        unknown_words: Words of which a part is unknown.
        unknown_characters: Characters that became the unknown token.
        most_unknown: What the unknown tokens stood for most often, with how often.
        longest_split: The longest different runs of letters and digits that became several tokens, with the text of
            each token. Every token of a character that became several has all of it.
    """

    vocab_size: int
    lines: int
    words: int
    characters: int
    tokens: int
    unknown: int
    unknown_words: int
    unknown_characters: int
    most_unknown: tuple[tuple[str, int], ...]
    longest_split: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are unknown."""
        return _ratio(self.unknown, self.tokens)

    @property
    def word_coverage(self) -> float:
        """Share of the words of which no part is unknown."""
        return 1 - _ratio(self.unknown_words, self.words)

    @property
    def character_coverage(self) -> float:
        """Share of the characters that did not become the unknown token."""
        return 1 - _ratio(self.unknown_characters, self.characters)

    @property
    def tokens_per_word(self) -> float:
        """Also called fertility; says little where words are not parted by spaces."""
        return _ratio(self.tokens, self.words)

    @property
    def characters_per_token(self) -> float:
        """How many characters that are not white space a token stands for."""
        return _ratio(self.characters, self.tokens)

    def __str__(self) -> str:
        unknown = ", ".join(f"{_shortened(text)!r} x {count:,}" for text, count in self.most_unknown)
        return (
            f"{self.vocab_size:,} entries; in {self.lines:,} lines {self.tokens_per_word:.3f} tokens a word, "
            f"{self.characters_per_token:.3f} characters a token, {self.unknown_rate:.4%} of {self.tokens:,} tokens "
            f"unknown{f' (most often {unknown})' if unknown else ''}"
        )

    def as_dict(self) -> dict[str, Any]:
        """All counts and ratios, as JSON has them."""
        figures = asdict(self)
        most_unknown, longest_split = figures.pop("most_unknown"), figures.pop("longest_split")
        ratios = ("unknown_rate", "word_coverage", "character_coverage", "tokens_per_word", "characters_per_token")
        return {
            **figures,
            **{name: round(getattr(self, name), 6) for name in ratios},
            "most_unknown": [{"text": text, "count": count} for text, count in most_unknown],
            "longest_split": [{"text": text, "pieces": list(pieces)} for text, pieces in longest_split],
        }


def save_report(tokenizer: "PreTrainedTokenizerBase", text: TextLines, folder: Path) -> TokenizerReport:
    """Measures a tokenizer on the lines of its text that were kept out, and writes the report beside it.

    The files, `tokenizer_report.json` and `.md`, depend on the tokenizer and the text alone.

    Args:
        tokenizer: The tokenizer.
        text: What it was trained on.
        folder: Where the tokenizer is saved.
    """
    measured = text.measured()
    report = measure_tokenizer(tokenizer, measured.lines)
    name = type(tokenizer).__name__
    contents = {"tokenizer": name, "measured_on": str(measured), "is_held_out": measured.is_held_out}
    data = json.dumps({**contents, **report.as_dict()}, ensure_ascii=False, indent=2)
    (folder / f"{REPORT_NAME}.json").write_text(f"{data}\n", encoding="utf-8", newline="\n")
    markdown = "\n".join(_markdown(name, str(measured), report))
    (folder / f"{REPORT_NAME}.md").write_text(f"{markdown}\n", encoding="utf-8", newline="\n")
    return report


def measure_tokenizer(tokenizer: "PreTrainedTokenizerBase", lines: Sequence[str]) -> TokenizerReport:
    """Counts what a tokenizer makes of lines of text.

    Args:
        tokenizer: A tokenizer with offsets, or ELMo's.
        lines: The text.
    """
    return measure_segments(vocabulary_size(tokenizer), segment(tokenizer, lines, "measure"))


def measure_segments(vocab_size: int, segmented: Iterator[Segments] | Sequence[Segments]) -> TokenizerReport:
    """Counts lines that are cut into tokens already.

    Args:
        vocab_size: Entries of the tokenizer's vocabulary.
        segmented: The lines.
    """
    lines = words = characters = tokens = unknown_words = unknown_characters = 0
    unknown: Counter[str] = Counter()
    longest = _LongestSplit()
    for line, _, pieces in segmented:
        parted = _WORDS.findall(line)
        lines += 1
        words += len(parted)
        characters += sum(map(len, parted))
        tokens += len(pieces)
        if not all(piece.is_known for piece in pieces):
            missing = [piece for piece in pieces if not piece.is_known]
            unknown.update(line[piece.start : piece.end] for piece in missing)
            unknown_words += _touched([match.span() for match in _WORDS.finditer(line)], missing)
            unknown_characters += sum(len("".join(line[start:end].split())) for start, end, _ in missing)
        longest.add(line, pieces)
    return TokenizerReport(
        vocab_size=vocab_size,
        lines=lines,
        words=words,
        characters=characters,
        tokens=tokens,
        unknown=unknown.total(),
        unknown_words=unknown_words,
        unknown_characters=unknown_characters,
        # of equally frequent ones, the first in Unicode
        most_unknown=tuple(heapq.nsmallest(_MOST_UNKNOWN, unknown.items(), key=lambda item: (-item[1], item[0]))),
        longest_split=longest.found(),
    )


class _LongestSplit:
    """The longest different runs of letters and digits that several tokens make up."""

    def __init__(self) -> None:
        self._pieces: dict[str, tuple[str, ...]] = {}
        self._shortest = 0  # what is shorter does not count any more

    def add(self, line: str, pieces: Sequence[Piece]) -> None:
        if max(map(len, _RUNS.findall(line)), default=0) < self._shortest:
            return
        starts = [piece.start for piece in pieces]
        for match in _RUNS.finditer(line):
            start, end = match.span()
            if end - start < self._shortest or match[0] in self._pieces:
                continue
            before = max(bisect_left(starts, start) - 1, 0)
            inside = tuple(_inside(line, pieces, before, start, end))
            if len(inside) > 1:
                self._pieces[match[0]] = inside
        if len(self._pieces) > 100 * _LONGEST_SPLIT:
            self._pieces = dict(self.found())
            self._shortest = min(map(len, self._pieces))

    def found(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The longest first; of equally long ones, the first in Unicode."""
        return tuple(heapq.nsmallest(_LONGEST_SPLIT, self._pieces.items(), key=lambda item: (-len(item[0]), item[0])))


def _inside(line: str, pieces: Sequence[Piece], first: int, start: int, end: int) -> Iterator[str]:
    """The parts of the tokens, from the first that may reach it, that lie in a run of characters."""
    for index in range(first, len(pieces)):
        piece = pieces[index]
        if piece.start >= end:
            return
        if piece.start < piece.end and piece.end > start:
            yield line[max(piece.start, start) : min(piece.end, end)]


def _touched(spans: Sequence[tuple[int, int]], pieces: Sequence[Piece]) -> int:
    """How many of the spans have a part in one of the pieces."""
    ends = [end for _, end in spans]
    touched: set[int] = set()
    for piece in pieces:
        index = bisect_right(ends, piece.start)
        while index < len(spans) and spans[index][0] < piece.end:
            touched.add(index)
            index += 1
    return len(touched)


def _markdown(name: str, measured_on: str, report: TokenizerReport) -> Iterator[str]:
    yield from (f"# {name}", "", f"Measured on {measured_on}.", "", "| | |", "| --- | ---: |")
    yield f"| entries of the vocabulary | {report.vocab_size:,} |"
    yield f"| lines, words, characters | {report.lines:,}, {report.words:,}, {report.characters:,} |"
    yield f"| tokens | {report.tokens:,} |"
    yield f"| tokens a word | {report.tokens_per_word:.3f} |"
    yield f"| characters a token | {report.characters_per_token:.3f} |"
    yield f"| known characters | {report.character_coverage:.4%} |"
    yield f"| known words | {report.word_coverage:.4%} |"
    yield f"| unknown tokens | {report.unknown:,} ({report.unknown_rate:.4%}) |"
    if report.most_unknown:
        yield from ("", "Most often unknown:", "", "| text | times |", "| --- | ---: |")
        yield from (f"| {_cell(text)} | {count:,} |" for text, count in report.most_unknown)
    if report.longest_split:
        yield from ("", "Longest runs of letters and digits that become several tokens:", "")
        yield from ("| text | tokens |", "| --- | --- |")
        yield from (f"| {_cell(text)} | {_cell(' · '.join(pieces))} |" for text, pieces in report.longest_split)


def _cell(text: str) -> str:
    """Text that a Markdown table shows as it is, the beginning of a long one."""
    shown = _shortened(text)
    printable = "".join(character if character.isprintable() else f"U+{ord(character):04X}" for character in shown)
    return "".join(f"\\{character}" if character in "\\|`*_<>[]" else character for character in printable)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
