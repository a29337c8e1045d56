"""A task's examples: what is checked of them, and how they become batches."""

import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, DatasetDict
from torch.utils.data import DataLoader, DistributedSampler
from transformers import PreTrainedTokenizerBase
from transformers.trainer_pt_utils import DistributedLengthGroupedSampler

from benchmarks.glue.arguments import DataArguments, FineTuningArguments
from benchmarks.glue.checks import check_split, check_test_split
from benchmarks.glue.own_files import describe_own_task
from benchmarks.glue.sources import (
    MissingDataError,
    Source,
    SplitSource,
    read_folder,
    read_hub,
    read_minisuite,
    read_own_files,
)
from benchmarks.glue.tasks import FILES_SUITE, Task, find_task, get_tasks

SUBSAMPLING_SEED = 0


@dataclass(frozen=True)
class TaskData:
    """The splits of a task.

    Args:
        task: The task.
        splits: Its training split, if it is there, and its validation splits; columns: those of the text and `label`.
        origin: Name of what they were loaded from: a folder, the Hub dataset, files or the minisuite.
        sources: Where each split came from.
        missing_splits: Validation splits that the origin lacks.
        tests: Its test splits, where they were asked for, and under their names the tasks in its `diagnostics`. They
            have a `label` only if no label is hidden.
    """

    task: Task
    splits: DatasetDict
    origin: str
    sources: dict[str, SplitSource]
    missing_splits: tuple[str, ...] = ()
    tests: DatasetDict = field(default_factory=DatasetDict)

    @property
    def train(self) -> Dataset | None:
        """The training split, `None` if there is none."""
        return self.splits.get(self.task.train_split)

    @property
    def validation(self) -> dict[str, Dataset]:
        """The validation splits by name, in the task's order."""
        return {name: self.splits[name] for name in self.task.validation_splits if name in self.splits}


def select_tasks(arguments: DataArguments) -> list[Task]:
    """Return the tasks that are trained or evaluated: a diagnostic set is no run of its own.

    Raises:
        ValueError: If a name is unknown, or files of one's own do not tell what the task is.
    """
    if arguments.suite == FILES_SUITE:
        return [describe_own_task(arguments.task_name, arguments.files, arguments.label_names, arguments.metric_names)]
    return [task for task in get_tasks(arguments.task_names, arguments.suite) if task.validation_splits]


def load_tasks(tasks: Sequence[Task], arguments: DataArguments, needs_train: bool = True) -> list[TaskData]:
    """Load and check the data of every task.

    Of the tasks that `all` stands for, those without data are left out with a warning.

    Args:
        tasks: From `select_tasks`.
        arguments: Where the data is, and whether the test splits are predicted.
        needs_train: Whether a missing training split is an error.

    Raises:
        ValueError: If the data of a task that was named is missing, or any data is wrong; the message says where. Also
            if the test splits are to be predicted and there are none.
    """
    loaded = []
    for task in tasks:
        try:
            loaded.append(
                load_task_data(
                    task, arguments.suite, arguments.data_dir, needs_train, arguments.predict, arguments.files
                )
            )
        except MissingDataError as error:
            if arguments.task_names != ["all"]:
                raise
            warnings.warn(f"Left out of all tasks: {error}", stacklevel=2)
    if not loaded:
        raise MissingDataError(f"No task of the suite {arguments.suite!r} has all its data in {arguments.data_dir}.")
    for data in loaded:
        absent = [name for name in data.task.diagnostics if name in arguments.task_names and name not in data.tests]
        if absent:
            raise MissingDataError(f"There is no data of the task {absent[0]!r} beside that of {data.origin}.")
    if arguments.predict and not any(data.tests for data in loaded):
        raise MissingDataError(f"--predict needs a test split; none in {', '.join(data.origin for data in loaded)}.")
    return loaded


def load_task_data(
    task: Task,
    suite: str = "glue",
    data_dir: str | None = None,
    needs_train: bool = True,
    needs_tests: bool = False,
    files: Mapping[str, str] | None = None,
) -> TaskData:
    """Load and check the splits of a task. Test splits are read only where they are asked for.

    Args:
        task: The task.
        suite: Name of its suite; the data of `"minisuite"` is generated, that of `"files"` is in `files`.
        data_dir: Folder of the suite, see `read_folder`; the Hub's dataset by default.
        needs_train: Whether a missing training split is an error.
        needs_tests: Whether to read the test splits; a missing one is a warning.
        files: Path of the file of each split of the suite `"files"`.

    Raises:
        MissingDataError: If the training split or every validation split is missing.
        ValueError: If a file, column or label is wrong, or a split is empty; the message says where.
    """
    if not task.validation_splits:
        raise ValueError(f"The task {task.name!r} has no labelled split, so there is nothing to train or evaluate on.")
    labelled = [name for name in (task.train_split, *task.validation_splits) if name is not None]
    source = _read(task, suite, data_dir, files or {}, [*labelled, *(task.test_splits if needs_tests else ())])
    missing = tuple(name for name in task.validation_splits if name not in source.splits)
    if needs_train and task.train_split is not None and task.train_split not in source.splits:
        raise MissingDataError(_absent(task, [task.train_split], source))
    if missing == task.validation_splits:
        raise MissingDataError(_absent(task, missing, source))
    if missing:
        warnings.warn(f"Evaluated on the other splits only. {_absent(task, missing, source)}", stacklevel=2)
    splits = {
        name: check_split(task, name, source.splits[name], source.origin) for name in labelled if name in source.splits
    }
    sources = {name: source.sources[name] for name in splits}
    tests: dict[str, Dataset] = {}
    if needs_tests:
        _add_tests(tests, sources, task, source)
        for diagnostic in filter(None, (find_task(suite, name) for name in task.diagnostics)):
            _add_tests(tests, sources, diagnostic, _read_diagnostic(diagnostic, suite, data_dir))
    return TaskData(task, DatasetDict(splits), source.origin, sources, missing, DatasetDict(tests))


def _read(task: Task, suite: str, data_dir: str | None, files: Mapping[str, str], names: Sequence[str]) -> Source:
    if suite == "minisuite":
        return read_minisuite(task, names)
    if suite == FILES_SUITE:
        return read_own_files(task, files, names)
    if data_dir is None:
        return read_hub(task, names)
    return read_folder(task, Path(data_dir), names)


def _read_diagnostic(task: Task, suite: str, data_dir: str | None) -> Source:
    try:
        return _read(task, suite, data_dir, {}, task.test_splits)
    except MissingDataError:
        return Source(str(data_dir))


def _absent(task: Task, names: Sequence[str], source: Source) -> str:
    """Say which splits are missing, and how their files are called where they come from a folder."""
    described = []
    for name in names:
        files = " or ".join(source.file_names.get(name, ()))
        described.append(f"{name} ({files})" if files else name)
    return f"The task {task.name!r} lacks {', '.join(described)} in {source.origin}."


def _add_tests(tests: dict[str, Dataset], sources: dict[str, SplitSource], task: Task, source: Source) -> None:
    """Add the test splits of a task; a diagnostic set is added under its own name."""
    for name in task.test_splits:
        if name not in source.splits:
            warnings.warn(f"Not predicted: {_absent(task, [name], source)}", stacklevel=3)
            continue
        key = name if task.validation_splits else task.name
        tests[key] = check_test_split(task, name, source.splits[name], source.origin)
        sources[key] = source.sources[name]


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
        dtype = torch.float32 if self.task.is_regression else torch.int64
        labels = torch.tensor([example["label"] for example in examples], dtype=dtype)
        return {**self.encode(examples), "labels": labels}

    def encode(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Return what the tokenizer gives for the texts alone."""
        texts = [[example[column] for example in examples] for column in self.task.text_columns]
        return dict(
            self.tokenizer(*texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt")
        )


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


def evaluation_loader(
    split: Dataset,
    collator: TextCollator,
    arguments: FineTuningArguments,
    collate_fn: Callable[[Sequence[dict[str, Any]]], dict[str, torch.Tensor]] | None = None,
) -> DataLoader:
    """Return batches of a split from its longest example to its shortest, which pads least.

    Args:
        split: Examples to evaluate on.
        collator: Names the columns of the texts, and makes the batches.
        arguments: Batch size and workers.
        collate_fn: Makes the batches instead.
    """
    lengths = _lengths(collator.task, split)
    order = sorted(range(len(split)), key=lengths.__getitem__, reverse=True)
    return DataLoader(
        split.select(order),
        arguments.per_device_eval_batch_size,
        **_loader_options(collate_fn or collator, arguments),
    )


def _loader_options(collator: Callable[..., Any], arguments: FineTuningArguments) -> dict[str, Any]:
    return {
        "collate_fn": collator,
        "num_workers": arguments.dataloader_num_workers,
        "persistent_workers": arguments.dataloader_num_workers > 0,
        "pin_memory": torch.accelerator.is_available(),
    }
