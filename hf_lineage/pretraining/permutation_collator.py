"""Batches for permutation language modelling, and for the objectives that it is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, get_args

import numpy as np
import torch
from transformers import BatchEncoding, PreTrainedTokenizerBase

from .permutation_lm import permutation_mask, sample_targets, segment_mask
from .segments import end_of_document
from .span_masking import IGNORED
from .token_replacement import TokenReplacement
from .whole_words import WholeWords

LanguageModelling = Literal["permutation", "masked", "causal"]


@dataclass
class DataCollatorForPermutationLM:
    """Makes batches of the segments of `segment_dataset`, drawing what is predicted and in which order.

    - `"permutation"`: spans of whole words are the targets (`sample_targets`), half of them among the reused tokens;
      the order of each half is drawn (`permutation_mask`), and the first half does not see the second
      (`segment_mask`), so that what is remembered of it tells nothing of what is predicted in the second. All ids stay
      as they are.
    - `"masked"`: the same targets are hidden behind `<mask>` (80 %) or a random token (10 %) or left (10 %), as for
      BERT, and predicted all at once. It is the row "DAE + Transformer-XL" of the paper's Table 6.
    - `"causal"`: each token is predicted from those before, for a model with `attn_type="uni"`.

    What is drawn for an example depends on `seed`, its `"epoch_seed"` and `"example_id"` alone: each epoch draws
    targets and orders anew (the original keeps its targets), wherever an example is collated.

    Args:
        tokenizer (`PreTrainedTokenizerBase`):
            Any tokenizer with a padding token, and for `"masked"` a mask token.
        max_length (`int`):
            Tokens of a segment.
        reuse_len (`int`):
            Tokens of its first part. Not for `"causal"`.
        objective (`str`, defaults to `"permutation"`):
            One of the three.
        num_predict (`int` or `None`, defaults to `None`):
            Targets of a full segment; `None` is a sixth of `max_length`. Shorter segments have fewer, in proportion.
        perm_size (`int` or `None`, defaults to `None`):
            Tokens that are ordered among each other, a divisor of the lengths of both parts; `None` orders each part
            as a whole.
        max_ngram (`int`, defaults to 5):
            Longest span, in words; 0 draws single tokens, wherever words begin (the paper's "- span-based pred").
        next_sentence (`bool`, defaults to `False`):
            Whether `next_sentence_label` is given.
        seed (`int`, defaults to 0):
            At least 0.

    Returns:
        A `BatchEncoding` of `input_ids`, `attention_mask`, `token_type_ids` (int64, `(batch, max_length)`),
        `directions`, `rows` and `segment_numbers` (int64, `(batch,)`), and of `labels`, int64, -100 where nothing is
        predicted: `(batch, max_length)`, for `"permutation"` `(batch, num_predict)` with `target_mapping`, the
        positions, -1 for none. But for `"causal"` there is a `perm_mask`, bool, `(batch, max_length, max_length)`.

    Raises:
        ValueError: If an argument is out of range, or the tokenizer lacks a token.
    """

    tokenizer: PreTrainedTokenizerBase
    max_length: int
    reuse_len: int = 0
    objective: LanguageModelling = "permutation"
    num_predict: int | None = None
    perm_size: int | None = None
    max_ngram: int = 5
    next_sentence: bool = False
    seed: int = 0

    def __post_init__(self):
        if self.objective not in get_args(LanguageModelling):
            raise ValueError(f"objective must be 'permutation', 'masked' or 'causal', got {self.objective!r}")
        for name in ("pad_token", *(["mask_token"] if self.objective == "masked" else [])):
            if getattr(self.tokenizer, name) is None:
                raise ValueError(f"the tokenizer must have a {name}, got {type(self.tokenizer).__name__} without one")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        if self.objective == "causal":
            if self.next_sentence:
                raise ValueError("next_sentence=True goes with segments of two parts, which 'causal' does not have")
            return
        self._check_parts()
        self._words = WholeWords(self.tokenizer)
        self._functional = np.array([self.tokenizer.sep_token_id, self.tokenizer.cls_token_id])
        special = {*self.tokenizer.all_special_ids, end_of_document(self.tokenizer)}
        special -= {self.tokenizer.unk_token_id, None}
        self._special = np.array(sorted(special))
        if self.objective == "masked":
            self._replacement = TokenReplacement(self.tokenizer)

    def _check_parts(self) -> None:
        if not 1 <= self.reuse_len < self.max_length:
            raise ValueError(
                f"reuse_len must be from 1 to max_length - 1 = {self.max_length - 1}, got {self.reuse_len}"
            )
        parts = (self.reuse_len, self.max_length - self.reuse_len)
        if self.perm_size is not None and (self.perm_size < 1 or any(part % self.perm_size for part in parts)):
            raise ValueError(f"perm_size must divide both parts of a segment, {parts}, got {self.perm_size}")
        if self.num_predict is None:
            self.num_predict = self.max_length // 6
        if not 1 <= self.num_predict <= self.max_length:
            raise ValueError(f"num_predict must be from 1 to max_length = {self.max_length}, got {self.num_predict}")
        if self.max_ngram < 0:
            raise ValueError(f"max_ngram must be at least 0, got {self.max_ngram}")

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> BatchEncoding:
        """Makes a batch of examples; see the class."""
        examples = [self._causal(each) if self.objective == "causal" else self._two_parts(each) for each in features]
        batch = {name: torch.from_numpy(np.stack([each[name] for each in examples])) for name in examples[0]}
        columns = {"direction": "directions", "row": "rows", "segment": "segment_numbers"}
        if self.next_sentence:
            columns["next_sentence_label"] = "next_sentence_label"
        for column, name in columns.items():
            batch[name] = torch.tensor([each[column] for each in features])
        return BatchEncoding(batch)

    def _causal(self, feature: Mapping[str, Any]) -> dict[str, np.ndarray]:
        tokens = np.asarray(feature["input_ids"], dtype=np.int64)
        number = max(len(tokens) - 1, 0)
        example = self._padding()
        example["input_ids"][:number] = tokens[:-1]
        example["attention_mask"][:number] = 1
        example["labels"] = np.full(self.max_length, IGNORED)
        example["labels"][:number] = tokens[1:]
        return example

    def _two_parts(self, feature: Mapping[str, Any]) -> dict[str, np.ndarray]:
        reused, total = feature["reused"], len(feature["input_ids"])
        places = np.concatenate([np.arange(reused), self.reuse_len + np.arange(total - reused)])
        if total - reused > self.max_length - self.reuse_len or reused > self.reuse_len:
            raise ValueError(
                f"an example must have at most {self.reuse_len} reused tokens and {self.max_length} in all, got "
                f"{reused} and {total}"
            )
        example = self._padding()
        example["input_ids"][places] = feature["input_ids"]
        example["token_type_ids"][places] = feature["token_type_ids"]
        example["attention_mask"][places] = 1
        generator = np.random.default_rng([self.seed, feature.get("epoch_seed", 0), feature["example_id"]])
        halves = (slice(0, self.reuse_len), slice(self.reuse_len, self.max_length))
        targets = np.concatenate([self._targets(example, half, feature["direction"], generator) for half in halves])
        if self.objective == "masked":
            self._hide(example, targets, generator)
        else:
            self._order(example, targets, halves, generator)
        return example

    def _padding(self) -> dict[str, np.ndarray]:
        zeros = np.zeros(self.max_length, dtype=np.int64)
        return {
            "input_ids": np.full_like(zeros, self.tokenizer.pad_token_id),
            "attention_mask": zeros.copy(),
            "token_type_ids": zeros.copy(),
        }

    def _targets(
        self, example: dict[str, np.ndarray], half: slice, direction: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Draws the targets of a part, reading forward where the text is reversed."""
        input_ids, real = example["input_ids"][half][::direction], example["attention_mask"][half][::direction] > 0
        can_be_target = real & ~np.isin(input_ids, self._special)
        assert self.num_predict is not None
        share = real.sum() / self.max_length
        number = (ceil if half.start == 0 else int)(round(self.num_predict * share, 6))
        if self.max_ngram:
            starts = self._words.starts(input_ids, can_be_target)
            targets = sample_targets(starts, can_be_target, number, generator, self.max_ngram)
        else:
            possible = np.flatnonzero(can_be_target)
            chosen = generator.choice(possible, size=min(number, len(possible)), replace=False)
            targets = np.isin(np.arange(len(input_ids)), chosen)
        return targets[::direction]

    def _hide(self, example: dict[str, np.ndarray], targets: np.ndarray, generator: np.random.Generator) -> None:
        input_ids = example["input_ids"]
        example["labels"] = np.where(targets, input_ids, IGNORED)
        input_ids[targets] = self._replacement(input_ids[targets], generator)
        parts = [np.zeros((size, size), dtype=bool) for size in (self.reuse_len, self.max_length - self.reuse_len)]
        example["perm_mask"] = segment_mask(*parts)

    def _order(
        self,
        example: dict[str, np.ndarray],
        targets: np.ndarray,
        halves: tuple[slice, slice],
        generator: np.random.Generator,
    ) -> None:
        functional = np.isin(example["input_ids"], self._functional)
        masks = [
            permutation_mask(targets[half], functional[half], self.perm_size or half.stop - half.start, generator)
            for half in halves
        ]
        example["perm_mask"] = segment_mask(*masks)
        assert self.num_predict is not None
        positions = np.flatnonzero(targets)
        example["target_mapping"] = np.full(self.num_predict, -1)
        example["target_mapping"][: len(positions)] = positions
        example["labels"] = np.full(self.num_predict, IGNORED)
        example["labels"][: len(positions)] = example["input_ids"][positions]


__all__ = ["DataCollatorForPermutationLM", "LanguageModelling"]
