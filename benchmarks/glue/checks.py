"""What is checked of a split before anything is trained or predicted."""

from collections.abc import Sequence

import pyarrow
import pyarrow.compute
from datasets import ClassLabel, Dataset

from benchmarks.glue.tasks import Task


def check_split(task: Task, name: str, split: Dataset, origin: str) -> Dataset:
    """Return a labelled split with the columns of the task only.

    Args:
        task: The task.
        name: Name of the split.
        split: Its rows.
        origin: Where they are from, for the message.

    Raises:
        ValueError: If the split is empty, or a column or label is missing or wrong.
    """
    where = f"{task.name}/{name} from {origin}"
    split = _select_columns(split, [*task.text_columns, "label"], where)
    _check_texts(task, split, where)
    _check_labels(task, split, where)
    return split


def check_test_split(task: Task, name: str, split: Dataset, origin: str) -> Dataset:
    """Return a test split with the columns of the task, and `label` only if no label is hidden.

    Args:
        task: The task.
        name: Name of the split.
        split: Its rows.
        origin: Where they are from, for the message.

    Raises:
        ValueError: If the split is empty, a column of texts is missing or wrong, or a label is wrong.
    """
    where = f"{task.name}/{name} from {origin}"
    has_labels = "label" in split.column_names and len(split) > 0 and not _are_hidden(split)
    split = _select_columns(split, [*task.text_columns, *(["label"] if has_labels else [])], where)
    _check_texts(task, split, where)
    if has_labels:
        _check_labels(task, split, where)
    return split


def _are_hidden(split: Dataset) -> bool:
    """Return whether every label is left out or -1, which stands for a hidden one."""
    values = _column(split, "label")
    return values.null_count == len(values) or (
        not pyarrow.types.is_string(values.type) and pyarrow.compute.all(pyarrow.compute.equal(values, -1)).as_py()
    )


def _select_columns(split: Dataset, columns: Sequence[str], where: str) -> Dataset:
    absent = [column for column in columns if column not in split.column_names]
    if absent:
        raise ValueError(f"{where} lacks the column {', '.join(absent)}; it has {', '.join(split.column_names)}.")
    if not len(split):
        raise ValueError(f"{where} is empty.")
    return split.select_columns(list(columns))


def _check_texts(task: Task, split: Dataset, where: str) -> None:
    for column in task.text_columns:
        values = _column(split, column)
        if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)):
            raise ValueError(f"{where}: the column {column} must hold strings, got {values.type}.")
        if values.null_count:
            raise ValueError(f"{where}: the column {column} has {values.null_count} rows without a text.")


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


def _column(split: Dataset, name: str) -> pyarrow.ChunkedArray:
    return split.select_columns(name).with_format("arrow")[:][name]
