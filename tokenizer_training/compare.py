"""Two tokenizers side by side on the same text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import regex
from rich.console import Group
from rich.table import Table
from rich.text import Text
from transformers import PreTrainedTokenizerBase

from .report import TokenizerReport, measure_segments
from .segments import Piece, Segments, segment, vocabulary_size

_EXAMPLES = 15
_WORDS = regex.compile(r"\S+")
_BOUNDARY = " · "


class RoundTrip(NamedTuple):
    """How many lines come back when their ids are decoded.

    Args:
        exact: As they were.
        up_to_white_space: As they were, if white space does not count.
    """

    exact: int
    up_to_white_space: int


class Difference(NamedTuple):
    """A stretch of text that two tokenizers cut differently, between two places where both cut."""

    text: str
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What two tokenizers make of a text.

    Args:
        names: The tokenizers.
        reports: Counts of each.
        round_trips: What comes back from the ids of each.
        different_words: Words, as white space parts them, that are cut differently.
        different_lines: Lines with such a word.
        differences: The most frequent stretches that are cut differently, with how often.
    """

    names: tuple[str, str]
    reports: tuple[TokenizerReport, TokenizerReport]
    round_trips: tuple[RoundTrip, RoundTrip]
    different_words: int
    different_lines: int
    differences: tuple[tuple[Difference, int], ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        tokenizers = [
            {
                "name": name,
                **report.as_dict(),
                "round_trip_exact": _share(back.exact, report.lines),
                "round_trip_up_to_white_space": _share(back.up_to_white_space, report.lines),
            }
            for name, report, back in zip(self.names, self.reports, self.round_trips, strict=True)
        ]
        lines, words = self.reports[0].lines, self.reports[0].words
        return {
            "tokenizers": tokenizers,
            "lines": lines,
            "words": words,
            "different_words": self.different_words,
            "different_word_rate": _share(self.different_words, words),
            "different_lines": self.different_lines,
            "different_line_rate": _share(self.different_lines, lines),
            "differences": [
                {"text": found.text, "pieces": [list(found.first), list(found.second)], "count": count}
                for found, count in self.differences
            ],
        }


def compare_tokenizers(
    names: tuple[str, str], tokenizers: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase], lines: Sequence[str]
) -> Comparison:
    """Cuts a text with two tokenizers and counts where they differ.

    Only the places of cuts are compared, not the ids: whether a token begins a word, or letters became small, makes no
    difference.

    Args:
        names: What to call them.
        tokenizers: Tokenizers with offsets, or ELMo's.
        lines: The text.

    Raises:
        ValueError: If a tokenizer has no offsets.
    """
    first, second = (list(segment(tokenizer, lines, name)) for name, tokenizer in zip(names, tokenizers, strict=True))
    differences: Counter[Difference] = Counter()
    different_words = different_lines = 0
    for one, other in zip(first, second, strict=True):
        found = list(_differing(one.pieces, other.pieces))
        differences.update(
            Difference(one.line[start:end], _texts(one.line, cut), _texts(one.line, other_cut))
            for start, end, cut, other_cut in found
        )
        different_lines += bool(found)
        different_words += _count_words(one.line, [(start, end) for start, end, _, _ in found])
    return Comparison(
        names,
        (_report(tokenizers[0], first), _report(tokenizers[1], second)),
        (_round_trip(tokenizers[0], first), _round_trip(tokenizers[1], second)),
        different_words,
        different_lines,
        tuple(sorted(differences.items(), key=lambda item: (-item[1], item[0]))[:_EXAMPLES]),
    )


def render(comparison: Comparison) -> Group:
    """Tables of a comparison, to print."""
    lines, words = comparison.reports[0].lines, comparison.reports[0].words
    figures = Table(title=f"{lines:,} lines, {words:,} words", title_justify="left")
    figures.add_column("")
    for name in comparison.names:
        figures.add_column(Text(name), justify="right", overflow="fold")
    for label, show in _FIGURES.items():
        figures.add_row(label, *map(show, comparison.reports))
    backs = list(zip(comparison.round_trips, comparison.reports, strict=True))
    figures.add_row("lines decoded exactly", *(_percent(back.exact, report.lines) for back, report in backs))
    figures.add_row(
        "… but for white space", *(_percent(back.up_to_white_space, report.lines) for back, report in backs)
    )
    examples = Table(
        title=f"cut differently: {_percent(comparison.different_words, words)} of words, "
        f"{_percent(comparison.different_lines, lines)} of lines",
        title_justify="left",
    )
    examples.add_column("most often", overflow="fold")
    for name in comparison.names:
        examples.add_column(Text(name), overflow="fold")
    examples.add_column("times", justify="right")
    for found, count in comparison.differences:
        cells = (found.text, _BOUNDARY.join(found.first), _BOUNDARY.join(found.second))
        examples.add_row(*(Text(_visible(cell)) for cell in cells), f"{count:,}")
    return Group(figures, examples) if comparison.differences else Group(figures, "No word is cut differently.")


_FIGURES = {
    "entries of the vocabulary": lambda report: f"{report.vocab_size:,}",
    "tokens": lambda report: f"{report.tokens:,}",
    "tokens a word (fertility)": lambda report: f"{report.tokens_per_word:.3f}",
    "characters a token": lambda report: f"{report.characters_per_token:.3f}",
    "unknown tokens": lambda report: _percent(report.unknown, report.tokens),
    "known characters": lambda report: f"{report.character_coverage:.3%}",
    "known words": lambda report: f"{report.word_coverage:.3%}",
}


def _differing(one: Iterable[Piece], other: Iterable[Piece]) -> Iterator[tuple[int, int, list[Piece], list[Piece]]]:
    """Stretches between places where both cut, in which they do not cut the same."""
    marked = sorted(
        (piece.start, piece.end, side, piece)
        for side, pieces in enumerate((one, other))
        for piece in pieces
        if piece.start < piece.end
    )
    position = 0
    while position < len(marked):
        start, end, _, _ = marked[position]
        cuts: tuple[list[Piece], list[Piece]] = ([], [])
        while position < len(marked) and (marked[position][0] < end):
            _, piece_end, side, piece = marked[position]
            end = max(end, piece_end)
            cuts[side].append(piece)
            position += 1
        if [piece[:2] for piece in cuts[0]] != [piece[:2] for piece in cuts[1]]:
            yield start, end, *cuts


def _texts(line: str, pieces: Iterable[Piece]) -> tuple[str, ...]:
    return tuple(line[piece.start : piece.end] for piece in pieces)


def _count_words(line: str, stretches: Sequence[tuple[int, int]]) -> int:
    """How many words have a part in one of the stretches, which are in order and do not overlap."""
    count = index = 0
    for match in _WORDS.finditer(line):
        while index < len(stretches) and stretches[index][1] <= match.start():
            index += 1
        count += index < len(stretches) and stretches[index][0] < match.end()
    return count


def _report(tokenizer: PreTrainedTokenizerBase, segmented: Sequence[Segments]) -> TokenizerReport:
    return measure_segments(vocabulary_size(tokenizer), segmented)


def _round_trip(tokenizer: PreTrainedTokenizerBase, segmented: Sequence[Segments]) -> RoundTrip:
    exact = up_to_white_space = 0
    for line, ids, _ in segmented:
        back = tokenizer.decode(ids)
        exact += back == line
        up_to_white_space += "".join(back.split()) == "".join(line.split())
    return RoundTrip(exact, up_to_white_space)


def _visible(text: str) -> str:
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _percent(part: int, whole: int) -> str:
    return f"{_share(part, whole):.3%}"
