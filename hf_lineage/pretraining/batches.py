"""Batches of a streaming dataset: endless, made in worker processes if there are any, and resumable."""

import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import torch
from datasets import IterableDataset
from torch.utils.data import DataLoader
from torch.utils.data import IterableDataset as TorchIterableDataset

Features = dict[str, Any]
Inputs = dict[str, torch.Tensor]


class Batch(NamedTuple):
    """What `BatchStream` gives.

    Args:
        inputs: The model's inputs, on the CPU.
        part: Which of the stream's parts it is from. Batches of one part follow each other in the text, those of
            different parts do not: what is carried from batch to batch is carried within a part.
        starts: Whether it is the first of a pass over its part.
    """

    inputs: Inputs
    part: int
    starts: bool


class BatchStream:
    """The share of a dataset that one process trains on, pass after pass.

    Every process and each of its workers has shards of the dataset to itself, a part, so that none repeats another's
    examples. Parts take turns, and one that is through waits for the others. Processes do not wait for each other:
    each begins its next pass when its own share is through.

    `state_dict` tells where the stream stands after the batch that was taken last, whatever workers have prepared
    beyond it; a stream of the same dataset and the same numbers that loads it goes on with the next batch.

    Args:
        dataset: With at least one shard for each part of each process. Its `set_epoch`, `state_dict` and
            `load_state_dict` are used.
        collator: Makes the inputs from a list of examples. If it has a `set_epoch`, that is called with the number of
            the pass.
        batch_size: Examples in a batch; the last of a pass over a part may have fewer.
        num_workers: Processes that make batches ahead, one for each part; 0 makes them here, in one part.
        process_index: Which process this is.
        num_processes: Of how many.
        pin_memory: Whether inputs are put into memory that is copied to a GPU faster.

    Raises:
        ValueError: If there are too few shards, or, from the iterator, no examples for this process.
    """

    def __init__(
        self,
        dataset: IterableDataset,
        collator: Callable[[list[Features]], Inputs],
        batch_size: int,
        num_workers: int = 0,
        process_index: int = 0,
        num_processes: int = 1,
        pin_memory: bool = False,
    ) -> None:
        self.dataset, self.collator, self.batch_size = dataset, collator, batch_size
        self.num_workers, self.pin_memory = num_workers, pin_memory
        self.process_index, self.num_processes = process_index, num_processes
        self.num_parts = max(1, num_workers)
        if dataset.num_shards < num_processes * self.num_parts:
            raise ValueError(
                f"The dataset has {dataset.num_shards} shards, too few for {num_processes} processes with "
                f"{self.num_parts} parts each"
            )
        self.rewind()

    @property
    def epoch(self) -> int:
        """Number of passes over this process's share that are complete."""
        return self._state["epoch"]

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands: numbers, strings and lists and dictionaries of them."""
        return {**self._state, "parts": list(self._state["parts"])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where another stream stood; iterators that exist already are not moved.

        Raises:
            ValueError: If that stream had another number of parts.
        """
        if len(state["parts"]) != self.num_parts:
            raise ValueError(f"The state is of a stream of {len(state['parts'])} parts, this one has {self.num_parts}")
        self._state = {**state, "parts": list(state["parts"])}

    def rewind(self) -> None:
        """Goes to the start of the first pass."""
        self._state = self._start_of_pass(0)

    def __iter__(self) -> Generator[Batch, None, None]:
        """Gives batches without end, from where the stream stands."""
        while True:
            yield from self.one_pass()
            if all(part is None for part in self._state["parts"]):
                raise ValueError(
                    f"There is no example for process {self.process_index} of {self.num_processes}: the text has too "
                    "few documents for so many, or none that is long enough"
                )
            self._state = self._start_of_pass(self.epoch + 1)

    def one_pass(self) -> Generator[Batch, None, None]:
        """Gives the batches up to the end of the pass that the stream is in, perhaps none."""
        state = self._state
        if hasattr(self.collator, "set_epoch"):
            self.collator.set_epoch(state["epoch"])
        waiting = {index: iter(self._loader(index)) for index in range(self.num_parts)}
        while waiting:
            index = state["turn"]
            state["turn"] = (index + 1) % self.num_parts
            if index not in waiting:
                continue
            made = next(waiting[index], None)
            if made is None:
                del waiting[index]
                continue
            inputs, position = made
            starts = state["parts"][index] is None
            state["parts"][index] = position
            yield Batch(inputs, index, starts)

    def _start_of_pass(self, epoch: int) -> dict[str, Any]:
        return {"epoch": epoch, "turn": 0, "parts": [None] * self.num_parts}

    def _loader(self, index: int) -> DataLoader:
        """Makes the batches of one part, each with the part's state after it."""
        part = self.dataset.shard(
            self.num_processes * self.num_parts, self.process_index * self.num_parts + index, contiguous=False
        )
        part.set_epoch(self._state["epoch"])
        position = self._state["parts"][index]
        if position is not None:
            part.load_state_dict(position)
        return DataLoader(
            _PartBatches(part, self.collator, self.batch_size),
            batch_size=None,
            num_workers=min(1, self.num_workers),
            collate_fn=_identity,  # or torch would convert what the collator made
            pin_memory=self.pin_memory,
            worker_init_fn=_ignore_termination,
            # Of its own, or starting a worker would draw from the generator of dropout.
            generator=torch.Generator().manual_seed(index),
        )


class _PartBatches(TorchIterableDataset):
    """Batches of a dataset together with its state after each."""

    def __init__(self, part: IterableDataset, collator: Callable, batch_size: int) -> None:
        self.part, self.collator, self.batch_size = part, collator, batch_size

    def __iter__(self) -> Iterator[tuple[Inputs, dict[str, Any]]]:
        features: list[Features] = []
        for feature in self.part:
            features.append(feature)
            if len(features) == self.batch_size:
                yield self.collator(features), self.part.state_dict()
                features = []
        if features:
            yield self.collator(features), self.part.state_dict()


def _identity(made: Any) -> Any:
    return made


def _ignore_termination(worker: int) -> None:
    # Schedulers send it to every process, but what is trained with may still want batches before it stops; a worker
    # ends when that does.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


__all__ = ["Batch", "BatchStream"]
