"""Masked language modelling over spans of whole words (ALBERT; Joshi et al. 2019, https://arxiv.org/abs/1907.10529)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import get_worker_info
from transformers import BatchEncoding, PreTrainedTokenizerBase

from .token_replacement import TokenReplacement
from .whole_words import WholeWords

IGNORED = -100
_PADDED = ("input_ids", "attention_mask", "token_type_ids", "special_tokens_mask")
_DRAW = ("example_id", "epoch_seed")


@dataclass
class DataCollatorForSpanMasking:
    """Pads examples to a batch and masks spans of whole words in it, anew each time.

    In each sequence spans of 1 to `max_ngram` words are chosen until `masked_fraction` of its tokens are covered. The
    length n of a span has the probability p(n) = (1/n) / sum(1/k) for k = 1..`max_ngram`; its first word is drawn from
    those not tried yet. A start at which the span would overlap one chosen before is passed over, the length is kept
    for the next start (else long spans, which overlap more often, would be rarer than p(n) says). Where fewer than
    `max_ngram` words remain, p is renormalised to those lengths. A span that exceeds the budget loses words from
    its end. Spans hold no special token, so they do not reach over `[SEP]`. Each token of a span becomes the mask
    token, a random token or stays, with the probabilities 0.8, 0.1 and 0.1; a random token is any of the vocabulary
    that was not added to it and is not special (google-research/albert, `create_masked_lm_predictions`; Lan et al.
    2020, eq. 1). `WholeWords` tells what a word is.

    The draw for an example that has an `"example_id"` depends on `seed`, the example's `"epoch_seed"` (0 where it has
    none) and its `"example_id"` alone, not on the batch, its place in it, or the process: `sentence_pair_dataset`
    gives both, so each epoch masks anew and nothing has to be saved to resume. With an `"example_id"` alone an example
    is masked the same way each time, as is wanted for evaluation. Examples without one are drawn for by a generator of
    the collator, in a worker of a `DataLoader` by one seeded with the worker's seed too.

    Args:
        tokenizer (`PreTrainedTokenizerBase`):
            Any tokenizer of transformers with a mask token and a padding token.
        masked_fraction (`float`, defaults to 0.15):
            Share of tokens to predict: `max(1, round(masked_fraction * length))` of a sequence, whose length counts
            special tokens but not padding. Fewer if each word has been tried before.
        max_ngram (`int`, defaults to 3):
            Most words in a span; 1 is whole-word masking.
        max_predictions (`int` or `None`, defaults to `None`):
            Most tokens to predict in a sequence; `None` is no limit, so that the number scales with the length.
        mask_replace_prob (`float`, defaults to 0.8):
            Share of the tokens to predict that become the mask token.
        random_replace_prob (`float`, defaults to 0.1):
            Share that becomes a random token. The remaining ones stay as they are.
        seed (`int`, defaults to 0):
            At least 0.
        pad_to_multiple_of (`int` or `None`, defaults to `None`):
            Pads to a multiple of this.

    Returns:
        A `BatchEncoding` of int64 tensors: `input_ids`, `attention_mask`, `token_type_ids` if the examples have them,
        and `labels`, all `(batch, tokens)`, the labels being the original id where one is to be predicted, else -100;
        and each further column of numbers as `(batch,)`, such as `sentence_order_label`.

    Raises:
        ValueError: If an argument is out of range, the tokenizer lacks a token, or an example is not as described.

    Example:

    ```python
    >>> collator = DataCollatorForSpanMasking(tokenizer)
    >>> batch = collator([tokenizer("The first sentence.", "The second."), tokenizer("A longer third sentence.")])
    >>> batch.labels.shape == batch.input_ids.shape
    True
    ```
    """

    tokenizer: PreTrainedTokenizerBase
    masked_fraction: float = 0.15
    max_ngram: int = 3
    max_predictions: int | None = None
    mask_replace_prob: float = 0.8
    random_replace_prob: float = 0.1
    seed: int = 0
    pad_to_multiple_of: int | None = None
    _own: tuple[tuple[int, ...], np.random.Generator] | None = field(default=None, init=False, repr=False)

    def __post_init__(self):
        for name in ("mask_token", "pad_token"):
            if getattr(self.tokenizer, name) is None:
                raise ValueError(f"the tokenizer must have a {name}, got {type(self.tokenizer).__name__} without one")
        if not 0 < self.masked_fraction <= 1:
            raise ValueError(f"masked_fraction must be above 0 and at most 1, got {self.masked_fraction}")
        for name in ("max_ngram", "max_predictions", "pad_to_multiple_of"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        self._words = WholeWords(self.tokenizer)
        special = set(self.tokenizer.all_special_ids)
        self._special = np.zeros(len(self._words), dtype=bool)
        self._special[[number for number in special if number < len(self._words)]] = True
        self._replacement = TokenReplacement(self.tokenizer, self.mask_replace_prob, self.random_replace_prob)
        weights = 1 / np.arange(1, self.max_ngram + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> BatchEncoding:
        """Makes a batch of examples; see the class."""
        batch, special = self._padded(features)
        input_ids = batch["input_ids"]
        self._check_ids(input_ids)
        inside = (batch["attention_mask"] > 0) & ~self._special[input_ids] & ~special
        lengths = batch["attention_mask"].sum(axis=1)
        words = _find_words(self._words.starts(input_ids, inside), inside, self.max_ngram)
        labels = np.full_like(input_ids, IGNORED)
        for row, feature in enumerate(features):
            generator = self._generator(feature)
            spans = self._draw_spans(words[row], self._budget(int(lengths[row])), generator)
            if spans:
                masked = np.concatenate([np.arange(span.start, span.end) for span in spans])
                labels[row, masked] = input_ids[row, masked]
                input_ids[row, masked] = self._replacement(input_ids[row, masked], generator)
        tensors = {name: torch.from_numpy(values) for name, values in batch.items()}
        return BatchEncoding({**tensors, "labels": torch.from_numpy(labels), **_scalars(features)})

    def _padded(self, features: Sequence[Mapping[str, Any]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        if not features or any("input_ids" not in feature for feature in features):
            raise ValueError("examples must have input_ids, got one without, or none at all")
        names = [name for name in _PADDED if name in features[0]]
        for feature in features:
            if [name for name in _PADDED if name in feature] != names:
                raise ValueError(f"all examples must have {', '.join(names)} as the first, got {', '.join(feature)}")
        batch = self.tokenizer.pad(
            {name: [feature[name] for feature in features] for name in names},
            pad_to_multiple_of=self.pad_to_multiple_of,
            return_attention_mask=True,
            return_tensors="np",
            verbose=False,
        )
        arrays = {name: np.asarray(values).astype(np.int64) for name, values in batch.items()}
        special = arrays.pop("special_tokens_mask", np.zeros_like(arrays["input_ids"]))
        return arrays, special > 0

    def _check_ids(self, input_ids: np.ndarray) -> None:
        if input_ids.min() < 0 or input_ids.max() >= len(self._words):
            raise ValueError(
                f"input_ids must be below {len(self._words)}, as the tokenizer's are, got "
                f"{input_ids.min()} to {input_ids.max()}"
            )

    def _budget(self, length: int) -> int:
        budget = max(1, round(length * self.masked_fraction))
        return budget if self.max_predictions is None else min(budget, self.max_predictions)

    def _draw_spans(self, words: "_Words", budget: int, generator: np.random.Generator) -> list["Span"]:
        count = len(words.starts)
        order = generator.permutation(count).tolist()
        draws = generator.random((2, count))
        lengths = iter((np.searchsorted(self._cumulative[:-1], draws[0], side="right") + 1).tolist())
        length = next(lengths, 0)
        within = self._cumulative[words.remaining - 1]
        near_end = np.searchsorted(self._cumulative, draws[1] * within, side="right") + 1
        near_end = np.minimum(near_end, words.remaining).tolist()
        starts, ends, remaining = words.starts.tolist(), words.ends.tolist(), words.remaining.tolist()
        taken = bytearray(count)
        spans: list[Span] = []
        for word in order:
            if not budget:
                break
            whole = remaining[word] == self.max_ngram
            drawn = length if whole else near_end[word]
            kept = drawn
            while kept and ends[word + kept - 1] - starts[word] > budget:
                kept -= 1
            if not kept or 1 in taken[word : word + kept]:
                continue
            taken[word : word + kept] = b"\1" * kept
            span = Span(starts[word], ends[word + kept - 1], drawn, kept, remaining[word])
            budget -= span.end - span.start
            spans.append(span)
            if whole:
                length = next(lengths, 0)
        return spans

    def _generator(self, feature: Mapping[str, Any]) -> np.random.Generator:
        if "example_id" in feature:
            epoch = _mixed(self.seed, int(feature.get("epoch_seed", 0)))
            key = np.array([epoch, int(feature["example_id"]) % 2**64], dtype=np.uint64)
            return np.random.Generator(np.random.Philox(key=key))
        worker = get_worker_info()
        seeds = (self.seed,) if worker is None else (self.seed, worker.seed)
        if self._own is None or self._own[0] != seeds:
            self._own = seeds, np.random.default_rng(seeds)
        return self._own[1]


class Span(NamedTuple):
    """Tokens `start:end` of a sequence; how many words were drawn, kept, and there (at most `max_ngram`)."""

    start: int
    end: int
    drawn: int
    kept: int
    remaining: int


class _Words(NamedTuple):
    """Words of a sequence: where they start and end, and how many there are from each to the next gap, at most n."""

    starts: np.ndarray
    ends: np.ndarray
    remaining: np.ndarray


def _find_words(starts: np.ndarray, inside: np.ndarray, most: int) -> list[_Words]:
    batch, tokens = inside.shape
    # one long row, with a gap after each sequence
    gaps = np.pad(~inside, ((0, 0), (0, 1)), constant_values=True).ravel()
    first = np.flatnonzero(np.pad(starts, ((0, 0), (0, 1))).ravel())
    borders = np.sort(np.concatenate([first, np.flatnonzero(gaps)]))
    last = borders[np.searchsorted(borders, first, side="right")]
    gap_number = np.cumsum(gaps)[first]
    remaining = np.searchsorted(gap_number, gap_number, side="right") - np.arange(len(first))
    rows = np.searchsorted(first, np.arange(batch + 1) * (tokens + 1))
    words = []
    for row, (begin, end) in enumerate(pairwise(rows)):
        offset = row * (tokens + 1)
        words.append(
            _Words(first[begin:end] - offset, last[begin:end] - offset, np.minimum(remaining[begin:end], most))
        )
    return words


def _scalars(features: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    scalars = {}
    for name in features[0]:
        if name in _PADDED or name in _DRAW:
            continue
        values = np.asarray([feature.get(name) for feature in features])
        if name == "labels" or values.ndim != 1 or values.dtype.kind not in "iufb":
            raise ValueError(f"examples may have, besides tokens, one number of each kind, got {name}: {values[0]!r}")
        scalars[name] = torch.from_numpy(values)
    return scalars


@lru_cache(maxsize=64)
def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


__all__ = ["DataCollatorForSpanMasking", "Span"]
