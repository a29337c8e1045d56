"""Segments of documents for models with a memory: what a row of a batch reads next (Yang et al. 2019, section 3.2).

The layout is that of the original's `data_utils.py` (https://github.com/zihangdai/xlnet).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from datasets import Features, IterableDataset, List, Value
from transformers import PreTrainedTokenizerBase

from .block_stream import Block, example_id
from .corpus import Corpus
from .row_stream import row_stream
from .tokenized import tokenize_documents

EMPTY = {
    "input_ids": [],
    "token_type_ids": [],
    "reused": 0,
    "direction": 1,
    "next_sentence_label": -100,
    "example_id": 0,
}
FEATURES = Features(
    {
        "input_ids": List(Value("int32")),
        "token_type_ids": List(Value("int8")),
        "reused": Value("int64"),
        "direction": Value("int64"),
        "next_sentence_label": Value("int64"),
        "example_id": Value("int64"),
        "epoch_seed": Value("int64"),
        "row": Value("int64"),
        "segment": Value("int64"),
    }
)


def segment_dataset(
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int = 512,
    reuse_len: int | None = 256,
    mem_len: int = 384,
    bidirectional: bool = True,
    num_rows: int,
    seed: int = 0,
    num_shards: int = 64,
) -> IterableDataset:
    """Streams the segments that rows of batches read, each row one after the other.

    The documents of a block are one text, `<eod>` behind each where the tokenizer has it. With a `reuse_len`, a
    segment is `reused a <sep> b <sep> <cls>`: the next `reuse_len` tokens of the text, which the following segment
    remembers; then `a`, how the text goes on, up to the end of a sentence, and `b`, which with probability 1/2 is what
    follows `a` (`next_sentence_label` 0), else other sentences of the block (1); where they are too long, tokens are
    dropped from the end of the longer. The following segment begins behind the reused tokens, so what is `a` or `b`
    here is reused there. Without a `reuse_len` a segment is `max_length + 1` tokens of the text, of which the last is
    the first of the following: for a causal model, which is to predict each token from those before.

    With `bidirectional`, half of the blocks, drawn anew in each epoch, are read from the end (`direction` -1); the
    original reverses half of the rows instead.

    Not as in the original: `b` is never taken from where the segment reads already nor from the `mem_len` tokens
    before, which are remembered; where no sentence ends in the room for `a` and `b`, a sentence is cut, so that the
    labels are balanced; the last segments of a block are shorter, where the original drops the end of the text.

    Args:
        corpus (`Corpus`):
            The documents.
        tokenizer (`PreTrainedTokenizerBase`):
            Any tokenizer; for a `reuse_len` with `sep_token` and `cls_token`.
        max_length (`int`, defaults to 512):
            Tokens of a segment.
        reuse_len (`int` or `None`, defaults to 256):
            Tokens that the next segment remembers; leaves room for 5 more, or `None`.
        mem_len (`int`, defaults to 384):
            Most tokens that the model remembers.
        bidirectional (`bool`, defaults to `True`):
            Whether half of the text is read backwards.
        num_rows (`int`):
            Rows of a batch; see `row_stream`, which gives the examples.
        seed (`int`, defaults to 0):
            At least 0.
        num_shards (`int`, defaults to 64):
            Parts that processes and workers may share.

    Returns:
        `datasets.IterableDataset` with the columns `input_ids`, `token_type_ids` (0 up to the first `<sep>`, then 1, 2
        for `<cls>`), `reused` (how many of the tokens are), `direction`, `next_sentence_label`, and `example_id`,
        `epoch_seed`, `row` and `segment` of `row_stream`.

    Raises:
        ValueError: If an argument is out of range, or the tokenizer lacks a token.
    """
    maker: TwoPartSegments | ContinuousSegments
    if reuse_len is None:
        maker = ContinuousSegments(tokenizer, max_length, bidirectional)
    else:
        maker = TwoPartSegments(tokenizer, max_length, reuse_len, mem_len, bidirectional)
    return row_stream(
        corpus, maker, empty=EMPTY, features=FEATURES, seed=seed, num_shards=num_shards, num_rows=num_rows
    )


class _Text:
    """The tokens of a block in the direction of reading, and where its sentences begin.

    Attributes:
        tokens: `(tokens,)` int64.
        starts: Places where a sentence begins, ascending.
        direction: 1, or -1 if the tokens are reversed.
    """

    def __init__(
        self, block: Block, tokenizer: PreTrainedTokenizerBase, bidirectional: bool, generator: np.random.Generator
    ):
        end = end_of_document(tokenizer)
        sentences = [
            [*segment, *([end] if end is not None and segment is segments[-1] else [])]
            for _, segments in tokenize_documents(tokenizer, block.documents)
            for segment in segments
        ]
        self.direction = -1 if bidirectional and generator.integers(2) else 1
        if self.direction == -1:
            sentences = [sentence[::-1] for sentence in reversed(sentences)]
        self.tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        self.starts = lengths.cumsum() - lengths

    def __len__(self) -> int:
        return len(self.tokens)

    def starts_within(self, begin: int, end: int) -> np.ndarray:
        """Where sentences begin behind `begin` and before `end`."""
        low, high = np.searchsorted(self.starts, [begin + 1, end])
        return self.starts[low:high]

    def next_start(self, place: int) -> int:
        """The first begin of a sentence at a place or behind it, or the end."""
        index = int(np.searchsorted(self.starts, place))
        return int(self.starts[index]) if index < len(self.starts) else len(self)


class TwoPartSegments:
    """Makes segments `reused a <sep> b <sep> <cls>`; see `segment_dataset`.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): The tokenizer.
        max_length (`int`): Tokens of a segment.
        reuse_len (`int`): Of these, tokens that the next segment remembers.
        mem_len (`int`): Most tokens that the model remembers.
        bidirectional (`bool`): Whether half of the blocks are read from the end.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, max_length: int, reuse_len: int, mem_len: int, bidirectional: bool
    ):
        for name in ("cls_token", "sep_token"):
            if getattr(tokenizer, name) is None:
                raise ValueError(f"the tokenizer must have a {name}, got {type(tokenizer).__name__} without one")
        if not 1 <= reuse_len <= max_length - 5:
            raise ValueError(f"reuse_len must be from 1 to max_length - 5 = {max_length - 5}, got {reuse_len}")
        if mem_len < 0:
            raise ValueError(f"mem_len must be at least 0, got {mem_len}")
        self.tokenizer, self.bidirectional, self.mem_len = tokenizer, bidirectional, mem_len
        self.reuse_len, self.space = reuse_len, max_length - reuse_len - 3

    def __call__(self, block: Block, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Gives the segments of a block, drawn by the generator."""
        text = _Text(block, self.tokenizer, self.bidirectional, generator)
        begin = number = 0
        while len(text) - begin >= 3:
            # a text that is too short for more than the reused tokens leaves some for the rest
            reused = min(self.reuse_len, (len(text) - begin) // 2) if begin == 0 else self.reuse_len
            if len(text) - begin - reused < 2:
                return
            first, second, label = self._two_parts(text, begin, begin + reused, generator)
            yield self._example(block, number, text, (begin, begin + reused), first, second, label)
            begin, number = begin + reused, number + 1

    def _two_parts(
        self, text: _Text, begin: int, middle: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """What follows from `middle` on, and what follows that or stands elsewhere, of at most `space` tokens."""
        end = text.next_start(min(middle + self.space, len(text)))
        cuts = text.starts_within(middle, min(middle + self.space, len(text)))
        cut = int(generator.choice(cuts)) if len(cuts) else end
        known = begin - self.mem_len
        elsewhere = np.concatenate([text.starts[text.starts < known], text.starts[text.starts >= end]])
        is_other = bool(len(elsewhere) and generator.integers(2))
        if is_other:
            second_begin = int(generator.choice(elsewhere))
            second_end = text.next_start(second_begin + max(1, self.space - (cut - middle)))
            if second_begin < known:
                second_end = min(second_end, known)
        else:
            if cut == end:  # no sentence ends within the space
                cut = int(generator.integers(middle + 1, min(end, middle + self.space)))
            second_begin, second_end = cut, end
        lengths = _trimmed(cut - middle, second_end - second_begin, self.space)
        first = text.tokens[middle : middle + lengths[0]]
        return first, text.tokens[second_begin : second_begin + lengths[1]], int(is_other)

    def _example(
        self,
        block: Block,
        number: int,
        text: _Text,
        reused: tuple[int, int],
        first: np.ndarray,
        second: np.ndarray,
        label: int,
    ) -> dict[str, Any]:
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        kept = text.tokens[reused[0] : reused[1]]
        return {
            "input_ids": [*kept.tolist(), *first.tolist(), sep, *second.tolist(), sep, cls],
            "token_type_ids": [0] * (len(kept) + len(first) + 1) + [1] * (len(second) + 1) + [2],
            "reused": len(kept),
            "direction": text.direction,
            "next_sentence_label": label,
            "example_id": example_id(block.source, block.index, number),
        }


class ContinuousSegments:
    """Makes segments of consecutive tokens, each with the first token of the next; see `segment_dataset`.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): The tokenizer.
        max_length (`int`): Tokens of a segment, less that one.
        bidirectional (`bool`): Whether half of the blocks are read from the end.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int, bidirectional: bool):
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        self.tokenizer, self.max_length, self.bidirectional = tokenizer, max_length, bidirectional

    def __call__(self, block: Block, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Gives the segments of a block, drawn by the generator."""
        text = _Text(block, self.tokenizer, self.bidirectional, generator)
        for number, begin in enumerate(range(0, len(text) - 1, self.max_length)):
            tokens = text.tokens[begin : begin + self.max_length + 1].tolist()
            yield {
                **EMPTY,
                "input_ids": tokens,
                "token_type_ids": [0] * len(tokens),
                "reused": len(tokens) - 1,
                "direction": text.direction,
                "example_id": example_id(block.source, block.index, number),
            }


def end_of_document(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id of `<eod>`, `None` for a tokenizer that does not have it."""
    return tokenizer.get_vocab().get("<eod>")


def _trimmed(first: int, second: int, space: int) -> tuple[int, int]:
    """Lengths after tokens of the longer part, of equal ones the second, were dropped until both fit."""
    excess = first + second - space
    if excess <= 0:
        return first, second
    smaller = min(first, second)
    if 2 * smaller >= space:
        return space - space // 2, space // 2
    return (space - second, second) if first > second else (first, space - first)


__all__ = ["ContinuousSegments", "TwoPartSegments", "end_of_document", "segment_dataset"]
