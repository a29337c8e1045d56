"""Pretraining of ELMo: a language model in each direction, on continuous streams or on sentences by themselves."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from datasets import IterableDataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .. import ElmoConfig, ElmoForPreTraining
from ..elmo.word_input_elmo import SMALLEST_TABLE, numbered
from .arguments import PretrainingArguments, describe, require
from .corpus import Corpus, TextUnit
from .model_settings import checked_fields, load_pretrained
from .objective import Inputs, Objective
from .span_masking import IGNORED
from .word_streams import (
    DataCollatorForWordSentences,
    DataCollatorForWordStreams,
    word_sentence_dataset,
    word_stream_dataset,
)

Reading = Literal["streams", "sentences"]
Softmax = Literal["full", "sampled", "adaptive"]
_UNIGRAM = "unigram_"

logger = logging.getLogger(__name__)


@dataclass
class ElmoArguments:
    """The settings of ELMo."""

    reading: Reading = field(
        default="streams",
        metadata=describe(
            "Read sentences one after the other, the states carried from batch to batch (streams), or each by itself."
        ),
    )
    unroll_steps: int | None = field(
        default=None, metadata=describe("Tokens of a stream that a batch reads, by default 20; not with sentences.")
    )
    state_reset_probability: float = field(
        default=0.0,
        metadata=describe(
            "How often a row of a training batch begins with states of 0, as a sentence that is read by itself does; "
            "in the original never."
        ),
    )
    shuffle_sentences: bool = field(
        default=True,
        metadata=describe("Shuffle the sentences of streams, for each direction by itself; else read them in order."),
    )
    text_unit: TextUnit = field(
        default="document",
        metadata=describe("What a blank line ends, or, for text without blank lines, a document a line (line)."),
    )
    softmax: Softmax = field(
        default="full", metadata=describe("Over all words, over a sample of them in training, or adaptive.")
    )
    num_negative_samples: int | None = field(
        default=None, metadata=describe("Words of the sample, by default 8192; with --softmax sampled.")
    )
    adaptive_cutoffs: list[int] | None = field(
        default=None,
        metadata=describe(
            "Ids at which the clusters of --softmax adaptive begin, by default a 16th and a quarter of the vocabulary."
        ),
    )
    lstm_dropout: float = field(
        default=0.1, metadata=describe("Dropout on the input of every LSTM layer and before the softmax.")
    )
    new_softmax: bool = field(
        default=False,
        metadata=describe("With --model_name_or_path, begin with a new softmax, such as for another vocabulary."),
    )
    validation_readings: list[str] | None = field(
        default=None, metadata=describe("How held-out text is read, perhaps both ways; by default as in training.")
    )

    def __post_init__(self) -> None:
        readings = get_args(Reading)
        require(self, ("reading",), lambda value: value in readings, "streams or sentences")
        require(self, ("text_unit",), lambda value: value in get_args(TextUnit), "document or line")
        require(self, ("softmax",), lambda value: value in get_args(Softmax), "full, sampled or adaptive")
        sizes = ("unroll_steps", "num_negative_samples")
        require(self, sizes, lambda value: value is None or value >= 1, "at least 1")
        require(self, ("state_reset_probability",), lambda value: 0 <= value <= 1, "between 0 and 1")
        require(self, ("lstm_dropout",), lambda value: 0 <= value < 1, "at least 0 and below 1")
        require(
            self,
            ("validation_readings",),
            lambda values: values is None or (values and {*values} <= {*readings} and len({*values}) == len(values)),
            "different ones of streams and sentences",
        )
        for name, needed in (("num_negative_samples", "sampled"), ("adaptive_cutoffs", "adaptive")):
            if getattr(self, name) is not None and self.softmax != needed:
                raise ValueError(f"--{name} goes with --softmax {needed}, got --softmax {self.softmax}")
        if self.unroll_steps is not None and "streams" not in (self.reading, *(self.validation_readings or [])):
            raise ValueError("--unroll_steps goes with streams, got --reading sentences")


class ElmoObjective(Objective):
    """The losses of `ElmoForPreTraining`, with the LSTMs' states of each row carried from batch to batch.

    Raises:
        ValueError: If the tokenizer has no word vocabulary, or adds sentence boundaries itself.
    """

    arguments_class = ElmoArguments
    smallest_block, largest_block = 2**6, 2**15  # as each row of a batch has the words of one in memory
    own: ElmoArguments

    def __init__(self, settings: PretrainingArguments, own: ElmoArguments, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(settings, own, tokenizer)
        if not getattr(tokenizer, "word_vocabulary", None):
            raise ValueError(
                f"--tokenizer_name_or_path: {settings.tokenizer_name_or_path} has no word vocabulary; "
                "python -m tokenizer_training elmo makes one"
            )
        if tokenizer.add_sentence_boundaries:
            raise ValueError(
                f"--tokenizer_name_or_path: {settings.tokenizer_name_or_path} adds sentence boundaries, which are "
                "the model's here; save it with add_sentence_boundaries=False"
            )

    @property
    def text_unit(self) -> TextUnit:
        """As in `Objective`."""
        return self.own.text_unit

    def create_model(self) -> PreTrainedModel:
        """As in `Objective`."""
        path = self.settings.model_name_or_path
        return ElmoForPreTraining(self._config()) if path is None else self._pretrained(path)

    def load_model(self, folder: str) -> PreTrainedModel:
        """As in `Objective`."""
        return ElmoForPreTraining.from_pretrained(folder, dtype=torch.float32)

    def train_dataset(self, num_shards: int) -> IterableDataset:
        """As in `Objective`."""
        rows = self.settings.per_device_train_batch_size
        return self._dataset(self.own.reading, self.train_corpus(num_shards * rows), num_shards, rows)

    def validation_datasets(self, num_shards: int) -> dict[str, IterableDataset]:
        """As in `Objective`; the names are those of the ways to read."""
        rows = self.settings.per_device_eval_batch_size
        corpus = self.validation_corpus(num_shards * rows)
        readings = self.own.validation_readings or [self.own.reading]
        return {} if corpus is None else {name: self._dataset(name, corpus, num_shards, rows) for name in readings}

    def collator(self) -> Callable[[list[dict[str, Any]]], Inputs]:
        """As in `Objective`; it tells windows from sentences by their columns."""
        return _Collator(self.tokenizer)

    def counts(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """As in `Objective`."""
        count = (inputs["labels"] != IGNORED).sum()
        if "backward_targets" in inputs:
            return {"forward_loss": count, "backward_loss": (inputs["backward_targets"] != IGNORED).sum()}
        count = count + len(inputs["labels"])  # one of a sentence's boundaries is predicted, too
        return {"forward_loss": count, "backward_loss": count}

    def total(self, losses: dict[str, Any]) -> Any:
        """As in `Objective`: the mean of both directions, as `ElmoForPreTraining` has it."""
        return sum(losses.values()) / len(losses)

    def losses(self, model: nn.Module, inputs: Inputs, carried: Any) -> tuple[dict[str, torch.Tensor], Any]:
        """As in `Objective`; the states are carried."""
        probability = self.own.state_reset_probability
        if carried is not None and probability:
            is_kept = torch.rand(len(carried), 1, 1, 1, device=carried.device) >= probability
            carried = carried * is_kept
        outputs, carried = _forward(model, inputs, carried)
        return {"forward_loss": outputs.forward_loss, "backward_loss": outputs.backward_loss}, carried

    def evaluate(self, model: nn.Module, inputs: Inputs, carried: Any, name: str) -> tuple[dict[str, Any], Any]:
        """As in `Objective`; the states are carried, and the softmax is that over all words."""
        outputs, carried = _forward(model, inputs, carried)
        counts = self.counts(inputs)
        labels = inputs["labels"][inputs["labels"] != IGNORED]
        words, numbers = labels.unique(return_counts=True)
        sums: dict[str, Any] = {
            "forward_loss": outputs.forward_loss.double() * counts["forward_loss"],
            "backward_loss": outputs.backward_loss.double() * counts["backward_loss"],
            "count": counts["forward_loss"],
            "unknown": (labels == self.tokenizer.unk_token_id).sum(),
        }
        frequencies = {f"{_UNIGRAM}{word}": number for word, number in zip(words.tolist(), numbers, strict=True)}
        if ends := int(counts["forward_loss"]) - len(labels):  # the ends of sentences, where the model adds them
            frequencies[f"{_UNIGRAM}{self.tokenizer.eos_token_id}"] = ends
        return {**sums, **frequencies}, carried

    def summarize(self, sums: dict[str, float], name: str) -> dict[str, float]:
        """As in `Objective`: losses and perplexities of both directions, and the perplexity of the best unigram.

        That has the words' frequencies in the held-out text itself, so that no unigram of the training text does
        better.
        """
        count = sums["count"]
        losses = {kind: sums[f"{kind}_loss"] / count for kind in ("forward", "backward")}
        frequencies = [number for key, number in sums.items() if key.startswith(_UNIGRAM)]
        entropy = -sum(number / count * math.log(number / count) for number in frequencies)
        return {
            **{f"{kind}_loss": loss for kind, loss in losses.items()},
            **{f"{kind}_perplexity": math.exp(loss) for kind, loss in losses.items()},
            "perplexity": math.exp(sum(losses.values()) / 2),
            "unigram_perplexity": math.exp(entropy),
            "unknown_share": sums["unknown"] / count,
            "prediction_count": count,
        }

    def vocabulary(self) -> dict[str, Any]:
        """As in `Objective`: words and their ids, and how text becomes words."""
        return {**self.tokenizer.word_vocabulary, "": self.tokenizer.text_split}

    def num_tokens(self, inputs: Inputs) -> torch.Tensor:
        """As in `Objective`: words, and a boundary a sentence."""
        return self.counts(inputs)["forward_loss"]

    def _dataset(self, reading: str, corpus: Corpus, num_shards: int, num_rows: int) -> IterableDataset:
        common: dict[str, Any] = {"seed": self.settings.seed, "num_shards": num_shards}
        if reading == "sentences":
            return word_sentence_dataset(corpus, self.tokenizer, max_length=self.settings.max_length, **common)
        return word_stream_dataset(
            corpus,
            self.tokenizer,
            unroll_steps=self.own.unroll_steps or 20,
            shuffle_sentences=self.own.shuffle_sentences,
            num_rows=num_rows,
            **common,
        )

    def _own_fields(self) -> dict[str, Any]:
        """The fields of the configuration that the settings decide."""
        size = len(self.tokenizer.word_vocabulary)
        cutoffs = None
        if self.own.softmax == "adaptive":
            cutoffs = self.own.adaptive_cutoffs or sorted({max(1, size // 16), max(1, size // 4)})
        return {
            "vocab_size": size,
            "max_characters_per_token": self.tokenizer.max_characters_per_token,
            "num_negative_samples": (self.own.num_negative_samples or 8192) if self.own.softmax == "sampled" else 0,
            "adaptive_softmax_cutoffs": cutoffs,
            "lstm_dropout": self.own.lstm_dropout,
            "add_sentence_boundaries": True,
            "stateful": False,
        }

    def _config(self) -> ElmoConfig:
        decided = self._own_fields()
        if self.tokenizer.input_words:
            decided["word_vocab_size"] = max(SMALLEST_TABLE, 1 + max(self.tokenizer.input_words.values()))
        given = checked_fields(self.settings.config_fields, ElmoConfig(), decided)
        config = ElmoConfig(**{**given, **decided})
        self._check_shared_words(config)
        return config

    def _check_shared_words(self, config: ElmoConfig) -> None:
        if config.tie_word_embeddings and self.tokenizer.input_words != numbered(self.tokenizer.word_vocabulary):
            raise ValueError(
                f"--tokenizer_name_or_path: {self.settings.tokenizer_name_or_path} has not the same words in its "
                "input and its word vocabulary, so that tie_word_embeddings must be false; python -m "
                "tokenizer_training elmo --word_input gives both"
            )

    def _pretrained(self, path: str) -> PreTrainedModel:
        """Loads a model, with or without a softmax, to go on from."""
        fields = self._own_fields()
        saved = ElmoConfig.from_pretrained(path) if self._is_elmo(path) else None
        if saved is None:
            raise ValueError(f"--model_name_or_path: {path} is not an ELMo model")
        if saved.max_characters_per_token != fields["max_characters_per_token"]:
            raise ValueError(
                f"--model_name_or_path: {path} reads {saved.max_characters_per_token} characters a token, the "
                f"tokenizer gives {fields['max_characters_per_token']}"
            )
        if saved.token_row_size != self.tokenizer.token_row_size:
            raise ValueError(
                f"--model_name_or_path: {path} has {saved.word_vocab_size} words in its input, the tokenizer "
                f"{len(self.tokenizer.input_words)}; give the model's own tokenizer"
            )
        if saved.tie_word_embeddings and self.own.new_softmax:
            raise ValueError(
                f"--model_name_or_path: the softmax of {path} is its input's, so --new_softmax must be false"
            )
        self._check_shared_words(saved)
        model, report = load_pretrained(
            ElmoForPreTraining, path, output_loading_info=True, ignore_mismatched_sizes=True, **fields
        )
        others = [name for name in report["missing_keys"] if not name.startswith("lm_head.")]
        if others:
            raise ValueError(f"--model_name_or_path: {path} has no {others[0]}")
        if self.own.new_softmax:
            model.lm_head = ElmoForPreTraining(model.config).lm_head
        elif report["mismatched_keys"]:
            raise ValueError(
                f"--model_name_or_path: the softmax of {path} has {saved.vocab_size} words, the tokenizer "
                f"{fields['vocab_size']}; give the model's own tokenizer, or --new_softmax true"
            )
        elif report["missing_keys"]:
            logger.warning("%s has no such softmax over words: it begins with a new one", path)
        return model

    @staticmethod
    def _is_elmo(path: str) -> bool:
        try:
            return ElmoConfig.get_config_dict(path)[0].get("model_type") == ElmoConfig.model_type
        except OSError as error:
            raise ValueError(f"--model_name_or_path: cannot load a model from {path}: {error}") from error


class _Collator:
    """Collates windows or sentences, whichever the examples are."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.streams, self.sentences = DataCollatorForWordStreams(tokenizer), DataCollatorForWordSentences(tokenizer)

    def __call__(self, examples: list[dict[str, Any]]) -> Inputs:
        return (self.streams if "forward_words" in examples[0] else self.sentences)(examples)


def _forward(model: nn.Module, inputs: Inputs, carried: Any) -> tuple[Any, Any]:
    if "backward_targets" not in inputs:
        return model(**inputs, return_logits=False), None
    outputs = model(**inputs, initial_states=carried, return_logits=False)
    return outputs, outputs.final_states.detach().float()


__all__ = ["ElmoArguments", "ElmoObjective"]
