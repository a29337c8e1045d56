"""The format in which gluebenchmark.com takes predictions, and what is wrong with files that should have it."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.glue.tasks import GLUE_TASKS, Task
from hf_lineage.archives import checked_members

HEADER = "index\tprediction"
_DIGITS = ("0", "1")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_MAX_FAULTS = 5


@dataclass(frozen=True)
class PredictionFile:
    """A file of a submission.

    Args:
        name: Its name.
        task: Name of the task whose model predicts it.
        split: Name of the split, or of the diagnostic set.
        rows: Number of predictions.
        labels: What stands for each label, in the order of the ids; empty where the predictions are numbers.
    """

    name: str
    task: str
    split: str
    rows: int
    labels: tuple[str, ...]


_NLI_LABELS = GLUE_TASKS["mnli"].labels
_ENTAILMENT = GLUE_TASKS["rte"].labels

PREDICTION_FILES: tuple[PredictionFile, ...] = (
    PredictionFile("CoLA.tsv", "cola", "test", 1063, _DIGITS),
    PredictionFile("SST-2.tsv", "sst2", "test", 1821, _DIGITS),
    PredictionFile("MRPC.tsv", "mrpc", "test", 1725, _DIGITS),
    PredictionFile("STS-B.tsv", "stsb", "test", 1379, ()),
    PredictionFile("QQP.tsv", "qqp", "test", 390_965, _DIGITS),
    PredictionFile("MNLI-m.tsv", "mnli", "test_matched", 9796, _NLI_LABELS),
    PredictionFile("MNLI-mm.tsv", "mnli", "test_mismatched", 9847, _NLI_LABELS),
    PredictionFile("QNLI.tsv", "qnli", "test", 5463, _ENTAILMENT),
    PredictionFile("RTE.tsv", "rte", "test", 3000, _ENTAILMENT),
    PredictionFile("WNLI.tsv", "wnli", "test", 146, _DIGITS),
    PredictionFile("AX.tsv", "mnli", "ax", 1104, _NLI_LABELS),
)


def prediction_file(task: Task, split: str) -> PredictionFile | None:
    """Return the leaderboard's file for a split, `None` if it has none."""
    if GLUE_TASKS.get(task.name) != task:
        return None
    return next((file for file in PREDICTION_FILES if (file.task, file.split) == (task.name, split)), None)


def check_submission(path: Path, may_be_partial: bool = False) -> list[str]:
    """Check a folder or zip archive of predictions row by row.

    Args:
        path: The folder or archive.
        may_be_partial: Whether files may be missing.

    Returns:
        The faults, none if the leaderboard's format is met.

    Raises:
        ValueError: If there is neither a folder nor a zip archive.
    """
    faults: list[str] = []
    contents: dict[str, bytes] = {}
    for name, content in _read_members(path):
        if name in contents:
            faults.append(f"{name}: is there twice")
        contents[name] = content
    known = {file.name: file for file in PREDICTION_FILES}
    faults += [f"{name}: is not a file of the leaderboard" for name in contents if name not in known]
    for name, file in known.items():
        if name in contents:
            faults += [f"{name}: {fault}" for fault in check_predictions(file, contents[name])]
        elif not may_be_partial:
            faults.append(f"{name}: is missing")
    if not contents.keys() & known.keys():
        faults.append(f"{path} holds no predictions")
    return faults


def _read_members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive by their names in it, or the TSV and other visible files of a folder."""
    if path.is_dir():
        for file in sorted(path.iterdir()):
            # What this project writes beside the predictions is no part of them.
            if file.is_file() and file.suffix not in (".zip", ".json") and not file.name.startswith("."):
                yield file.name, file.read_bytes()
        return
    if not path.is_file():
        raise ValueError(f"There is no file or folder {path}.")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is neither a folder nor a zip archive.")
    try:
        with zipfile.ZipFile(path) as archive:
            for member in checked_members(archive, str(path)):
                yield member.filename, archive.read(member)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read as a zip archive: {error}") from error


def check_predictions(file: PredictionFile, content: bytes) -> list[str]:
    """Check the content of one file row by row.

    Args:
        file: Which file it should be.
        content: Its bytes.

    Returns:
        The faults: those of rows with their line numbers, and of these the first five with the number of all.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"is not UTF-8 text: {error}"]
    # A line feed alone ends a row, as rows are written; a carriage return would be part of the label.
    lines = text.removesuffix("\n").split("\n")
    faults = [] if lines[0] == HEADER else [f"line 1: the header must be {HEADER!r}, got {lines[0]!r}"]
    if len(lines) - 1 != file.rows:
        faults.append(f"there must be {file.rows} rows, got {len(lines) - 1}")
    of_rows = [
        f"line {index + 2}: {fault}"
        for index, line in enumerate(lines[1:])
        for fault in _row_faults(file, index, line)
    ]
    if len(of_rows) > _MAX_FAULTS:
        of_rows = [*of_rows[:_MAX_FAULTS], f"… {len(of_rows)} faults of rows in all"]
    return faults + of_rows


def _row_faults(file: PredictionFile, index: int, line: str) -> list[str]:
    fields = line.split("\t")
    if len(fields) != 2:
        return [f"must be an index, a tab and a prediction, got {line!r}"]
    faults = []
    if fields[0] != str(index):
        known = "" if _WHOLE_NUMBER.fullmatch(fields[0]) else ", which is no whole number"
        faults.append(f"the index must be {index}, got {fields[0]!r}{known}")
    return faults + _label_faults(file.labels, fields[1])


def _label_faults(labels: Sequence[str], prediction: str) -> list[str]:
    if labels:
        return [] if prediction in labels else [f"the prediction must be {' or '.join(labels)}, got {prediction!r}"]
    if not _NUMBER.fullmatch(prediction) or not 0 <= float(prediction) <= 5:
        return [f"the prediction must be a number from 0 to 5, got {prediction!r}"]
    return []
