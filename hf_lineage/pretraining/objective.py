"""What the training loop asks of a model family, and which families there are."""

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from datasets import IterableDataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .arguments import PretrainingArguments
from .corpus import Corpus, TextUnit
from .held_out import HeldOutSplit
from .optimization import parameter_groups

# Family -> module and class. A new family adds a file with its objective, and a row here.
FAMILIES = {
    "albert": (".albert", "AlbertObjective"),
    "xlnet": (".xlnet", "XLNetObjective"),
    "elmo": (".elmo", "ElmoObjective"),
}

Inputs = dict[str, torch.Tensor]
_BLOCKS_PER_READER = 4


class Objective(ABC):
    """A family's model, data, losses and metrics.

    The loop gives `losses` and `evaluate` whatever they returned as carried for the batch before, in the same part of
    the stream: a memory, the states of an LSTM, or `None` at the start of a pass. It is kept in checkpoints, so it is
    made of tensors without gradients, lists, tuples and dictionaries.

    Args:
        settings: What every family is told.
        own: What this family is told, an `arguments_class`.
        tokenizer: The tokenizer.
    """

    arguments_class: ClassVar[type]
    smallest_block: ClassVar[int] = 2**11  # bytes of text that are read at once
    largest_block: ClassVar[int] = 2**18

    def __init__(self, settings: PretrainingArguments, own: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        self.settings, self.own, self.tokenizer = settings, own, tokenizer

    @abstractmethod
    def create_model(self) -> PreTrainedModel:
        """Returns the model that training starts from.

        Raises:
            ValueError: If the settings ask for a model that cannot be.
        """

    @abstractmethod
    def load_model(self, folder: str) -> PreTrainedModel:
        """Returns the model that a checkpoint's folder holds, in float32."""

    @abstractmethod
    def train_dataset(self, num_shards: int) -> IterableDataset:
        """Returns the dataset that is trained on."""

    @abstractmethod
    def validation_datasets(self, num_shards: int) -> dict[str, IterableDataset]:
        """Returns what is evaluated on, under names of its own; nothing if there is no held-out text."""

    @abstractmethod
    def collator(self) -> Callable[[list[dict[str, Any]]], Inputs]:
        """Returns what makes inputs of a list of examples. Its masks must not depend on how batches are cut."""

    @abstractmethod
    def counts(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """Returns the number of terms of each loss in a batch, scalars.

        Over the batches of an optimizer step, in all processes, each loss is the mean over all its terms.
        """

    @abstractmethod
    def losses(self, model: nn.Module, inputs: Inputs, carried: Any) -> tuple[dict[str, torch.Tensor], Any]:
        """Returns the mean of each loss over its terms in a batch, under the names of `counts`, and what to carry."""

    @abstractmethod
    def evaluate(self, model: nn.Module, inputs: Inputs, carried: Any, name: str) -> tuple[dict[str, Any], Any]:
        """Returns what `summarize` needs, as sums over the batch, and what to carry.

        Args:
            model: In evaluation mode.
            inputs: A batch of the dataset that `validation_datasets` calls `name`.
            carried: From the batch before.
            name: Which dataset.
        """

    @abstractmethod
    def summarize(self, sums: dict[str, float], name: str) -> dict[str, float]:
        """Returns the metrics of a dataset from the sums over all its batches."""

    @property
    def text_unit(self) -> TextUnit:
        """What a document of a text file is."""
        return "document"

    def total(self, losses: dict[str, Any]) -> Any:
        """Returns what is minimized, from all losses: their sum."""
        return sum(losses.values())

    def vocabulary(self) -> dict[str, Any]:
        """Returns tokens and their ids, by which another tokenizer is noticed."""
        return self.tokenizer.get_vocab()

    def file_sizes(self) -> dict[str, int]:
        """Returns the sizes of the files that are trained on, by which a changed text is noticed."""
        return {path: os.path.getsize(path) for path in Corpus(self.settings.train_files).files}

    def train_corpus(self, num_readers: int = 1) -> Corpus:
        """Returns the text that is trained on.

        Args:
            num_readers: How many read it at once, each block after block; there are blocks enough for all of them.
        """
        corpus = self._corpus(self.settings.train_files, num_readers)
        split = self._held_out_split()
        return corpus if split is None else split.train(corpus)

    def validation_corpus(self, num_readers: int = 1) -> Corpus | None:
        """Returns the text that is held out, if any is; the argument is that of `train_corpus`."""
        if self.settings.validation_files:
            return self._corpus(self.settings.validation_files, num_readers)
        split = self._held_out_split()
        return None if split is None else split.held_out(self._corpus(self.settings.train_files, num_readers))

    def num_tokens(self, inputs: Inputs) -> torch.Tensor:
        """Returns the number of tokens of a batch, padding not counted."""
        return inputs["attention_mask"].sum()

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Returns the groups for the optimizer."""
        return parameter_groups(model, self.settings.weight_decay)

    def _corpus(self, files: list[str], num_readers: int) -> Corpus:
        """Returns a corpus with several blocks for each reader, if it is large enough for that."""
        corpus = Corpus(files, text_unit=self.text_unit)
        enough = int(sum(source.size for source in corpus.sources) / (_BLOCKS_PER_READER * num_readers))
        size = min(corpus.block_size, max(enough, self.smallest_block), self.largest_block)
        return corpus if size == corpus.block_size else Corpus(files, block_size=size, text_unit=self.text_unit)

    def _held_out_split(self) -> HeldOutSplit | None:
        share = self.settings.validation_share
        return HeldOutSplit(share, self.settings.seed) if share else None


def objective_class(family: str) -> type[Objective]:
    """Returns the class that answers for a family.

    Raises:
        ValueError: If there is no such family.
    """
    if family not in FAMILIES:
        raise ValueError(f"--family must be one of {', '.join(FAMILIES)}, got {family!r}")
    module, name = FAMILIES[family]
    return getattr(importlib.import_module(module, __package__), name)


__all__ = ["FAMILIES", "Objective", "objective_class"]
