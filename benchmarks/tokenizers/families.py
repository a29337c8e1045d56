"""Every family trained on real text: the same files each time, the same ids after loading, offsets that fit."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from hf_lineage import ElmoTokenizer
from tokenizer_training.byte_bpe import train_gpt_tokenizer
from tokenizer_training.elmo import train_elmo_tokenizer
from tokenizer_training.languages import language_options
from tokenizer_training.report import TokenizerReport
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer
from tokenizer_training.words import train_word_tokenizer

TRAINERS: dict[str, Callable[..., tuple[PreTrainedTokenizerBase, TokenizerReport]]] = {
    "elmo": train_elmo_tokenizer,
    "albert": train_albert_tokenizer,
    "xlnet": train_xlnet_tokenizer,
    "bert": train_bert_tokenizer,
    "gpt": train_gpt_tokenizer,
    "words": train_word_tokenizer,
}
_BY_LANGUAGE = ("albert", "xlnet", "bert")
_EXAMPLES = 3
_LINES_AT_ONCE = 1000


@dataclass(frozen=True)
class FamilyResult:
    """What training a family on a text gave.

    Args:
        name: The family and the language.
        report: Of the lines that were kept out.
        is_repeatable: Whether training twice gave the same files.
        is_reloaded: Whether the loaded tokenizer gives the ids of the trained one.
        lines: Lines whose offsets were looked at.
        tokens: Their tokens.
        mismatches: Kinds of tokens whose offsets lead to other text than theirs, with how often and an example.
    """

    name: str
    report: TokenizerReport
    is_repeatable: bool
    is_reloaded: bool
    lines: int
    tokens: int
    mismatches: dict[str, tuple[int, str]]


def check_family(
    family: str, text: TextLines, lines: Sequence[str], folder: Path, vocab_size: int | None, language: str | None
) -> FamilyResult:
    """Trains a family twice and checks the result.

    Args:
        family: Name of the family.
        text: What to train on.
        lines: What to check the ids and offsets on.
        folder: Where to write the tokenizers.
        vocab_size: Entries of the vocabulary; `None` for the family's default.
        language: As in `tokenizer_training`.

    Raises:
        ValueError: If there is no such family, or it cannot be trained so.
    """
    if family not in TRAINERS:
        raise ValueError(f"the family must be one of {', '.join(TRAINERS)}, got {family!r}")
    options: dict[str, Any] = language_options(language) if family in _BY_LANGUAGE else {}
    if vocab_size is not None:
        options["vocab_size"] = vocab_size
    folders = [folder / f"{family}-{language or 'en'}-{number}" for number in (1, 2)]
    (trained, report), _ = [TRAINERS[family](text, output, **options, overwrite=True) for output in folders]
    loaded = AutoTokenizer.from_pretrained(folders[0])
    is_reloaded = type(loaded) is type(trained)
    tokens, mismatches, examples = 0, Counter[str](), dict[str, str]()
    for start in range(0, len(lines), _LINES_AT_ONCE):
        batch = list(lines[start : start + _LINES_AT_ONCE])
        encoded = loaded(batch, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
        is_reloaded &= encoded["input_ids"] == trained(batch, add_special_tokens=False, verbose=False)["input_ids"]
        for line, ids, offsets in zip(batch, encoded["input_ids"], encoded["offset_mapping"], strict=True):
            tokens += len(ids)
            for kind, example in offset_mismatches(loaded, line, ids, offsets):
                mismatches[kind] += 1
                examples.setdefault(kind, example)
    return FamilyResult(
        f"{family} {language or 'en'}",
        report,
        _contents(folders[0]) == _contents(folders[1]),
        is_reloaded,
        len(lines),
        tokens,
        {kind: (count, examples[kind]) for kind, count in mismatches.most_common()},
    )


def offset_mismatches(
    tokenizer: PreTrainedTokenizerBase, line: str, ids: Sequence[Any], offsets: Sequence[tuple[int, int]]
) -> list[tuple[str, str]]:
    """The tokens whose offsets do not lead to their own text: a kind and an example of each.

    Args:
        tokenizer: The tokenizer.
        line: The text.
        ids: Of its tokens.
        offsets: Of its tokens.
    """
    found = []
    unknown = None if isinstance(tokenizer, ElmoTokenizer) else tokenizer.unk_token_id
    for token, (start, end) in zip(tokenizer.convert_ids_to_tokens(ids), offsets, strict=True):
        if not 0 <= start <= end <= len(line):
            found.append(("out of bounds", f"{token} at {start}:{end} of {len(line)}"))
            continue
        own, there = _text_of(tokenizer, token), _normalized(tokenizer, line[start:end])
        if own != there and not (unknown is not None and token == tokenizer.unk_token):
            found.append((_kind(line[start:end], own, there), f"{token} has {line[start:end]!r}"))
    return found


def render(results: Sequence[FamilyResult]) -> Table:
    """A table of the results."""
    table = Table(title="trained twice, loaded, offsets of every token", title_justify="left", show_lines=True)
    for column in (
        "tokenizer",
        "entries",
        "unknown",
        "same files",
        "same ids",
        "lines, tokens",
        "offsets that differ",
    ):
        table.add_column(column, overflow="fold")
    for result in results:
        kinds = [f"{kind}: {count:,} ({example})" for kind, (count, example) in result.mismatches.items()]
        table.add_row(
            result.name,
            f"{result.report.vocab_size:,}",
            f"{result.report.unknown_rate:.4%}",
            "yes" if result.is_repeatable else "NO",
            "yes" if result.is_reloaded else "NO",
            f"{result.lines:,}, {result.tokens:,}",
            Text("\n".join(kinds) or "none"),
        )
    return table


def _text_of(tokenizer: PreTrainedTokenizerBase, token: str) -> str:
    """What a token stands for, without the signs of its family."""
    if isinstance(tokenizer, ElmoTokenizer):
        return token
    text = tokenizer.convert_tokens_to_string([token])
    return text.removeprefix("##").strip()


def _normalized(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """Text as the tokenizer prepares it."""
    normalizer = None if isinstance(tokenizer, ElmoTokenizer) else tokenizer.backend_tokenizer.normalizer
    if normalizer is not None:
        text = normalizer.normalize_str(text)
    return text.strip()


def _kind(given: str, own: str, there: str) -> str:
    if "\ufffd" in own:
        return "a part of a character's bytes has the whole character"
    if own and own in there:
        return "a part of what one character becomes has the whole character"
    if given in ("`", "'", "``", "''") and own == '"':
        return "two quotes that become one"
    if any(unicodedata.category(char)[0] in "CM" for char in given):
        return "dropped characters beside it"
    return "other"


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
