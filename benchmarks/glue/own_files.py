"""Tasks of one's own: CSV and JSON files with the columns sentence1, sentence2 (of pairs) and label."""

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from datasets import Dataset

from benchmarks.glue.tasks import Task

SUFFIXES = (".csv", ".json", ".jsonl")
_TEXT_COLUMNS = ("sentence1", "sentence2")
_METRICS = {"classes": ("accuracy", "f1", "matthews_correlation"), "numbers": ("pearson", "spearman")}
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_HIDDEN_LABELS = {"", "-1", "-1.0"}


def describe_own_task(
    name: str, files: Mapping[str, str], labels: Sequence[str] = (), metrics: Sequence[str] = ()
) -> Task:
    """Find out what the task is that is in files.

    Args:
        name: Name of the task.
        files: Path of the file of each split: `train`, `validation`, `test`.
        labels: Label names in the order of their ids. By default those of the training file (without one, of the
            validation file): whole numbers by size, other names by the alphabet. Where all labels are numbers and not
            all whole ones, the task is a regression.
        metrics: Names of its metrics; by default the accuracy, or both correlations for a regression.

    Raises:
        ValueError: If a file cannot be read, lacks a column or a label.
    """
    deciding = files.get("train") or files["validation"]
    columns = _read(Path(deciding))
    text_columns = tuple(column for column in _TEXT_COLUMNS if column in columns)
    if "label" not in columns:
        raise ValueError(f"{deciding} lacks the column label; it has {', '.join(columns)}.")
    if _TEXT_COLUMNS[0] not in columns:
        raise ValueError(f"{deciding} lacks the column sentence1; it has {', '.join(columns)}.")
    names = tuple(labels) or _label_names(deciding, columns["label"])
    allowed = _METRICS["classes" if names else "numbers"]
    for metric in metrics:
        if metric not in allowed or (metric == "f1" and len(names) != 2):
            kind = f"{len(names)} labels" if names else "a regression"
            raise ValueError(
                f"The metric {metric!r} is none for a task of {kind}; allowed: {', '.join(allowed)} (f1: two labels)."
            )
    if len(names) == 1:
        raise ValueError(f"{deciding} has the label {names[0]} only; name all of them with --labels.")
    return Task(
        name,
        text_columns,
        names,
        tuple(metrics) or (("accuracy",) if names else _METRICS["numbers"]),
        test_splits=("test",) if "test" in files else (),
    )


def read_own_file(task: Task, split: str, file: Path) -> Dataset:
    """Read one of the files of a task.

    Args:
        task: The task, from `describe_own_task`.
        split: Name of the split. A test split needs no labels: it has none where they are empty or -1.
        file: The file.

    Raises:
        ValueError: If the file cannot be read, has no rows, or a label is none of the task's.
    """
    columns = _read(file)
    kept = {
        name: pyarrow.array(_texts(file, name, columns[name]), pyarrow.string())
        for name in task.text_columns
        if name in columns
    }
    if "label" in columns:
        values = [_as_text(value) for value in columns["label"]]
        if split not in task.test_splits or not set(values) <= _HIDDEN_LABELS.difference(task.labels):
            labels = _numbers(file, values) if task.is_regression else _ids(file, values, task.labels)
            kept["label"] = pyarrow.array(labels, pyarrow.float32() if task.is_regression else pyarrow.int64())
    return Dataset(pyarrow.table(kept))


def _read(file: Path) -> dict[str, list[Any]]:
    """Return the columns of a file."""
    if file.suffix not in SUFFIXES:
        raise ValueError(f"{file} must end in one of {', '.join(SUFFIXES)}.")
    if not file.is_file():
        raise ValueError(f"There is no file {file}.")
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            columns = _read_csv(file, stream) if file.suffix == ".csv" else _read_json(file, stream.read())
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text: {error}") from error
    if not columns or not next(iter(columns.values())):
        raise ValueError(f"{file} has no rows.")
    return columns


def _read_csv(file: Path, stream: Iterable[str]) -> dict[str, list[Any]]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(stream, strict=True)
    try:
        header = next(reader, [])
        rows = []
        for row in reader:
            if len(row) != len(header) and row:
                where = f"{file}: the row that ends on line {reader.line_num}"
                raise ValueError(f"{where} has {len(row)} fields, the header has {len(header)}.")
            if row:
                rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV file: {error} on line {reader.line_num}.") from error
    return {name: [row[position] for row in rows] for position, name in enumerate(header)}


def _read_json(file: Path, text: str) -> dict[str, list[Any]]:
    """Read an array of objects, or an object a line."""
    is_array = text.lstrip()[:1] == "["
    # Not splitlines: a string of JSON may hold other characters that Python takes for the end of a line.
    parts = [(1, text)] if is_array else [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    parsed = []
    for first_line, part in parts:
        try:
            parsed.append(json.loads(part))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file} is not JSON: {error.msg} on line {first_line + error.lineno - 1}, column {error.colno}."
            ) from error
    rows = parsed[0] if is_array else parsed
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise ValueError(f"{file}: row {number} is not an object.")
        if row.keys() != rows[0].keys():
            raise ValueError(f"{file}: row {number} has the keys {', '.join(row)}, row 1 has {', '.join(rows[0])}.")
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _texts(file: Path, name: str, values: list[Any]) -> list[str]:
    for number, value in enumerate(values, start=1):
        if not isinstance(value, str):
            raise ValueError(f"{file}: {name} of row {number} must be a string, got {value!r}.")
    return values


def _as_text(label: Any) -> str:
    """Return a label as it would stand in a CSV file; `None` is an empty one."""
    if label is None:
        return ""
    return str(label).lower() if isinstance(label, bool) else str(label).strip()


def _label_names(file: str, column: list[Any]) -> tuple[str, ...]:
    """Return the names of the labels, none for a regression."""
    values = [_as_text(value) for value in column]
    _require_labels(Path(file), values)
    names = set(values)
    if all(_WHOLE_NUMBER.fullmatch(name) for name in names):
        return tuple(sorted(names, key=int))
    if all(_is_number(name) for name in names):
        return ()
    broken = [name for name in sorted(names) if re.search(r"[\t\r\n]", name)]
    if broken:
        raise ValueError(f"{file}: a label must not hold a tab or a line break, got {broken[0]!r}.")
    return tuple(sorted(names))


def _require_labels(file: Path, values: list[str]) -> None:
    empty = [number for number, value in enumerate(values, start=1) if not value]
    if empty:
        raise ValueError(f"{file}: {len(empty)} rows have no label, the first of them is row {empty[0]}.")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _numbers(file: Path, values: list[str]) -> list[float]:
    _require_labels(file, values)
    for number, value in enumerate(values, start=1):
        if not _is_number(value):
            raise ValueError(f"{file}: the task is a regression, but the label of row {number} is {value!r}.")
    return [float(value) for value in values]


def _ids(file: Path, values: list[str], labels: Sequence[str]) -> list[int]:
    _require_labels(file, values)
    ids = {label: index for index, label in enumerate(labels)}
    unknown = [(value, number) for number, value in enumerate(values, start=1) if value not in ids]
    if unknown:
        raise ValueError(
            f"{file}: the labels of the task are {', '.join(labels)}; {len(unknown)} rows have others, the first of "
            f"them row {unknown[0][1]} with {unknown[0][0]!r}."
        )
    return [ids[value] for value in values]
