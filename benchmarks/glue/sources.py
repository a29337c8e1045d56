"""Where a task's examples are read from: the Hub, folders of parquet or of GLUE's TSV files, files of one's own."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
import pyarrow.parquet
from datasets import Dataset, DatasetDict, load_dataset

from benchmarks.glue.official_tsv import (
    find_official,
    name_lines,
    official_file_names,
    official_folders,
    read_official,
)
from benchmarks.glue.own_files import read_own_file
from benchmarks.glue.tasks import Task

HUB_DATASET = "nyu-mll/glue"
MINISUITE_SEED = 0
_NUM_NAMED_LINES = 5


class MissingDataError(ValueError):
    """A task or split that is needed is not there."""


@dataclass(frozen=True)
class SplitSource:
    """Where one split came from.

    Args:
        rows: Number of rows that were taken from the source.
        is_subset: Whether it holds only a part of the official split.
        file: File it was read from, `None` for a split without a file of its own.
        sha256: Digest of that file.
        bad_rows: How many rows of the file were left out because they do not have its columns.
        first_bad_lines: The first of their line numbers, from 1.
    """

    rows: int
    is_subset: bool = False
    file: str | None = None
    sha256: str | None = None
    bad_rows: int = 0
    first_bad_lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Source:
    """What was found of the splits that were asked for, not yet checked.

    Args:
        origin: Name of what they were read from.
        splits: The rows of each split.
        sources: Where each split came from.
        file_names: How the file of each split may be called there; empty where a split is not a file.
    """

    origin: str
    splits: DatasetDict = field(default_factory=DatasetDict)
    sources: dict[str, SplitSource] = field(default_factory=dict)
    file_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def add(self, name: str, rows: Dataset, file: Path | None = None, bad_lines: Sequence[int] = ()) -> None:
        """Add a split. That rows of its file were left out is said in a warning."""
        if bad_lines:
            warnings.warn(
                f"{file}: {len(bad_lines)} rows are damaged and left out, on the lines {name_lines(bad_lines)}.",
                stacklevel=4,
            )
        self.splits[name] = rows
        self.sources[name] = SplitSource(
            rows=len(rows),
            is_subset=file is not None and file.name == _parquet_names(name)[1],
            file=None if file is None else str(file),
            sha256=None if file is None else hashlib.sha256(file.read_bytes()).hexdigest(),
            bad_rows=len(bad_lines),
            first_bad_lines=tuple(bad_lines[:_NUM_NAMED_LINES]),
        )


def read_hub(task: Task, names: Sequence[str]) -> Source:
    """Read splits of GLUE from the Hub.

    Raises:
        ValueError: If the Hub cannot be reached and its cache has no copy.
    """
    try:
        available = load_dataset(HUB_DATASET, task.name)
    except ConnectionError as error:
        raise ValueError(
            f"The task {task.name!r} cannot be loaded from {HUB_DATASET} on the Hub: {error}. Without a network, give "
            "--data_dir, or --suite minisuite, whose tasks are generated."
        ) from error
    return _select(Source(HUB_DATASET), available, names)


def read_minisuite(task: Task, names: Sequence[str]) -> Source:
    """Generate splits of the embedded suite."""
    # The small suite builds on this package, so it is imported only when it is asked for.
    from benchmarks.minisuite import load_task

    generated = load_task(task.name, seed=MINISUITE_SEED)
    return _select(Source(f"minisuite (seed {MINISUITE_SEED})"), generated, names)


def read_own_files(task: Task, files: Mapping[str, str], names: Sequence[str]) -> Source:
    """Read splits from CSV or JSON files, one for each split.

    Raises:
        ValueError: If a file cannot be read, or has labels that are not the task's.
    """
    source = Source(f"files of {task.name}")
    for name in names:
        if name in files:
            source.add(name, read_own_file(task, name, Path(files[name])), Path(files[name]))
    return source


def read_folder(task: Task, data_dir: Path, names: Sequence[str]) -> Source:
    """Read splits from a folder with `<task>/<split>.parquet`, or with GLUE's official TSV folders.

    What is in the folder decides how it is read; of a task that is there in both forms, the parquet files are taken.

    Args:
        task: The task.
        data_dir: Folder of the suite.
        names: Splits to look for.

    Raises:
        MissingDataError: If the task has no folder there.
        ValueError: If a file cannot be read.
    """
    folder = data_dir / task.name
    if not any(folder.glob("*.parquet")):
        files = {name: find_official(task, data_dir, name) for name in (*names, *task.test_splits)}
        found = [file for file in files.values() if file is not None]
        if found:
            return _read_official(task, found[0].parent, {name: files[name] for name in names})
    if not folder.is_dir():
        others = "".join(f", nor {path}" for path in official_folders(task, data_dir) if path != folder)
        raise MissingDataError(f"No data for the task {task.name!r}: {folder} is not a folder with its files{others}.")
    return _read_parquet(folder, names)


def _read_official(task: Task, folder: Path, files: Mapping[str, Path | None]) -> Source:
    source = Source(str(folder), file_names={name: official_file_names(task, name) for name in files})
    for name, file in files.items():
        if file is not None:
            rows, bad_lines = read_official(task, name, file)
            source.add(name, rows, file, bad_lines)
    return source


def _read_parquet(folder: Path, names: Sequence[str]) -> Source:
    source = Source(str(folder), file_names={name: _parquet_names(name) for name in names})
    for name in names:
        file = next((folder / file for file in _parquet_names(name) if (folder / file).is_file()), None)
        if file is None:
            continue
        try:
            # Read at once: `Dataset.from_parquet` would leave an Arrow copy in the cache of datasets.
            rows = Dataset(pyarrow.parquet.read_table(file))
        except (OSError, pyarrow.ArrowException) as error:
            raise ValueError(f"{file} cannot be read as a parquet file: {error}") from error
        source.add(name, rows, file)
    return source


def _parquet_names(split: str) -> tuple[str, str]:
    """Return the file name of a split, and that of a part of it."""
    return f"{split}.parquet", f"{split}_subset.parquet"


def _select(source: Source, available: Mapping[str, Dataset], names: Sequence[str]) -> Source:
    for name in names:
        if name in available:
            source.add(name, available[name])
    return source
