"""A task's examples: where they come from, what is checked, and how they become batches."""

import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet
import torch
from datasets import ClassLabel, Dataset, DatasetDict, load_dataset
from torch.utils.data import DataLoader, DistributedSampler
from transformers import PreTrainedTokenizerBase
from transformers.trainer_pt_utils import DistributedLengthGroupedSampler

from benchmarks.glue.arguments import FineTuningArguments
from benchmarks.glue.tasks import Task

HUB_DATASET = "nyu-mll/glue"
MINISUITE_SEED = 0
SUBSAMPLING_SEED = 0


@dataclass(frozen=True)
class SplitSource:
    """Where one split came from.

    Args:
        rows: Number of rows in the source.
        is_subset: Whether it holds only a part of the official split.
        file: File it was read from, `None` for a split without a file of its own.
        sha256: Digest of that file.
    """

    rows: int
    is_subset: bool = False
    file: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class TaskData:
    """The labelled splits of a task.

    Args:
        task: The task.
        splits: Its training split, if it is there, and its validation splits; columns: those of the text and `label`.
        origin: Name of what they were loaded from: a folder, the Hub dataset or the minisuite.
        sources: Where each split came from.
        missing_splits: Validation splits that the origin lacks.
    """

    task: Task
    splits: DatasetDict
    origin: str
    sources: dict[str, SplitSource]
    missing_splits: tuple[str, ...] = ()

    @property
    def train(self) -> Dataset | None:
        """The training split, `None` if there is none."""
        return self.splits.get(self.task.train_split)

    @property
    def validation(self) -> dict[str, Dataset]:
        """The validation splits by name, in the task's order."""
        return {name: self.splits[name] for name in self.task.validation_splits if name in self.splits}


def load_task_data(task: Task, suite: str = "glue", data_dir: str | None = None, needs_train: bool = True) -> TaskData:
    """Load and check the labelled splits of a task. Unlabelled test splits are never read.

    Args:
        task: The task.
        suite: `"glue"`, or `"minisuite"`, whose data is generated.
        data_dir: Folder with `<task>/<split>.parquet`; the Hub's dataset by default.
        needs_train: Whether a missing training split is an error.

    Raises:
        ValueError: If a file, column or label is missing or wrong, or a split is empty; the message says where.
    """
    if not task.validation_splits:
        raise ValueError(f"The task {task.name!r} has no labelled split, so there is nothing to train or evaluate on.")
    if suite == "minisuite":
        data = _generate(task)
    elif data_dir is not None:
        data = _read_folder(task, Path(data_dir))
    else:
        data = _download(task)
    if needs_train and task.train_split is not None and data.train is None:
        raise ValueError(_absent(task, [task.train_split], data.origin))
    if not data.validation:
        raise ValueError(_absent(task, task.validation_splits, data.origin))
    if data.missing_splits:
        warnings.warn(
            f"Evaluated on the other splits only. {_absent(task, data.missing_splits, data.origin)}", stacklevel=2
        )
    splits = {name: _check_split(task, name, split, data.origin) for name, split in data.splits.items()}
    return TaskData(task, DatasetDict(splits), data.origin, data.sources, data.missing_splits)


def _absent(task: Task, names: Sequence[str], origin: str) -> str:
    """Say which splits are missing, and how their files are called where they come from a folder."""
    looked_for = ", ".join(f"{name} ({' or '.join(_file_names(name))})" for name in names)
    return f"The task {task.name!r} lacks {looked_for} in {origin}."


def _file_names(split: str) -> list[str]:
    return [f"{split}.parquet", f"{split}_subset.parquet"]


def _labelled_splits(task: Task) -> list[str]:
    return [name for name in (task.train_split, *task.validation_splits) if name is not None]


def _from_splits(task: Task, available: DatasetDict, origin: str) -> TaskData:
    splits = DatasetDict({name: available[name] for name in _labelled_splits(task) if name in available})
    missing = tuple(name for name in task.validation_splits if name not in splits)
    return TaskData(task, splits, origin, {name: SplitSource(len(split)) for name, split in splits.items()}, missing)


def _download(task: Task) -> TaskData:
    return _from_splits(task, load_dataset(HUB_DATASET, task.name), HUB_DATASET)


def _generate(task: Task) -> TaskData:
    # The small suite builds on this package, so it is imported only when it is asked for.
    from benchmarks.minisuite import load_task

    return _from_splits(task, load_task(task.name, seed=MINISUITE_SEED), f"minisuite (seed {MINISUITE_SEED})")


def _read_folder(task: Task, data_dir: Path) -> TaskData:
    folder = data_dir / task.name
    if not folder.is_dir():
        raise ValueError(f"No data for the task {task.name!r}: {folder} is not a folder.")
    splits, sources = DatasetDict(), {}
    for name in _labelled_splits(task):
        full, subset = (folder / file for file in _file_names(name))
        file = full if full.is_file() else subset
        if not file.is_file():
            continue
        try:
            # Read at once: `Dataset.from_parquet` would leave an Arrow copy in the cache of datasets.
            splits[name] = Dataset(pyarrow.parquet.read_table(file))
        except (OSError, pyarrow.ArrowException) as error:
            raise ValueError(f"{file} cannot be read as a parquet file: {error}") from error
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        sources[name] = SplitSource(len(splits[name]), file == subset, str(file), digest)
    missing = tuple(name for name in task.validation_splits if name not in splits)
    return TaskData(task, splits, str(folder), sources, missing)


def _column(split: Dataset, name: str) -> pyarrow.ChunkedArray:
    return split.select_columns(name).with_format("arrow")[:][name]


def _check_split(task: Task, name: str, split: Dataset, origin: str) -> Dataset:
    """Return the split with the columns of the task only, or say what is wrong with it."""
    where = f"{task.name}/{name} from {origin}"
    columns = [*task.text_columns, "label"]
    absent = [column for column in columns if column not in split.column_names]
    if absent:
        raise ValueError(f"{where} lacks the column {', '.join(absent)}; it has {', '.join(split.column_names)}.")
    if not len(split):
        raise ValueError(f"{where} is empty.")
    split = split.select_columns(columns)
    for column in task.text_columns:
        values = _column(split, column)
        if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)):
            raise ValueError(f"{where}: the column {column} must hold strings, got {values.type}.")
        if values.null_count:
            raise ValueError(f"{where}: the column {column} has {values.null_count} rows without a text.")
    _check_labels(task, split, where)
    return split


def _check_labels(task: Task, split: Dataset, where: str) -> None:
    feature, values = split.features["label"], _column(split, "label")
    if isinstance(feature, ClassLabel) and tuple(feature.names) != task.labels:
        raise ValueError(f"{where}: the labels are {tuple(feature.names)}, those of the task are {task.labels}.")
    is_number = pyarrow.types.is_floating if task.is_regression else pyarrow.types.is_integer
    if not is_number(values.type):
        wanted = "floats" if task.is_regression else "whole numbers"
        raise ValueError(f"{where}: the labels must be {wanted}, got {values.type}.")
    if values.null_count:
        raise ValueError(f"{where}: {values.null_count} rows have no label.")
    if task.is_regression and not pyarrow.compute.all(pyarrow.compute.is_finite(values)).as_py():
        raise ValueError(f"{where}: a label is NaN or infinite.")
    bounds = task.label_range if task.is_regression else (0, len(task.labels) - 1)
    if bounds is None:
        return
    lowest, highest = pyarrow.compute.min_max(values).as_py().values()
    if lowest < bounds[0] or highest > bounds[1]:
        raise ValueError(
            f"{where}: labels reach from {lowest} to {highest}, allowed are {bounds[0]} to {bounds[1]} "
            "(-1 stands for a hidden label, which cannot be trained on or evaluated)."
        )


def majority_label(task: Task, train: Dataset) -> float:
    """Return the most frequent label of a training split (the lowest of equals), or the mean of a regression task."""
    labels = train["label"][:]
    if task.is_regression:
        return sum(labels) / len(labels)
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


def limit_train(train: Dataset, max_train_samples: int | None) -> Dataset:
    """Return at most so many examples of a training split: a random choice that is always the same."""
    if max_train_samples is None or max_train_samples >= len(train):
        return train
    generator = torch.Generator().manual_seed(SUBSAMPLING_SEED)
    return train.select(sorted(torch.randperm(len(train), generator=generator)[:max_train_samples].tolist()))


@dataclass(frozen=True)
class TextCollator:
    """Tokenizes examples into a padded batch.

    Texts stay texts until their batch is due: rows of character ids would fill fifty times the disk and memory, and
    padding goes no further than the longest example of the batch.

    Args:
        tokenizer: Any tokenizer of transformers, those of character ids included.
        task: Whose columns are read.
        max_length: Longest input in tokens.
    """

    tokenizer: PreTrainedTokenizerBase
    task: Task
    max_length: int

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Return what the tokenizer gives for the texts, and `labels` of shape `(batch,)`."""
        texts = [[example[column] for example in examples] for column in self.task.text_columns]
        batch = self.tokenizer(*texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt")
        dtype = torch.float32 if self.task.is_regression else torch.int64
        return {**batch, "labels": torch.tensor([example["label"] for example in examples], dtype=dtype)}


def _lengths(task: Task, split: Dataset) -> list[float]:
    """Return how long each example is: its words, and between texts of as many words its characters.

    Only the order matters. Where a script has no spaces, the characters alone decide.
    """
    texts = zip(*(split[column][:] for column in task.text_columns), strict=True)
    return [sum(len(text.split()) + len(text) / 1_000_000 for text in example) for example in texts]


def train_loader(
    split: Dataset, collator: TextCollator, arguments: FineTuningArguments, num_processes: int, seed: int
) -> DataLoader:
    """Return batches in an order that follows from the seed, the epoch and the examples of an optimizer step.

    Args:
        split: Examples to train on.
        collator: Makes the batches.
        arguments: Batch size, accumulation, grouping by length and workers.
        num_processes: Number of processes to which accelerate deals the batches out.
        seed: Seed of the order.
    """
    batch_size = arguments.per_device_train_batch_size
    # The samplers add the epoch to their seed, so runs with the seeds 1 and 2 would share orders.
    seed = random.Random(seed).getrandbits(32)
    # One replica, as accelerate deals the batches out. Texts are grouped over a whole optimizer step, so that batches
    # of its processes take equally long and a step holds the same examples however it is cut.
    sampler: DistributedSampler
    if arguments.group_by_length:
        sampler = DistributedLengthGroupedSampler(
            batch_size * arguments.gradient_accumulation_steps * num_processes,
            num_replicas=1,
            rank=0,
            seed=seed,
            lengths=_lengths(collator.task, split),
        )
    else:
        sampler = DistributedSampler(split, num_replicas=1, rank=0, shuffle=True, seed=seed)
    return DataLoader(split, batch_size, sampler=sampler, **_loader_options(collator, arguments))


def evaluation_loader(split: Dataset, collator: TextCollator, arguments: FineTuningArguments) -> DataLoader:
    """Return batches of a split from its longest example to its shortest, which pads least.

    Args:
        split: Examples to evaluate on.
        collator: Makes the batches.
        arguments: Batch size and workers.
    """
    lengths = _lengths(collator.task, split)
    order = sorted(range(len(split)), key=lengths.__getitem__, reverse=True)
    return DataLoader(
        split.select(order), arguments.per_device_eval_batch_size, **_loader_options(collator, arguments)
    )


def _loader_options(collator: TextCollator, arguments: FineTuningArguments) -> dict[str, Any]:
    return {
        "collate_fn": collator,
        "num_workers": arguments.dataloader_num_workers,
        "persistent_workers": arguments.dataloader_num_workers > 0,
        "pin_memory": torch.accelerator.is_available(),
    }
