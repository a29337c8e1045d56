"""Words as the sub-words of any tokenizer of transformers, and which word each of them belongs to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Piece:
    """A sentence, or a part of it, as a model reads it.

    Args:
        inputs: The tokenizer's fields, lists of integers.
        words: The word that each token belongs to, `None` for special tokens.
        num_words: Number of words, those without tokens included.
    """

    inputs: dict[str, list[int]]
    words: list[int | None]
    num_words: int


class SubwordReader:
    """Makes pieces of sentences.

    Args:
        tokenizer: Any tokenizer of sub-words.
        max_length: Tokens of the longest piece, special tokens included; `None` for no limit.

    Raises:
        ValueError: If no word fits into `max_length`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None):
        self.tokenizer, self.max_length = tokenizer, max_length
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token  # a mask hides it
        if max_length is not None and max_length <= tokenizer.num_special_tokens_to_add():
            raise ValueError(f"the model reads only {max_length} tokens, which special tokens fill")

    def read(self, sentences: Sequence[list[str]]) -> list[list[Piece]]:
        """Makes of each sentence, none of which is empty, one piece or, if it is too long, several."""
        result = []
        for words, piece in zip(sentences, self._pieces(sentences), strict=True):
            if self.max_length is None or len(piece.words) <= self.max_length:
                result.append([piece])
            else:
                result.append(self._pieces(self._parts(words, piece), cut=True))
        return result

    def _parts(self, words: list[str], piece: Piece) -> list[list[str]]:
        """Cuts a sentence into parts that are short enough, or of one word."""
        assert self.max_length is not None
        counts = Counter(piece.words)
        room = self.max_length - counts.pop(None, 0)
        parts: list[list[str]] = [[]]
        left = room
        for number, word in enumerate(words):
            if parts[-1] and counts[number] > left:
                parts.append([])
                left = room
            parts[-1].append(word)
            left -= counts[number]
        return parts

    def _pieces(self, sentences: Sequence[list[str]], cut: bool = False) -> list[Piece]:
        pieces = self._encoded(sentences, cut)
        unknown = self.tokenizer.unk_token
        if unknown is None:
            return pieces
        for number, (words, piece) in enumerate(zip(sentences, pieces, strict=True)):
            present = set(piece.words)
            if len(present - {None}) < len(words):
                known = [word if place in present else unknown for place, word in enumerate(words)]
                (pieces[number],) = self._encoded([known], cut)
        return pieces

    def _encoded(self, sentences: Sequence[list[str]], cut: bool) -> list[Piece]:
        if not self.tokenizer.is_fast:
            return [self._word_by_word(words, cut) for words in sentences]
        limit: dict[str, Any] = {"truncation": True, "max_length": self.max_length} if cut else {}
        encoded = self.tokenizer(list(sentences), is_split_into_words=True, verbose=False, **limit)
        return [
            Piece({name: values[number] for name, values in encoded.items()}, encoded.word_ids(number), len(words))
            for number, words in enumerate(sentences)
        ]

    def _word_by_word(self, words: list[str], cut: bool) -> Piece:
        """For tokenizers that do not tell which word a token belongs to."""
        tokenizer = self.tokenizer
        owned = [
            (token_id, number)
            for number, word in enumerate(words)
            for token_id in tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
        ]
        if cut and self.max_length is not None:
            owned = owned[: self.max_length - tokenizer.num_special_tokens_to_add()]
        ids = [token_id for token_id, _ in owned]
        owners = iter([number for _, number in owned])
        inputs = tokenizer.prepare_for_model(ids, verbose=False)
        mask = tokenizer.get_special_tokens_mask(ids)
        return Piece(dict(inputs), [None if special else next(owners) for special in mask], len(words))


def load_tokenizer(name_or_path: str) -> PreTrainedTokenizerBase:
    """Loads a tokenizer that is to read single words."""
    tokenizer = AutoTokenizer.from_pretrained(name_or_path)
    if getattr(tokenizer, "add_prefix_space", True) is False:
        # byte-level tokenizers tell a word by the space before it
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, add_prefix_space=True)
    return tokenizer


__all__ = ["Piece", "SubwordReader", "load_tokenizer"]
