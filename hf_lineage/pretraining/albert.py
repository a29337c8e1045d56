"""Pretraining of the ALBERT-style family: masked spans, and the order of sentences or whether they belong together."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import torch
from datasets import IterableDataset
from torch import nn
from transformers import PreTrainedModel

from .. import LineageAlbertConfig, LineageAlbertForPreTraining
from .arguments import describe, require
from .corpus import Corpus
from .metrics import prediction_metrics, prediction_sums
from .model_settings import checked_fields, load_pretrained, require_vocabulary
from .objective import Inputs, Objective
from .sentence_pairs import LABELS, sentence_pair_dataset
from .span_masking import DataCollatorForSpanMasking

SentenceObjective = Literal["sop", "nsp", "none"]
_IGNORED = -100


@dataclass
class AlbertArguments:
    """The settings of the ALBERT-style family."""

    sentence_objective: SentenceObjective = field(
        default="sop",
        metadata=describe(
            "Predict whether two passages are swapped (sop), whether the second follows the first (nsp), or neither."
        ),
    )
    validation_objectives: list[str] | None = field(
        default=None,
        metadata=describe("Which of sop, nsp and none the held-out text is made into; by default the one trained."),
    )
    masked_fraction: float = field(default=0.15, metadata=describe("Share of the tokens that are predicted."))
    max_predictions: int | None = field(
        default=None,
        metadata=describe("Most tokens of an example that are predicted; by default all of that share."),
    )
    max_ngram: int = field(default=3, metadata=describe("Longest span that is masked, in words."))
    sentence_loss_weight: float = field(
        default=1.0,
        metadata=describe("Factor of the sentence loss in the total; 1 as in the original, more for short trainings."),
    )
    short_sequence_probability: float = field(
        default=0.1, metadata=describe("Share of the examples that are shorter than --max_length.")
    )

    def __post_init__(self) -> None:
        choices = get_args(SentenceObjective)
        require(self, ("sentence_objective",), lambda value: value in choices, "sop, nsp or none")
        require(
            self,
            ("validation_objectives",),
            lambda values: values is None or (values and {*values} <= {*choices} and len({*values}) == len(values)),
            "different ones of sop, nsp and none",
        )
        require(self, ("masked_fraction",), lambda value: 0 < value <= 1, "above 0 and at most 1")
        require(self, ("max_predictions",), lambda value: value is None or value >= 1, "at least 1")
        require(self, ("sentence_loss_weight",), lambda value: 0 < value < math.inf, "a number above 0")
        require(self, ("max_ngram",), lambda value: value >= 1, "at least 1")
        require(self, ("short_sequence_probability",), lambda value: 0 <= value <= 1, "between 0 and 1")


class AlbertObjective(Objective):
    """Masked-LM and sentence losses of `LineageAlbertForPreTraining`, under the names of its outputs."""

    arguments_class = AlbertArguments

    def create_model(self) -> PreTrainedModel:
        """As in `Objective`."""
        path = self.settings.model_name_or_path
        if path is None:
            model = LineageAlbertForPreTraining(self._config())
        else:
            model = load_pretrained(LineageAlbertForPreTraining, path, sentence_objective=self.own.sentence_objective)
        self._check_model(model.config)
        return model

    def load_model(self, folder: str) -> PreTrainedModel:
        """As in `Objective`."""
        return LineageAlbertForPreTraining.from_pretrained(folder, dtype=torch.float32)

    def train_dataset(self, num_shards: int) -> IterableDataset:
        """As in `Objective`."""
        return self._dataset(self.train_corpus(), self.own.sentence_objective, num_shards)

    def validation_datasets(self, num_shards: int) -> dict[str, IterableDataset]:
        """As in `Objective`; the names are those of the sentence objectives."""
        corpus = self.validation_corpus()
        objectives = self.own.validation_objectives or [self.own.sentence_objective]
        return {objective: self._dataset(corpus, objective, num_shards) for objective in objectives if corpus}

    def collator(self) -> Callable[[list[dict[str, Any]]], Inputs]:
        """As in `Objective`."""
        return DataCollatorForSpanMasking(
            self.tokenizer,
            masked_fraction=self.own.masked_fraction,
            max_predictions=self.own.max_predictions,
            max_ngram=self.own.max_ngram,
            seed=self.settings.seed,
        )

    def counts(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """As in `Objective`."""
        counts = {"prediction_loss": (inputs["labels"] != _IGNORED).sum()}
        if _label_name(inputs) is not None:
            counts["sentence_loss"] = torch.tensor(len(inputs["labels"]))
        return counts

    def losses(self, model: nn.Module, inputs: Inputs, carried: None) -> tuple[dict[str, torch.Tensor], None]:
        """As in `Objective`; nothing is carried."""
        outputs = model(**inputs)
        losses = {"prediction_loss": outputs.prediction_loss, "sentence_loss": outputs.sentence_loss}
        return {name: loss for name, loss in losses.items() if loss is not None}, None

    def total(self, losses: dict[str, Any]) -> Any:
        """As in `Objective`, the sentence loss times its weight."""
        weights = {"sentence_loss": self.own.sentence_loss_weight}
        return sum(loss * weights.get(name, 1.0) for name, loss in losses.items())

    def evaluate(
        self, model: nn.Module, inputs: Inputs, carried: None, name: str
    ) -> tuple[dict[str, torch.Tensor | int], None]:
        """As in `Objective`; a sentence head is scored on the labels of whatever objective the dataset has."""
        label_name = _label_name(inputs)
        labels = inputs["labels"]
        without = {key: value for key, value in inputs.items() if key != label_name}
        outputs = model(**without, sparse_prediction=True)
        sums = prediction_sums("prediction", outputs.prediction_logits, labels[labels != _IGNORED])
        if label_name is not None and outputs.sentence_logits is not None:
            sums |= prediction_sums("sentence", outputs.sentence_logits, inputs[label_name])
        return sums, None

    def summarize(self, sums: dict[str, float], name: str) -> dict[str, float]:
        """As in `Objective`: loss, accuracy with its standard error, and count, of the tokens and of the pairs."""
        return {
            **prediction_metrics(sums, "prediction", "masked_lm"),
            **prediction_metrics(sums, "sentence", "sentence"),
        }

    def _dataset(self, corpus: Corpus, objective: str, num_shards: int) -> IterableDataset:
        return sentence_pair_dataset(
            corpus,
            self.tokenizer,
            objective=cast(SentenceObjective, objective),
            max_length=self.settings.max_length,
            short_sequence_probability=self.own.short_sequence_probability,
            seed=self.settings.seed,
            num_shards=num_shards,
        )

    def _config(self) -> LineageAlbertConfig:
        decided = {"sentence_objective": self.own.sentence_objective}
        given = checked_fields(self.settings.config_fields, LineageAlbertConfig(), decided)
        tokenizer = self.tokenizer
        own = {
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.cls_token_id,
            "eos_token_id": tokenizer.sep_token_id,
        }
        return LineageAlbertConfig(**{**own, **given, **decided})

    def _check_model(self, config: LineageAlbertConfig) -> None:
        require_vocabulary(config, self.tokenizer)
        if config.max_position_embeddings < self.settings.max_length:
            raise ValueError(
                f"--max_length is {self.settings.max_length}, but the model has max_position_embeddings="
                f"{config.max_position_embeddings}"
            )


def _label_name(inputs: Inputs) -> str | None:
    """Returns the name of the sentence labels of a batch."""
    return next((name for name in LABELS.values() if name in inputs), None)


__all__ = ["AlbertArguments", "AlbertObjective"]
