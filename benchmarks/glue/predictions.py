"""Predictions for test splits: files as the GLUE leaderboard takes them, and the same for other suites."""

import json
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from datasets import Dataset
from torch.utils.data import DataLoader

from benchmarks.glue.arguments import Arguments
from benchmarks.glue.data import TaskData, TextCollator, evaluation_loader
from benchmarks.glue.evaluation import evaluate_logits, predict
from benchmarks.glue.leaderboard import HEADER, PREDICTION_FILES, check_predictions, prediction_file
from benchmarks.glue.models import checked_max_length, load_model_and_tokenizer
from benchmarks.glue.results import RESULTS_FILE, write_text
from benchmarks.glue.tasks import Task, find_task
from hf_lineage.files import atomic_file

FOLDER = "predictions"
RECORD_FILE = "predictions.json"
SUBMISSION_FILE = "submission.zip"


@dataclass(frozen=True)
class Predictor:
    """The model that predicts a task's test splits.

    Args:
        model: Its folder, or its name where it was only evaluated.
        seed: Seed of its run.
        validation_score: Its score on validation, by which it was chosen among the seeds.
    """

    model: str
    seed: int
    validation_score: float


def predict_tests(accelerator: Accelerator, loaded: Sequence[TaskData], arguments: Arguments) -> None:
    """Predict the test splits of every task and write them to OUTPUT_DIR/predictions.

    A task of GLUE is written under the leaderboard's name and label strings, one of another suite as `<task>.tsv`
    (`<task>-<split>.tsv` where it has several test splits) with its label names. `predictions.json` beside them says
    which model predicted each file and, where the labels of the test split are known, its metrics. Of GLUE,
    `submission.zip` holds all files that are in the folder, those of earlier calls too.

    Args:
        accelerator: The run's accelerator.
        loaded: The tasks, trained or evaluated already.
        arguments: What the run was told.

    Raises:
        ValueError: If a run has kept no model.
    """
    folder = Path(arguments.fine_tuning.output_dir, FOLDER)
    accelerator.wait_for_everyone()
    for data in loaded:
        if data.tests:
            _predict_task(accelerator, data, choose_predictor(data.task, arguments), arguments, folder)
    if accelerator.is_main_process and arguments.data.suite == "glue":
        write_submission(folder)


def choose_predictor(task: Task, arguments: Arguments) -> Predictor:
    """Return the kept model of the seed that scored best on validation, the first of equals in the order of the seeds.

    Raises:
        ValueError: If none was kept.
    """
    settings = arguments.fine_tuning
    only_evaluated = settings.num_train_epochs == 0
    kept = "last" if settings.save_model == "last" else "best"
    candidates = []
    for seed in settings.seed_list:
        run_dir = settings.run_dir(task.name, seed)
        model = arguments.model.model_name_or_path if only_evaluated else str(run_dir / "model")
        if only_evaluated or Path(model).is_dir():
            results = json.loads((run_dir / RESULTS_FILE).read_text(encoding="utf-8"))
            candidates.append(Predictor(model, seed, results[kept]["score"]))
    if not candidates:
        raise ValueError(f"No model of {task.name!r} was kept to predict with: --save_model must be best or last.")
    return max(candidates, key=lambda candidate: candidate.validation_score)


def _predict_task(
    accelerator: Accelerator, data: TaskData, predictor: Predictor, arguments: Arguments, folder: Path
) -> None:
    with accelerator.local_main_process_first():
        model, tokenizer = load_model_and_tokenizer(predictor.model, data.task, trained_head=True)
    max_length = checked_max_length(arguments.data.max_length, tokenizer, model.config, predictor.model)
    collator = TextCollator(tokenizer, data.task, max_length)
    loaders = {
        name: accelerator.prepare(prediction_loader(split, collator, arguments)) for name, split in data.tests.items()
    }
    model = accelerator.prepare_model(model, evaluation_mode=True)
    for name, split in data.tests.items():
        logits = predict_in_order(accelerator, model, loaders[name])
        if accelerator.is_main_process:
            # A diagnostic set is predicted by another task's model, but has its own metrics.
            scored = find_task(arguments.data.suite, name) or data.task
            _write_split(data.task, scored, name, split, logits, predictor, folder)
    accelerator.free_memory()


@dataclass(frozen=True)
class _PositionCollator:
    """Makes batches whose `labels` are the positions of their rows in the split, shape `(batch,)`, int64."""

    collator: TextCollator

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        positions = torch.tensor([example["position"] for example in examples], dtype=torch.int64)
        return {**self.collator.encode(examples), "labels": positions}


def prediction_loader(split: Dataset, collator: TextCollator, arguments: Arguments) -> DataLoader:
    """Return batches of a test split from its longest row to its shortest; `labels` are the rows' positions."""
    columns = {column: split[column][:] for column in collator.task.text_columns}
    rows = Dataset.from_dict({**columns, "position": list(range(len(split)))})
    return evaluation_loader(rows, collator, arguments.fine_tuning, _PositionCollator(collator))


def predict_in_order(accelerator: Accelerator, model: torch.nn.Module, loader: Any) -> torch.Tensor:
    """Predict every row of a test split.

    Args:
        accelerator: The run's accelerator.
        model: The prepared model.
        loader: A prepared loader from `prediction_loader`.

    Returns:
        The logits `(rows, labels)`, float32, in the order of the split.

    Raises:
        RuntimeError: If a row was predicted twice or not at all.
    """
    logits, positions = predict(accelerator, model, loader)
    order = positions.argsort()
    if not torch.equal(positions[order], torch.arange(len(loader.dataset))):
        raise RuntimeError(f"{len(positions)} predictions do not cover the {len(loader.dataset)} rows once each.")
    return logits[order]


def _write_split(
    task: Task, scored: Task, name: str, split: Dataset, logits: torch.Tensor, predictor: Predictor, folder: Path
) -> None:
    official = prediction_file(task, name)
    file_name = official.name if official else f"{task.name}{f'-{name}' if len(task.test_splits) > 1 else ''}.tsv"
    rows = render_predictions(task, logits, official.labels if official else task.labels)
    text = "".join(f"{line}\n" for line in (HEADER, *(f"{index}\t{row}" for index, row in enumerate(rows))))
    faults = check_predictions(official, text.encode()) if official else []
    write_text(folder / file_name, text)
    record: dict[str, Any] = {"split": name, "rows": len(rows), **asdict(predictor)}
    message = f"{folder / file_name}: {len(rows)} predictions of seed {predictor.seed}, validation score "
    message += f"{predictor.validation_score:.4f}"
    if "label" in split.column_names:
        dtype = torch.float32 if task.is_regression else torch.int64
        metrics = evaluate_logits(logits, torch.tensor(split["label"][:], dtype=dtype), scored)
        record["metrics"] = metrics
        message += "; " + ", ".join(f"{metric} {metrics[metric]:.4f}" for metric in scored.metrics)
    _add_record(folder / RECORD_FILE, file_name, record)
    print(message)
    if faults:
        warnings.warn(f"{file_name} would not be taken by the leaderboard: {'; '.join(faults)}", stacklevel=2)


def render_predictions(task: Task, logits: torch.Tensor, labels: Sequence[str]) -> list[str]:
    """Return what is written for each row.

    Args:
        task: The task.
        logits: Shape `(rows, labels)`.
        labels: What stands for each label. Numbers of a task with a range are clipped to it and have three decimals,
            others six significant digits.
    """
    if not task.is_regression:
        return [labels[index] for index in logits.argmax(dim=-1).tolist()]
    numbers = logits.squeeze(-1).double()
    if task.label_range is None:
        return [f"{number:.6g}" for number in numbers.tolist()]
    # Zero is added for the sign of a negative zero, which clipping keeps.
    return [f"{number:.3f}" for number in (numbers.clamp(*task.label_range) + 0.0).tolist()]


def _add_record(path: Path, file_name: str, record: dict[str, Any]) -> None:
    records = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    write_text(path, json.dumps({**records, file_name: record}, indent=2, allow_nan=False) + "\n")


def write_submission(folder: Path) -> Path:
    """Zip the leaderboard's files that a folder holds to `submission.zip` in it; a warning names those it lacks."""
    present = [file.name for file in PREDICTION_FILES if (folder / file.name).is_file()]
    with atomic_file(folder / SUBMISSION_FILE) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in present:
            # A fixed date, so that equal predictions give equal archives.
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16  # or nobody may read what is unpacked
            archive.writestr(entry, (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    missing = [file.name for file in PREDICTION_FILES if file.name not in present]
    if missing:
        warnings.warn(
            f"{folder / SUBMISSION_FILE} lacks {', '.join(missing)}; the leaderboard wants all "
            f"{len(PREDICTION_FILES)} files.",
            stacklevel=2,
        )
    return folder / SUBMISSION_FILE
