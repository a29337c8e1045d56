"""GLUE's own TSV folders, as its download script leaves them.

A line is a row and a tab ends a field, whatever quotes stand in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from datasets import Dataset

from benchmarks.glue.tasks import GLUE_TASKS, Task

_SPLIT_FILES = {
    "train": ("train.tsv",),
    "validation": ("dev.tsv",),
    "test": ("test.tsv",),
    **{f"validation_{genre}": (f"dev_{genre}.tsv",) for genre in ("matched", "mismatched")},
    **{f"test_{genre}": (f"test_{genre}.tsv",) for genre in ("matched", "mismatched")},
}
_DIGITS = ("0", "1")
_MSR_TRAIN, _MSR_TEST, _MSR_DEV_IDS = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"
_NO_GOLD_LABEL = "-"
_MAX_NAMED_LINES = 10


@dataclass(frozen=True)
class _Layout:
    """How the files of a task look.

    Args:
        folders: Names that the task's folder may have, the official one first.
        text: Header of each text column.
        label: Header of the label's column.
        labels: What stands for each label, in the order of the ids; empty for a regression task.
        header: Column names of the labelled files, where they have no header line.
        files: File names of splits that are not called as those of the other tasks.
    """

    folders: tuple[str, ...]
    text: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    header: tuple[str, ...] | None = None
    files: Mapping[str, tuple[str, ...]] | None = None

    def file_names(self, split: str) -> tuple[str, ...]:
        return (self.files or _SPLIT_FILES).get(split, ())


_NLI_LABELS = GLUE_TASKS["mnli"].labels
_ENTAILMENT = GLUE_TASKS["rte"].labels

_LAYOUTS: dict[str, _Layout] = {
    "cola": _Layout(("CoLA",), ("sentence",), "label", _DIGITS, header=("source", "label", "mark", "sentence")),
    "sst2": _Layout(("SST-2",), ("sentence",), "label", _DIGITS),
    "mrpc": _Layout(
        ("MRPC",),
        ("#1 String", "#2 String"),
        "Quality",
        _DIGITS,
        files={
            "train": ("train.tsv", _MSR_TRAIN),
            "validation": ("dev.tsv", _MSR_TRAIN),
            "test": ("test.tsv", _MSR_TEST),
        },
    ),
    "qqp": _Layout(("QQP",), ("question1", "question2"), "is_duplicate", _DIGITS),
    "stsb": _Layout(("STS-B",), ("sentence1", "sentence2"), "score", ()),
    "mnli": _Layout(("MNLI",), ("sentence1", "sentence2"), "gold_label", _NLI_LABELS),
    "qnli": _Layout(("QNLI",), ("question", "sentence"), "label", _ENTAILMENT),
    "rte": _Layout(("RTE",), ("sentence1", "sentence2"), "label", _ENTAILMENT),
    "wnli": _Layout(("WNLI",), ("sentence1", "sentence2"), "label", _DIGITS),
    "ax": _Layout(
        ("diagnostic", "AX", "ax", "diagnostics", "MNLI", ""),
        ("sentence1", "sentence2"),
        "label",
        _NLI_LABELS,
        files={"test": ("diagnostic-full.tsv", "diagnostic.tsv", "AX.tsv")},
    ),
}
# The diagnostic set with its labels and categories has other headers than the one without.
_DIAGNOSTIC_FULL = _Layout((), ("Premise", "Hypothesis"), "Label", _NLI_LABELS)


def official_folders(task: Task, data_dir: Path) -> list[Path]:
    """Return the folders in which the task's TSV files may be; none for a task that is not GLUE's."""
    if GLUE_TASKS.get(task.name) != task:
        return []
    return [data_dir / name for name in dict.fromkeys((*_LAYOUTS[task.name].folders, task.name))]


def official_file_names(task: Task, split: str) -> tuple[str, ...]:
    """Return how the TSV file of a split may be called."""
    return _LAYOUTS[task.name].file_names(split)


def find_official(task: Task, data_dir: Path, split: str) -> Path | None:
    """Return the TSV file of a split, `None` if there is none."""
    for folder in official_folders(task, data_dir):
        for name in official_file_names(task, split):
            if (folder / name).is_file():
                return folder / name
    return None


def read_official(task: Task, split: str, file: Path) -> tuple[Dataset, list[int]]:
    """Read a TSV file.

    Rows of training and validation files that lack a field or have one too many, as QQP has, and rows of MNLI without
    a gold label are left out. Every row of a test file is needed, so there they are an error.

    Args:
        task: A task of GLUE.
        split: Name of the split.
        file: Its file, from `find_official`.

    Returns:
        The rows, in the columns and label ids of the Hub's dataset, and the line numbers of the rows left out. There
        is a `label` only where the file has labels.

    Raises:
        ValueError: If the file cannot be read as the task's, or a label is none of the task's; the message says where.
    """
    is_test = split in task.test_splits
    layout = _DIAGNOSTIC_FULL if file.name == "diagnostic-full.tsv" else _LAYOUTS[task.name]
    header, rows, numbers, bad = _read_rows(file, None if is_test else layout.header)
    needed = [*layout.text, *([] if is_test else [layout.label])]
    absent = [name for name in needed if name not in header]
    if absent:
        raise ValueError(f"{file} lacks the column {', '.join(absent)}; it has {', '.join(header)}.")
    if file.name == _MSR_TRAIN:
        rows, numbers = _select_msr(rows, numbers, header, file.with_name(_MSR_DEV_IDS), split == "validation")
    label_position = header.index(layout.label) if layout.label in header else None
    if label_position is not None and layout.labels:
        bad += [number for row, number in zip(rows, numbers, strict=True) if row[label_position] == _NO_GOLD_LABEL]
        kept = [row[label_position] != _NO_GOLD_LABEL for row in rows]
        rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
        numbers = [number for number, keep in zip(numbers, kept, strict=True) if keep]
    if is_test:
        _require_all_rows(file, header, rows, bad)
    columns = {
        column: pyarrow.array([row[header.index(name)] for row in rows], pyarrow.string())
        for column, name in zip(task.text_columns, layout.text, strict=True)
    }
    if label_position is not None:
        columns["label"] = _labels(file, [row[label_position] for row in rows], numbers, layout.labels)
    # Built from Arrow at once: typed features would go through every row in Python.
    return Dataset(pyarrow.table(columns)), sorted(bad)


def name_lines(numbers: Sequence[int]) -> str:
    """Return the first line numbers as text."""
    named = ", ".join(map(str, numbers[:_MAX_NAMED_LINES]))
    return f"{named}, …" if len(numbers) > _MAX_NAMED_LINES else named


def _read_rows(file: Path, header: Sequence[str] | None) -> tuple[list[str], list[list[str]], list[int], list[int]]:
    """Return the column names, the rows of as many fields, their line numbers, and those of the other rows."""
    try:
        # Only a line feed ends a row: texts may hold other characters that Python takes for the end of a line.
        with file.open(encoding="utf-8-sig", newline="\n") as lines:
            fields = [line.rstrip("\r\n").split("\t") for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read as UTF-8 text: {error}") from error
    while fields and fields[-1] == [""]:
        fields.pop()
    if not fields:
        raise ValueError(f"{file} is empty.")
    first = 1
    if header is None:
        header, fields, first = fields[0], fields[1:], 2
    rows, numbers, bad = [], [], []
    for number, row in enumerate(fields, start=first):
        if len(row) == len(header):
            rows.append(row)
            numbers.append(number)
        else:
            bad.append(number)
    return list(header), rows, numbers, bad


def _select_msr(
    rows: list[list[str]], numbers: list[int], header: list[str], ids_file: Path, is_validation: bool
) -> tuple[list[list[str]], list[int]]:
    """Return the rows of the training or the validation split, which share a file."""
    if not ids_file.is_file():
        raise ValueError(f"{ids_file} is missing: it says which pairs of {_MSR_TRAIN} are the validation split.")
    # One value per read: the ids file has two columns and no header.
    _, pairs, _, _ = _read_rows(ids_file, ("#1 ID", "#2 ID"))
    held_out = {tuple(pair) for pair in pairs}
    first, second = header.index("#1 ID"), header.index("#2 ID")
    chosen = [
        (row, number)
        for row, number in zip(rows, numbers, strict=True)
        if ((row[first], row[second]) in held_out) == is_validation
    ]
    return [row for row, _ in chosen], [number for _, number in chosen]


def _require_all_rows(file: Path, header: list[str], rows: list[list[str]], bad: list[int]) -> None:
    if bad:
        raise ValueError(
            f"{file}: {len(bad)} rows are damaged, on the lines {name_lines(bad)}; every row of a test file is needed."
        )
    for name in ("index", "id"):
        if name in header:
            found = [row[header.index(name)] for row in rows]
            if found != [str(number) for number in range(len(rows))]:
                raise ValueError(f"{file}: the column {name} must count from 0 to {len(rows) - 1} in this order.")


def _labels(file: Path, values: list[str], numbers: list[int], labels: Sequence[str]) -> pyarrow.Array:
    if not labels:
        try:
            return pyarrow.array([float(value) for value in values], pyarrow.float32())
        except ValueError:
            number = next(number for value, number in zip(values, numbers, strict=True) if not _is_float(value))
            raise ValueError(f"{file}: the score on line {number} is not a number.") from None
    ids = {label: index for index, label in enumerate(labels)}
    unknown = [(value, number) for value, number in zip(values, numbers, strict=True) if value not in ids]
    if unknown:
        raise ValueError(
            f"{file}: the labels must be {', '.join(labels)}, got {unknown[0][0]!r} on line {unknown[0][1]} "
            f"({len(unknown)} rows have such labels)."
        )
    return pyarrow.array([ids[value] for value in values], pyarrow.int64())


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
