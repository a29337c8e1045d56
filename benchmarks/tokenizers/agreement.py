"""Whether a tokenizer gives the ids of SentencePiece itself."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hf_lineage import LineageAlbertTokenizer, LineageXLNetTokenizer

TOKENIZERS = {"albert": LineageAlbertTokenizer, "xlnet": LineageXLNetTokenizer}
_SAME_SUM = 1e-3  # sums of some hundred scores in 32 bits


@dataclass(frozen=True)
class Difference:
    """A line with other ids than SentencePiece's, the pieces of both that differ, and why."""

    line: str
    found: list[str]
    expected: list[str]
    reason: str


@dataclass(frozen=True)
class Agreement:
    """How many lines have SentencePiece's ids.

    Args:
        name: The tokenizer.
        lines: Number of lines.
        differences: Those with other ids than SentencePiece gives to the text that the tokenizer's own normalizer
            prepares, where the names of special tokens in a text are text.
        named_special_tokens: How many more differ by default, where such a name is the special token itself.
        prepared_otherwise: How many more the code of the original models prepares in another way, so that
            SentencePiece's ids are others: it keeps the combining marks of class 0, such as U+FE0F of emoji.
    """

    name: str
    lines: int
    differences: list[Difference]
    named_special_tokens: int
    prepared_otherwise: int

    @property
    def share(self) -> float:
        """Share of the lines whose ids are equal."""
        return 1 - len(self.differences) / self.lines


def measure_agreement(family: str, folder: Path, lines: Sequence[str]) -> Agreement:
    """Compares the ids of lines with those of SentencePiece.

    Args:
        family: `"albert"` or `"xlnet"`.
        folder: A tokenizer, with its `spiece.model`.
        lines: The text.

    Raises:
        ValueError: If there is no such family or file.
    """
    import sentencepiece

    if family not in TOKENIZERS:
        raise ValueError(f"the family must be one of {', '.join(TOKENIZERS)}, got {family!r}")
    model = folder / "spiece.model"
    if not model.is_file():
        raise ValueError(f"there is no {model}")
    tokenizer = TOKENIZERS[family].from_pretrained(folder)
    # without the table of the pieces, which SentencePiece applies itself
    case = {name: getattr(tokenizer, name) for name in ("do_lower_case", "keep_accents")}
    normalizer = TOKENIZERS[family](**case).backend_tokenizer.normalizer
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    differences, named, otherwise = [], 0, 0
    for line in lines:
        expected = _original_ids(processor, normalizer.normalize_str(" ".join(line.split())))
        found = tokenizer(line, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        if found != expected:
            differences.append(_difference(processor, line, found, expected))
            continue
        named += tokenizer(line, add_special_tokens=False, verbose=False)["input_ids"] != expected
        otherwise += _original_ids(processor, _originally_prepared(line, **case)) != expected
    return Agreement(f"{family} {folder.name}", len(lines), differences, named, otherwise)


def render(results: Sequence[Agreement]) -> Group:
    """Tables of how many lines agree and of those that do not."""
    figures = Table(title="lines with SentencePiece's ids", title_justify="left")
    figures.add_column("tokenizer", overflow="fold")
    columns = ("lines", "equal", "different", "more with special tokens' names", "more as the original prepares text")
    for column in columns:
        figures.add_column(column, justify="right")
    others = Table(title="the others", title_justify="left", show_lines=True)
    for column in ("tokenizer", "line", "pieces", "SentencePiece's", "why"):
        others.add_column(column, overflow="fold")
    for result in results:
        numbers = (len(result.differences), result.named_special_tokens, result.prepared_otherwise)
        counts = (f"{result.share:.4%}", *map(str, numbers))
        figures.add_row(Text(result.name), f"{result.lines:,}", *counts)
        for found in result.differences:
            cells = (result.name, repr(found.line), " ".join(found.found), " ".join(found.expected), found.reason)
            others.add_row(*map(Text, cells))
    return Group(figures, others) if others.row_count else Group(figures)


def _originally_prepared(line: str, do_lower_case: bool, keep_accents: bool) -> str:
    """The line as the originals give it to SentencePiece (albert, `tokenization.py`; xlnet, `prepro_utils.py`)."""
    text = " ".join(line.split()).replace("``", '"').replace("''", '"')
    if not keep_accents:
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return text.lower() if do_lower_case else text


def _original_ids(processor: Any, text: str) -> list[int]:
    """Ids of a prepared text, where a piece that ends in a digit and a comma is cut again without the comma."""
    pieces: list[str] = []
    for piece in processor.encode(text, out_type=str):
        if not (len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()):
            pieces.append(piece)
            continue
        again = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
        if piece[0] != "▁" and again[0][0] == "▁":
            again = again[1:] if len(again[0]) == 1 else [again[0][1:], *again[1:]]
        pieces += [*again, ","]
    return [processor.piece_to_id(piece) for piece in pieces]


def _difference(processor: Any, line: str, found: Sequence[int], expected: Sequence[int]) -> Difference:
    same_start = _common(found, expected)
    same_end = _common(found[same_start:][::-1], expected[same_start:][::-1])
    parts = [list(ids[same_start : len(ids) - same_end]) for ids in (found, expected)]
    pieces = [list(map(processor.id_to_piece, ids)) for ids in parts]
    sums = [sum(map(processor.get_score, ids)) for ids in parts]
    if processor.unk_id() not in parts[0] + parts[1] and abs(sums[0] - sums[1]) < _SAME_SUM:
        reason = "another cut with the same sum of scores"
    elif _is_cut_again_inside(pieces):
        reason = "a number before a comma: the original cuts only the piece with the comma again, not the number"
    else:
        reason = "not explained"
    return Difference(line, pieces[0], pieces[1], reason)


def _is_cut_again_inside(pieces: Sequence[Sequence[str]]) -> bool:
    """Whether both cut the same digits, as when a piece such as `4,` of `784,` is cut again by itself."""
    digits = ["".join(part).lstrip("▁") for part in pieces]
    return digits[0] == digits[1] and digits[0].isdigit()


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of what both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
