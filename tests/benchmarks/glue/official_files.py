"""Writes rows as the files of GLUE's official download."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.glue.tasks import Task

FOLDERS = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "qqp": "QQP",
    "stsb": "STS-B",
    "mnli": "MNLI",
    "qnli": "QNLI",
    "rte": "RTE",
    "wnli": "WNLI",
    "ax": "diagnostic",
}
NAMED_LABELS = ("mnli", "qnli", "rte", "ax")
FILES = {
    "train": "train.tsv",
    "validation": "dev.tsv",
    "test": "test.tsv",
    "validation_matched": "dev_matched.tsv",
    "validation_mismatched": "dev_mismatched.tsv",
    "test_matched": "test_matched.tsv",
    "test_mismatched": "test_mismatched.tsv",
}
# Columns of the labelled files, with {0} and {1} for the texts and {label} for the label.
LABELLED = {
    "sst2": {"sentence": "{0}", "label": "{label}"},
    "mrpc": {"Quality": "{label}", "#1 ID": "7{i}", "#2 ID": "8{i}", "#1 String": "{0}", "#2 String": "{1}"},
    "qqp": {"id": "{i}", "qid1": "1", "qid2": "2", "question1": "{0}", "question2": "{1}", "is_duplicate": "{label}"},
    "stsb": {
        "index": "{i}",
        "genre": "main-news",
        "filename": "f",
        "year": "2012",
        "old_index": "1",
        "source1": "none",
        "source2": "none",
        "sentence1": "{0}",
        "sentence2": "{1}",
        "score": "{label}",
    },
    "mnli": {
        "index": "{i}",
        "promptID": "1",
        "pairID": "1e",
        "genre": "fiction",
        "sentence1_binary_parse": "( x )",
        "sentence2_binary_parse": "( y )",
        "sentence1_parse": "(ROOT x)",
        "sentence2_parse": "(ROOT y)",
        "sentence1": "{0}",
        "sentence2": "{1}",
        "label1": "neutral",
        "gold_label": "{label}",
    },
    "qnli": {"index": "{i}", "question": "{0}", "sentence": "{1}", "label": "{label}"},
    "rte": {"index": "{i}", "sentence1": "{0}", "sentence2": "{1}", "label": "{label}"},
    "wnli": {"index": "{i}", "sentence1": "{0}", "sentence2": "{1}", "label": "{label}"},
}
TEST = {
    "cola": {"index": "{i}", "sentence": "{0}"},
    "sst2": {"index": "{i}", "sentence": "{0}"},
    "mrpc": {"index": "{i}", "#1 ID": "7{i}", "#2 ID": "8{i}", "#1 String": "{0}", "#2 String": "{1}"},
    "qqp": {"id": "{i}", "question1": "{0}", "question2": "{1}"},
    "stsb": {name: value for name, value in LABELLED["stsb"].items() if name != "score"},
    "mnli": {name: value for name, value in LABELLED["mnli"].items() if name not in ("label1", "gold_label")},
    "qnli": {"index": "{i}", "question": "{0}", "sentence": "{1}"},
    "rte": {"index": "{i}", "sentence1": "{0}", "sentence2": "{1}"},
    "wnli": {"index": "{i}", "sentence1": "{0}", "sentence2": "{1}"},
    "ax": {"index": "{i}", "sentence1": "{0}", "sentence2": "{1}"},
}


def _label(task: Task, label: Any) -> str:
    return task.labels[label] if task.name in NAMED_LABELS else str(label)


def write_official(data_dir: Path, task: Task, split: str, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a split of a task as the official download has it."""
    name = "diagnostic.tsv" if task.name == "ax" else FILES[split]
    path = data_dir / FOLDERS[task.name] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    is_test = split in task.test_splits
    lines = []
    if task.name == "cola" and not is_test:
        lines = [f"gj04\t{row['label']}\t{'' if row['label'] else '*'}\t{row['sentence']}" for row in rows]
    else:
        columns = (TEST if is_test else LABELLED)[task.name]
        lines.append("\t".join(columns))
        for index, row in enumerate(rows):
            values = {"{i}": str(index), "{label}": "" if is_test else _label(task, row["label"])}
            values |= {f"{{{position}}}": row[column] for position, column in enumerate(task.text_columns)}
            # Texts go in last, as they may hold anything.
            lines.append("\t".join(_fill(cell, values) for cell in columns.values()))
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def _fill(cell: str, values: dict[str, str]) -> str:
    if cell in values:
        return values[cell]
    return cell.replace("{i}", values["{i}"])
