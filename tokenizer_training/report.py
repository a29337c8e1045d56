"""What a tokenizer makes of a text, in figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

_LINES_PER_BATCH = 1000
_MOST_UNKNOWN = 10


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
        most_unknown: What these stood for most often, with how often.
    """

    vocab_size: int
    lines: int
    words: int
    characters: int
    tokens: int
    unknown: int
    most_unknown: tuple[tuple[str, int], ...]

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are unknown."""
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_word(self) -> float:
        """Also called fertility; says little where words are not parted by spaces."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def characters_per_token(self) -> float:
        """How many characters that are not white space a token stands for."""
        return self.characters / self.tokens if self.tokens else 0.0

    def __str__(self) -> str:
        unknown = ", ".join(f"{text!r} x {count:,}" for text, count in self.most_unknown)
        return (
            f"{self.vocab_size:,} entries; in {self.lines:,} lines {self.tokens_per_word:.3f} tokens a word, "
            f"{self.characters_per_token:.3f} characters a token, {self.unknown_rate:.4%} of {self.tokens:,} tokens "
            f"unknown{f' (most often {unknown})' if unknown else ''}"
        )


def measure_tokenizer(tokenizer: PreTrainedTokenizerBase, lines: Sequence[str]) -> TokenizerReport:
    """Counts what a tokenizer makes of lines of text.

    Args:
        tokenizer: A tokenizer with offsets.
        lines: The text.
    """
    tokens = 0
    unknown: Counter[str] = Counter()
    options = {"add_special_tokens": False, "verbose": False}
    for start in range(0, len(lines), _LINES_PER_BATCH):
        batch = list(lines[start : start + _LINES_PER_BATCH])
        for line, ids in zip(batch, tokenizer(batch, **options)["input_ids"], strict=True):
            tokens += len(ids)
            if tokenizer.unk_token_id in ids:
                offsets = tokenizer(line, return_offsets_mapping=True, **options)["offset_mapping"]
                spans = zip(ids, offsets, strict=True)
                unknown.update(line[first:end] for token, (first, end) in spans if token == tokenizer.unk_token_id)
    return TokenizerReport(
        vocab_size=len(tokenizer),
        lines=len(lines),
        words=sum(len(line.split()) for line in lines),
        characters=sum(len(word) for line in lines for word in line.split()),
        tokens=tokens,
        unknown=unknown.total(),
        most_unknown=tuple(unknown.most_common(_MOST_UNKNOWN)),
    )
