"""Pretraining of the XLNet-style family: permutation language modelling with memory, and what it is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

import torch
from datasets import IterableDataset
from torch import nn
from transformers import PreTrainedModel

from .. import LineageXLNetConfig, LineageXLNetForPreTraining
from .arguments import describe, require
from .corpus import Corpus
from .metrics import prediction_metrics, prediction_sums
from .model_settings import checked_fields, load_pretrained, require_vocabulary
from .objective import Inputs, Objective
from .optimization import layer_wise_learning_rates
from .permutation_collator import DataCollatorForPermutationLM, LanguageModelling
from .row_memory import RowMemory
from .segments import segment_dataset
from .span_masking import IGNORED


@dataclass
class XLNetArguments:
    """The settings of the XLNet-style family."""

    objective: LanguageModelling = field(
        default="permutation",
        metadata=describe(
            "Predict tokens in a random order (permutation), all at once behind mask tokens (masked), or from those "
            "before (causal)."
        ),
    )
    memory: bool = field(default=True, metadata=describe("Remember the segments before."))
    mem_len: int | None = field(
        default=None,
        metadata=describe(
            "Most tokens remembered, by default three quarters of --max_length; with or without memory, second "
            "passages that do not follow the first are not taken from these."
        ),
    )
    reuse_len: int | None = field(
        default=None,
        metadata=describe(
            "Tokens of a segment that the next remembers; by default half of --max_length. With causal all are."
        ),
    )
    num_predict: int | None = field(
        default=None, metadata=describe("Tokens predicted of a segment; by default a sixth of --max_length.")
    )
    perm_size: int | None = field(
        default=None,
        metadata=describe("Tokens ordered among each other; by default each part of a segment as a whole."),
    )
    max_ngram: int | None = field(
        default=None,
        metadata=describe("Longest span that is predicted, in words, by default 5; 0 predicts single tokens."),
    )
    bidirectional: bool = field(default=True, metadata=describe("Read half of the text backwards."))
    next_sentence: bool = field(
        default=False, metadata=describe("Predict whether the second passage follows the first, too.")
    )
    layer_decay: float = field(
        default=1.0,
        metadata=describe("Learning rate of a layer, as a share of that of the layer above it; 1 for the same."),
    )

    def __post_init__(self) -> None:
        choices = get_args(LanguageModelling)
        require(self, ("objective",), lambda value: value in choices, "permutation, masked or causal")
        sizes = ("mem_len", "reuse_len", "num_predict", "perm_size")
        require(self, sizes, lambda value: value is None or value >= 1, "at least 1")
        require(self, ("max_ngram",), lambda value: value is None or value >= 0, "at least 0")
        require(self, ("layer_decay",), lambda value: 0 < value <= 1, "above 0 and at most 1")
        spans = ("reuse_len", "num_predict", "perm_size", "max_ngram", "next_sentence")
        self._refuse(self.objective == "masked", "--objective masked, which has no order", "perm_size")
        self._refuse(self.objective == "causal", "--objective causal, which predicts all tokens of a passage", *spans)

    def _refuse(self, is_pointless: bool, reason: str, *names: str) -> None:
        # not by `in`: 0 equals False
        given = [f"--{name}" for name in names if getattr(self, name) is not None and getattr(self, name) is not False]
        if is_pointless and given:
            raise ValueError(f"{', '.join(given)} does not go with {reason}")


class XLNetObjective(Objective):
    """The loss of `LineageXLNetForPreTraining`, with the memory of each row carried from batch to batch."""

    arguments_class = XLNetArguments
    own: XLNetArguments

    @property
    def reuse_len(self) -> int | None:
        """Tokens of a segment that the next remembers; `None` is all."""
        if self.own.objective == "causal":
            return None
        return self.settings.max_length // 2 if self.own.reuse_len is None else self.own.reuse_len

    @property
    def mem_len(self) -> int:
        """Most tokens remembered."""
        return max(1, 3 * self.settings.max_length // 4) if self.own.mem_len is None else self.own.mem_len

    def create_model(self) -> PreTrainedModel:
        """As in `Objective`."""
        path = self.settings.model_name_or_path
        if path is None:
            model = LineageXLNetForPreTraining(self._config())
        else:
            model = load_pretrained(LineageXLNetForPreTraining, path, **self._own_fields())
        require_vocabulary(model.config, self.tokenizer)
        return self._prepared(model)

    def load_model(self, folder: str) -> PreTrainedModel:
        """As in `Objective`."""
        return self._prepared(LineageXLNetForPreTraining.from_pretrained(folder, dtype=torch.float32))

    def train_dataset(self, num_shards: int) -> IterableDataset:
        """As in `Objective`."""
        rows = self.settings.per_device_train_batch_size
        return self._dataset(self.train_corpus(num_shards * rows), num_shards, rows)

    def validation_datasets(self, num_shards: int) -> dict[str, IterableDataset]:
        """As in `Objective`; the name is that of the objective."""
        rows = self.settings.per_device_eval_batch_size
        corpus = self.validation_corpus(num_shards * rows)
        return {} if corpus is None else {self.own.objective: self._dataset(corpus, num_shards, rows)}

    def collator(self) -> Callable[[list[dict[str, Any]]], Inputs]:
        """As in `Objective`."""
        return DataCollatorForPermutationLM(
            self.tokenizer,
            self.settings.max_length,
            self.reuse_len or 0,
            self.own.objective,
            num_predict=self.own.num_predict,
            perm_size=self.own.perm_size,
            max_ngram=5 if self.own.max_ngram is None else self.own.max_ngram,
            next_sentence=self.own.next_sentence,
            seed=self.settings.seed,
        )

    def counts(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """As in `Objective`."""
        counts = {"prediction_loss": (inputs["labels"] != IGNORED).sum()}
        if self.own.next_sentence:
            counts["next_sentence_loss"] = (inputs["next_sentence_label"] != IGNORED).sum()
        return counts

    def losses(self, model: nn.Module, inputs: Inputs, carried: Any) -> tuple[dict[str, torch.Tensor], Any]:
        """As in `Objective`; the memory is carried."""
        outputs, carried = self._forward(model, inputs, carried)
        losses = {"prediction_loss": outputs.prediction_loss}
        if self.own.next_sentence:
            losses["next_sentence_loss"] = outputs.next_sentence_loss
        return losses, carried

    def evaluate(self, model: nn.Module, inputs: Inputs, carried: Any, name: str) -> tuple[dict[str, Any], Any]:
        """As in `Objective`; the memory is carried."""
        outputs, carried = self._forward(model, inputs, carried)
        labels = inputs["labels"]
        predicted = labels != IGNORED
        sums = prediction_sums("prediction", outputs.logits[predicted], labels[predicted])
        if self.own.next_sentence:
            labels = inputs["next_sentence_label"]
            has_text = labels != IGNORED
            sums |= prediction_sums("next_sentence", outputs.next_sentence_logits[has_text], labels[has_text])
        return sums, carried

    def summarize(self, sums: dict[str, float], name: str) -> dict[str, float]:
        """As in `Objective`: loss, accuracy with its standard error, and count."""
        kinds = ("prediction", "next_sentence")
        return {name: value for kind in kinds for name, value in prediction_metrics(sums, kind, kind).items()}

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """As in `Objective`."""
        groups = super().parameter_groups(model)
        if self.own.layer_decay == 1:
            return groups
        return layer_wise_learning_rates(model, groups, self.settings.learning_rate, self.own.layer_decay)

    def _forward(self, model: nn.Module, inputs: Inputs, carried: Any) -> tuple[Any, Any]:
        inputs = dict(inputs)
        place = inputs.pop("rows"), inputs.pop("segment_numbers")
        if not self.own.memory:
            return model(**inputs, use_mems=False), None
        memory = RowMemory(getattr(model, "module", model).config)
        memory.load_state_dict(carried or {})
        outputs = model(**inputs, **memory.inputs(*place, like=next(model.parameters())))
        memory.update(*place, outputs)
        return outputs, memory.state_dict()

    def _prepared(self, model: LineageXLNetForPreTraining) -> LineageXLNetForPreTraining:
        """Freezes what the objective has no use for, as processes would wait for its gradient."""
        model.transformer.mask_emb.requires_grad_(self.own.objective == "permutation")
        return model

    def _dataset(self, corpus: Corpus, num_shards: int, num_rows: int) -> IterableDataset:
        return segment_dataset(
            corpus,
            self.tokenizer,
            max_length=self.settings.max_length,
            reuse_len=self.reuse_len,
            mem_len=self.mem_len,
            bidirectional=self.own.bidirectional,
            num_rows=num_rows,
            seed=self.settings.seed,
            num_shards=num_shards,
        )

    def _own_fields(self) -> dict[str, Any]:
        """The fields of the configuration that the settings decide."""
        return {
            "attn_type": "uni" if self.own.objective == "causal" else "bi",
            "mem_len": self.mem_len if self.own.memory else None,
            "reuse_len": self.reuse_len,
            "next_sentence": self.own.next_sentence,
        }

    def _config(self) -> LineageXLNetConfig:
        decided = self._own_fields()
        given = checked_fields(self.settings.config_fields, LineageXLNetConfig(), decided)
        tokenizer = self.tokenizer
        own = {
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        }
        return LineageXLNetConfig(**{**own, **given, **decided})


__all__ = ["XLNetArguments", "XLNetObjective"]
