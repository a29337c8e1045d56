"""Pairs of text for sentence-order (ALBERT) and next-sentence prediction (BERT), streamed from documents."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from datasets import Features, IterableDataset, List, Value
from transformers import PreTrainedTokenizerBase

from .block_stream import Block, block_stream, example_id
from .corpus import Corpus, CorpusInput, Document
from .tokenized import TokenizedDocument, tokenize_documents
from .whole_words import WholeWords

Objective = Literal["sop", "nsp", "none"]
LABELS: dict[str, str | None] = {"sop": "sentence_order_label", "nsp": "next_sentence_label", "none": None}
_SPECIAL_TOKENS = {"sop": 3, "nsp": 3, "none": 2}


def sentence_pair_dataset(
    inputs: CorpusInput | Sequence[CorpusInput] | Corpus,
    tokenizer: PreTrainedTokenizerBase,
    *,
    objective: Objective = "sop",
    max_length: int = 512,
    short_sequence_probability: float = 0.1,
    seed: int = 0,
    num_shards: int = 64,
    text_column: str = "text",
    block_size: int | None = None,
) -> IterableDataset:
    """Streams pretraining examples `[CLS] a [SEP] b [SEP]` made of the segments of documents.

    A chunk of consecutive segments of a document is filled up to a target length, `max_length` less the special tokens
    or, with `short_sequence_probability`, any length from 2 to that; it is cut in two at a random boundary between
    segments; where it is too long, tokens are dropped at random from the front or the back of the longer part
    (Lan et al. 2020, https://arxiv.org/abs/1909.11942; google-research/albert, `create_pretraining_data.py`). Then

    - `"sop"` swaps the parts with probability 1/2: `sentence_order_label` is 1 if they are swapped;
    - `"nsp"` exchanges the second parts of two chunks of different documents with probability 1/2:
      `next_sentence_label` is 1 if the second part is not what follows the first;
    - `"none"` makes one part, `[CLS] a [SEP]`, of the tokens of a document without a gap.

    What is done otherwise than in the original, so that nothing but the text tells the label:

    - The segment that fills a chunk is a long one more often than not, and it is always the last: in the original the
      longer part is more often the one that comes later in the text. Here half of the documents, drawn anew in each
      epoch, are filled from their end.
    - A pair needs two segments; the original makes a chunk of one into a pair with another document, so that a part of
      the task is to recognize topics. Here a chunk goes on until it has two, and a last segment that would be alone
      takes one from the chunk before, or joins it if there is none to spare. Only where there is no other place, words
      are parted: a segment longer than an example is cut into pieces of at most half of one, and a document of one
      segment is cut in two, at the beginning of a word; the broken sentence then helps to tell the order, so give
      sentences as segments. A document of a single word gives no pair.
    - Second parts that may be exchanged have nearly the same length, come from the same block of the corpus, and are
      both cut to the length of the shorter, whether they are then exchanged or not. Each text is used once. Where a
      block has too little of other documents, a part is taken from one of them, or from the document before the block,
      for a second time.
    - Target lengths are drawn for each chunk, not each document.

    All of it is drawn from (`seed`, epoch, block of the corpus): the examples are the same for any number of shards,
    workers and processes; see `block_stream` for order, sharding, `set_epoch` and resuming.

    Args:
        inputs (file, folder, `datasets.Dataset`, `datasets.IterableDataset`, a list of these, or `Corpus`):
            The documents; see `Corpus`. With a `Corpus`, `text_column` and `block_size` are its own.
        tokenizer (`PreTrainedTokenizerBase`):
            Any tokenizer that has `cls_token` and `sep_token`. Names of special tokens in the text are read as text.
        objective (`str`, defaults to `"sop"`):
            `"sop"`, `"nsp"` or `"none"`.
        max_length (`int`, defaults to 512):
            Most tokens of an example, special tokens included. At least 5, 3 for `"none"`.
        short_sequence_probability (`float`, defaults to 0.1):
            Share of chunks with a random target length.
        seed (`int`, defaults to 0):
            At least 0.
        num_shards (`int`, defaults to 64):
            Parts that processes and workers may share; a multiple of the number of processes is best.
        text_column (`str`, defaults to `"text"`):
            Column of the text in datasets.
        block_size (`int` or `None`, defaults to `None`):
            Bytes of text in a block; see `Corpus`.

    Returns:
        `datasets.IterableDataset` with the columns `input_ids`, `token_type_ids` (0 up to the first `[SEP]`, then 1),
        the label as above, and `example_id` (a hash of the document's place in the corpus and the number of the chunk
        in it) and `epoch_seed` (depends on the epoch alone), which tell `DataCollatorForSpanMasking` what to draw.

    Raises:
        ValueError: If an argument is out of range, an input is missing or not what it should be, the tokenizer lacks a
            token, or, while iterating, if `"nsp"` finds a single document in the corpus.
    """
    if objective not in LABELS:
        raise ValueError(f"objective must be 'sop', 'nsp' or 'none', got {objective!r}")
    shortest = 5 if LABELS[objective] else 3
    if max_length < shortest:
        raise ValueError(f"max_length must be at least {shortest} for {objective!r}, got {max_length}")
    if not 0 <= short_sequence_probability <= 1:
        raise ValueError(f"short_sequence_probability must be between 0 and 1, got {short_sequence_probability}")
    for name in ("cls_token", "sep_token"):
        if getattr(tokenizer, name) is None:
            raise ValueError(f"the tokenizer must have a {name}, got {type(tokenizer).__name__} without one")
    if not isinstance(inputs, Corpus):
        inputs = Corpus(inputs, text_column=text_column, block_size=block_size)
    features = {"input_ids": List(Value("int32")), "token_type_ids": List(Value("int8"))}
    if label := LABELS[objective]:
        features[label] = Value("int64")
    features |= {"example_id": Value("int64"), "epoch_seed": Value("int64")}
    return block_stream(
        inputs,
        PairMaker(tokenizer, objective, max_length, short_sequence_probability),
        features=Features(features),
        seed=seed,
        num_shards=num_shards,
    )


@dataclass
class Pair:
    """Two parts of a chunk, as token ids, and where they are from: the document, and the number of the chunk in it."""

    document: Document
    chunk: int
    first: list[int]
    second: list[int]
    label: int = 0


class PairMaker:
    """Makes the examples of a block of documents, as `sentence_pair_dataset` describes.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): The tokenizer.
        objective (`str`): `"sop"`, `"nsp"` or `"none"`.
        max_length (`int`): Most tokens of an example.
        short_sequence_probability (`float`): Share of chunks with a random target length.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        objective: Objective,
        max_length: int,
        short_sequence_probability: float,
    ):
        self.tokenizer = tokenizer
        self.objective = objective
        self.label_name = LABELS[objective] or ""
        self.max_tokens = max_length - _SPECIAL_TOKENS[objective]
        self.short_sequence_probability = short_sequence_probability
        self.words = WholeWords(tokenizer)
        self.cls_token_id: int = tokenizer.cls_token_id
        self.sep_token_id: int = tokenizer.sep_token_id

    def __call__(self, block: Block, generator: np.random.Generator) -> list[dict[str, Any]]:
        """Returns the examples of a block, drawn by the generator."""
        documents = tokenize_documents(self.tokenizer, block.documents)
        if self.objective == "none":
            return [
                self._example(document, number, tokens)
                for document, segments in documents
                for number, tokens in enumerate(self._stream(segments, generator))
            ]
        pairs = [pair for document, segments in documents for pair in self._pairs(document, segments, generator)]
        if self.objective == "nsp":
            self._exchange(pairs, documents, block, generator)
        else:
            _swap(pairs, generator)
        return [self._example(pair.document, pair.chunk, pair.first, pair.second, pair.label) for pair in pairs]

    def _example(
        self, document: Document, chunk: int, first: list[int], second: list[int] | None = None, label: int = 0
    ) -> dict[str, Any]:
        example: dict[str, Any] = {
            "input_ids": [self.cls_token_id, *first, self.sep_token_id],
            "token_type_ids": [0] * (len(first) + 2),
        }
        if second is not None:
            example["input_ids"] += [*second, self.sep_token_id]
            example["token_type_ids"] += [1] * (len(second) + 1)
            example[self.label_name] = label
        example["example_id"] = example_id(document.file, document.position, chunk)
        return example

    def _target(self, generator: np.random.Generator) -> int:
        if generator.random() < self.short_sequence_probability and self.max_tokens > 2:
            return int(generator.integers(2, self.max_tokens + 1))
        return self.max_tokens

    def _word_starts(self, tokens: list[int]) -> np.ndarray:
        """Places in a segment, but the first, where it can be cut."""
        starts = self.words.starts(np.array(tokens), np.ones(len(tokens), dtype=bool))
        return np.flatnonzero(starts[1:]) + 1

    def _stream(self, segments: list[list[int]], generator: np.random.Generator) -> list[list[int]]:
        """Cuts the tokens of a document at the last word that begins within the target length."""
        tokens = _joined(segments)
        if not tokens:
            return []
        starts = self._word_starts(tokens)
        pieces, begin = [], 0
        while begin < len(tokens):
            end = begin + self._target(generator)
            if end < len(tokens):
                last = int(np.searchsorted(starts, end, side="right")) - 1
                if last >= 0 and starts[last] > begin:
                    end = int(starts[last])
            pieces.append(tokens[begin:end])
            begin = end
        return pieces

    def _pairs(self, document: Document, segments: list[list[int]], generator: np.random.Generator) -> list[Pair]:
        segments = [piece for segment in segments for piece in self._cut_up(segment)]
        backward = bool(generator.integers(2))
        if backward:
            segments.reverse()
        chunks = self._chunks([len(segment) for segment in segments], generator)
        if backward:
            segments.reverse()
            chunks = [range(len(segments) - chunk.stop, len(segments) - chunk.start) for chunk in reversed(chunks)]
        pairs: list[Pair] = []
        for chunk in chunks:
            if parts := self._two_parts(segments[chunk.start : chunk.stop], generator):
                pairs.append(Pair(document, len(pairs), *_truncated(*parts, self.max_tokens, generator)))
        return pairs

    def _cut_up(self, segment: list[int]) -> list[list[int]]:
        """Cuts a segment that is too long into about equal pieces, at words that begin near the equal places."""
        if len(segment) <= self.max_tokens:
            return [segment]
        longest = self.max_tokens // 2
        starts = np.array([0, *self._word_starts(segment), len(segment)])
        number = -(-len(segment) // longest)
        equal = np.arange(1, number) * len(segment) / number
        after = np.searchsorted(starts, equal)
        nearest = np.where(equal - starts[after - 1] <= starts[after] - equal, starts[after - 1], starts[after])
        cuts = np.where(np.abs(nearest - equal) <= longest / 4, nearest, np.rint(equal).astype(int)).tolist()
        return [segment[begin:end] for begin, end in pairwise([0, *cuts, len(segment)]) if begin < end]

    def _chunks(self, lengths: list[int], generator: np.random.Generator) -> list[range]:
        """Groups segments, in the order given, into chunks of at least two that reach their target lengths."""
        chunks: list[range] = []
        begin = filled = 0
        target = self._target(generator)
        for index, length in enumerate(lengths):
            filled += length
            if filled >= target and index > begin:
                chunks.append(range(begin, index + 1))
                begin, filled = index + 1, 0
                target = self._target(generator)
        if chunks and begin == len(lengths) - 1:
            before = chunks.pop()
            begin = begin - 1 if len(before) > 2 else before.start
            if begin > before.start:
                chunks.append(range(before.start, begin))
        if begin < len(lengths):
            chunks.append(range(begin, len(lengths)))
        return chunks

    def _two_parts(
        self, segments: list[list[int]], generator: np.random.Generator
    ) -> tuple[list[int], list[int]] | None:
        if len(segments) > 1:
            cut = int(generator.integers(1, len(segments)))
            return _joined(segments[:cut]), _joined(segments[cut:])
        starts = self._word_starts(segments[0])
        if not len(starts):
            return None
        cut = int(generator.choice(starts))
        return segments[0][:cut], segments[0][cut:]

    def _exchange(
        self, pairs: list[Pair], documents: list[TokenizedDocument], block: Block, generator: np.random.Generator
    ) -> None:
        """Gives half of the pairs the second part of a pair of another document, in place."""
        by_length = sorted((pairs[place] for place in generator.permutation(len(pairs))), key=_second_length)
        parts = [(pair.document, pair.second) for pair in by_length]
        lonely: list[Pair] = []  # all of one document
        for pair in by_length:
            if lonely and lonely[-1].document.identity != pair.document.identity:
                other = lonely.pop()
                length = min(len(pair.second), len(other.second))
                pair.second, other.second = (_shortened(p.second, length, generator) for p in (pair, other))
                if generator.integers(2):
                    pair.second, other.second = other.second, pair.second
                    pair.label = other.label = 1
            else:
                lonely.append(pair)
        if lonely:
            whole = [(document, segment) for document, segments in documents for segment in segments]
            known = lonely[0].document.identity
            donors = [[tokens for document, tokens in some if document.identity != known] for some in (parts, whole)]
            self._borrow(lonely, donors[0] or donors[1] or self._parts_of_neighbour(block, generator), generator)

    def _borrow(self, pairs: list[Pair], donors: list[list[int]], generator: np.random.Generator) -> None:
        """Gives half of the pairs one of these second parts, which stay where they are too."""
        if not donors:  # a neighbour without a single token
            return
        donors = sorted(donors, key=len)
        for pair in pairs:
            nearest = bisect_left(donors, len(pair.second), key=len)
            donor = donors[min(nearest, len(donors) - 1)]
            pair.label = int(generator.integers(2))
            length = min(len(pair.second), len(donor))
            pair.second = _shortened(donor if pair.label else pair.second, length, generator)

    def _parts_of_neighbour(self, block: Block, generator: np.random.Generator) -> list[list[int]]:
        neighbour = block.neighbour()
        if neighbour is None:
            raise ValueError("next-sentence prediction needs at least two documents, got a corpus of one")
        ((_, segments),) = tokenize_documents(self.tokenizer, [neighbour])
        pairs = self._pairs(neighbour, segments, generator)
        return [pair.second for pair in pairs] or segments


def _joined(segments: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(segments))


def _swap(pairs: list[Pair], generator: np.random.Generator) -> None:
    for pair, label in zip(pairs, generator.integers(2, size=len(pairs)).tolist(), strict=True):
        if label:
            pair.first, pair.second, pair.label = pair.second, pair.first, 1


def _second_length(pair: Pair) -> int:
    return len(pair.second)


def _truncated(
    first: list[int], second: list[int], longest: int, generator: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Drops tokens one by one from the longer part, of equal ones from either, until both fit."""
    excess = len(first) + len(second) - longest
    if excess <= 0:
        return first, second
    longer, shorter = max(len(first), len(second)), min(len(first), len(second))
    if excess <= longer - shorter:
        kept = {longer: longer - excess, shorter: shorter}
        return _shortened(first, kept[len(first)], generator), _shortened(second, kept[len(second)], generator)
    half, odd = divmod(longest, 2)
    more = odd * int(generator.integers(2))
    return _shortened(first, half + more, generator), _shortened(second, half + odd - more, generator)


def _shortened(tokens: list[int], length: int, generator: np.random.Generator) -> list[int]:
    """Drops tokens one by one from the front or the back, at random."""
    if len(tokens) <= length:
        return tokens
    begin = int(generator.binomial(len(tokens) - length, 0.5))
    return tokens[begin : begin + length]


__all__ = ["LABELS", "Objective", "Pair", "PairMaker", "sentence_pair_dataset"]
