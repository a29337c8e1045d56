"""All runs of a command: every task with every seed, and every point of a grid; finished ones are not repeated."""

import functools
import hashlib
import json
import os
import shutil
import statistics
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from tqdm import tqdm

from benchmarks.glue.arguments import Arguments
from benchmarks.glue.checkpoints import RunFolder
from benchmarks.glue.data import TaskData
from benchmarks.glue.results import RESULTS_FILE, describe_run, package_versions, read_json, write_json
from benchmarks.glue.train import TOKENIZER_FOLDER, fine_tune

SETTINGS_FILE, TRIAL_FILE = "settings.json", "trial.json"
TRIALS_FOLDER = "trials"
# What may change when a command is repeated: none of it touches a score. (Of the data, its content must stay.)
FREE_SETTINGS = (
    "task_name",
    "data_dir",
    "train_file",
    "validation_file",
    "test_file",
    "predict",
    "seeds",
    "output_dir",
    "overwrite_output_dir",
    "dataloader_num_workers",
    "save_steps",
    "report_to",
    "logging_steps",
)


def run_suite(accelerator: Accelerator, loaded: Sequence[TaskData], arguments: Arguments) -> None:
    """Run every task with every seed and write a JSON for each.

    Args:
        accelerator: From `create_accelerator`.
        loaded: The data of the tasks.
        arguments: Everything the command was told.

    Raises:
        ValueError: If a folder holds runs of other settings; nothing is trained then.
    """
    for data in loaded:
        _on_main_process(accelerator, functools.partial(_open_task_folder, accelerator, data, arguments))
    for data in loaded:
        if arguments.fine_tuning.grid is None:
            for seed in arguments.fine_tuning.seed_list:
                folder = arguments.fine_tuning.run_dir(data.task.name, seed)
                _run(accelerator, data, arguments, seed, folder, RESULTS_FILE)
        else:
            _run_grid(accelerator, data, arguments)


def _run(
    accelerator: Accelerator, data: TaskData, arguments: Arguments, seed: int, folder: Path, results_file: str
) -> dict[str, Any]:
    """Return the results of one run: those in its folder, or else those of running it."""
    path = folder / results_file
    (is_finished,) = broadcast_object_list([path.exists()])
    if is_finished:
        if accelerator.is_main_process:
            tqdm.write(f"{data.task.name} {folder.name}: finished already")
    else:
        fine_tuned = fine_tune(accelerator, data, arguments, seed, folder)
        if accelerator.is_main_process:
            write_json(path, describe_run(accelerator, data, fine_tuned, arguments, seed))
    RunFolder(accelerator, folder).finish()
    return read_json(path)


def _run_grid(accelerator: Accelerator, data: TaskData, arguments: Arguments) -> None:
    """Run every point of a grid with every seed and keep the runs of the one with the best mean score."""
    settings = arguments.fine_tuning
    seeds = settings.seed_list
    finals = [settings.run_dir(data.task.name, seed) for seed in seeds]
    (is_finished,) = broadcast_object_list([all((final / RESULTS_FILE).exists() for final in finals)])
    if is_finished:
        if accelerator.is_main_process:
            tqdm.write(f"{data.task.name}: finished already")
            _remove_models_of_trials(settings.task_dir(data.task.name))
        return
    trials: list[tuple[Path, list[dict[str, Any]]]] = []
    tried: list[dict[str, Any]] = []
    for point in settings.grid_points:
        folder = settings.task_dir(data.task.name) / TRIALS_FOLDER / _name(point)
        at_point = arguments._replace(fine_tuning=settings.at(point))
        runs = [
            _run(accelerator, data, at_point, seed, folder / final.name, TRIAL_FILE)
            for seed, final in zip(seeds, finals, strict=True)
        ]
        trials.append((folder, runs))
        scores = [run["best"]["score"] for run in runs]
        tried.append({"settings": point, "scores": scores, "mean_score": statistics.fmean(scores)})
    best = max(range(len(tried)), key=lambda index: tried[index]["mean_score"])
    if accelerator.is_main_process:
        folder, runs = trials[best]
        for final, run in zip(finals, runs, strict=True):
            _move_model(folder / final.name / "model", final / "model")
            selection = {"dev_selected": True, "selected": tried[best]["settings"], "tried": tried}
            chosen = {**run["arguments"], "grid": settings.grid}
            write_json(final / RESULTS_FILE, {**run, "arguments": chosen, **selection})
        _remove_models_of_trials(settings.task_dir(data.task.name))
    accelerator.wait_for_everyone()


def _remove_models_of_trials(folder: Path) -> None:
    for model in (folder / TRIALS_FOLDER).glob("*/*/model"):
        shutil.rmtree(model)


def _name(point: dict[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in point.items())


def _move_model(source: Path, target: Path) -> None:
    if source.is_dir():  # not if an earlier attempt has moved it
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(source, target)


def _on_main_process(accelerator: Accelerator, function: Callable[[], None]) -> None:
    """Call a function in the main process, and raise a `ValueError` of its in every process."""
    failure: list[Any] = [None]
    if accelerator.is_main_process:
        try:
            function()
        except ValueError as error:
            failure = [error]
    (raised,) = broadcast_object_list(failure)
    if raised is not None:
        raise raised


def _open_task_folder(accelerator: Accelerator, data: TaskData, arguments: Arguments) -> None:
    """Require that all runs in a task's folder are of these settings, or write down of which they are going to be."""
    settings = arguments.fine_tuning
    folder, file = settings.task_dir(data.task.name), settings.task_dir(data.task.name) / SETTINGS_FILE
    if settings.overwrite_output_dir:
        _clear(folder, arguments)
    identity = _identity(accelerator, data, arguments)
    if file.exists():
        saved = read_json(file)
        _require_same(saved["identity"], identity, folder)
        changed = {name: new for name, new in package_versions().items() if saved["versions"].get(name) != new}
        if changed:
            warnings.warn(
                f"The runs in {folder} began with other versions than {changed}; they may differ in the last digits.",
                stacklevel=2,
            )
    elif any(folder.glob(f"seed-*/{RESULTS_FILE}")):
        raise ValueError(
            f"There are results in {folder}, but no {SETTINGS_FILE} that says of which settings: give another "
            "--output_dir, or --overwrite_output_dir."
        )
    else:
        write_json(file, {"identity": identity, "versions": package_versions()})


def _clear(folder: Path, arguments: Arguments) -> None:
    """Remove what a command is going to make anew; evaluation alone makes no model, so it removes none.

    Raises:
        ValueError: If the model that is to be trained on would be removed.
    """
    settings, model = arguments.fine_tuning, Path(arguments.model.model_name_or_path).resolve()
    runs = [settings.run_dir(folder.name, seed) for seed in settings.seed_list]
    if settings.num_train_epochs == 0:
        for run in runs:
            (run / RESULTS_FILE).unlink(missing_ok=True)
    else:
        removed = [*runs, folder / TRIALS_FOLDER]
        for path in removed:
            if path.resolve() in model.parents:
                raise ValueError(f"--overwrite_output_dir would remove {model}, from which the training starts.")
        for path in removed:
            shutil.rmtree(path, ignore_errors=True)
    if not any(folder.glob(f"seed-*/{RESULTS_FILE}")):
        (folder / SETTINGS_FILE).unlink(missing_ok=True)
        shutil.rmtree(folder / TOKENIZER_FOLDER, ignore_errors=True)


def _identity(accelerator: Accelerator, data: TaskData, arguments: Arguments) -> dict[str, Any]:
    """Return what must be the same of all runs in a folder."""
    given = arguments.as_dict()
    free = set(FREE_SETTINGS)
    if arguments.fine_tuning.grid is not None:
        free.remove("seeds")  # all of them choose together
    return {
        **{f"--{name}": value for name, value in given.items() if name not in free},
        "number of processes": accelerator.num_processes,
        "precision": accelerator.mixed_precision,
        "kind of device": accelerator.device.type,
        "data": {name: _digest(split) for name, split in data.splits.items()},
    }


def _digest(split: Any) -> str:
    digest = hashlib.sha256()
    for batch in split.iter(10_000):
        digest.update(json.dumps(batch, sort_keys=True).encode())
    return digest.hexdigest()


def _require_same(then: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raise a `ValueError` that names the first thing in which runs would not be as those in the folder."""
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            raise ValueError(
                f"The runs in {folder} have other settings: {name} was {then.get(name)!r} and is now "
                f"{now.get(name)!r}. Restore it, give another --output_dir, or start anew with --overwrite_output_dir."
            )
