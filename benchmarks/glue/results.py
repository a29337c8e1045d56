"""What a run leaves behind, as JSON, and tables of it."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

import hf_lineage
from benchmarks.glue.arguments import Arguments
from benchmarks.glue.data import TaskData, majority_label
from benchmarks.glue.metrics import METRICS, TaskMetrics, score
from benchmarks.glue.tasks import FILES_SUITE, find_task, get_suite
from benchmarks.glue.train import FineTuned
from hf_lineage.files import atomic_file

RESULTS_FILE = "results.json"
_BENCHMARK = "benchmarks.glue"
_PACKAGES = (
    "transformers",
    "torch",
    "accelerate",
    "datasets",
    "tokenizers",
    "evaluate",
    "scikit-learn",
    "scipy",
    "numpy",
)
# Arguments that may differ between runs of one table row.
_NOT_SETTINGS = (
    "task_name",
    "seeds",
    "output_dir",
    "overwrite_output_dir",
    "save_model",
    "dataloader_num_workers",
    "save_steps",
    "report_to",
    "logging_steps",
    "predict",
)


def describe_run(
    accelerator: Accelerator, data: TaskData, fine_tuned: FineTuned, arguments: Arguments, seed: int
) -> dict[str, Any]:
    """Collect what one run scored and everything that is needed to repeat it."""
    train_rows = len(data.train) if data.train is not None else 0
    costs = fine_tuned.costs
    return {
        "benchmark": _BENCHMARK,
        "suite": arguments.data.suite,
        "task": data.task.name,
        "model": arguments.model.model_name_or_path,
        "seed": seed,
        "best": fine_tuned.best,
        "last": fine_tuned.epochs[-1],
        "epochs": [_without_matrices(record) for record in fine_tuned.epochs],
        "stopped_early": fine_tuned.stopped_early,
        "dev_selected": False,
        "tried": [],
        "majority_baseline": majority_baseline(data),
        "evaluated_examples": {name: len(split) for name, split in data.validation.items()},
        "data": {
            "origin": data.origin,
            "splits": {name: dataclasses.asdict(source) for name, source in data.sources.items()},
            "missing_splits": list(data.missing_splits),
            "train_examples": fine_tuned.train_examples,
            "train_was_cut": 0 < fine_tuned.train_examples < train_rows,
            "max_length": fine_tuned.max_length,
        },
        "parameters": fine_tuned.parameters,
        "flops": {"forward_per_example": costs.forward_flops, "training_total": fine_tuned.train_flops},
        "inference_latency_seconds": {str(size): seconds for size, seconds in costs.latency_seconds.items()},
        "peak_memory_bytes": fine_tuned.peak_memory_bytes,
        "wall_seconds": fine_tuned.wall_seconds,
        "train_examples_per_second": fine_tuned.train_examples_per_second,
        "eval_examples_per_second": fine_tuned.eval_examples_per_second,
        "arguments": {name: value for part in arguments for name, value in dataclasses.asdict(part).items()},
        "command": sys.orig_argv,
        "versions": package_versions(),
        "git": _git_state(),
        "platform": _describe_platform(accelerator),
        "model_config": json.loads(fine_tuned.config.to_json_string(use_diff=False)),
    }


def _without_matrices(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of an epoch without what only those of the best and the last have."""
    validation = {
        split: {name: value for name, value in metrics.items() if name != "confusion_matrix"}
        for split, metrics in record["validation"].items()
    }
    return {**record, "validation": validation}


def majority_baseline(data: TaskData) -> dict[str, Any]:
    """Return the metrics of always predicting the most frequent label of the training split (regression: its mean).

    Returns:
        `label`, `label_from` (the split whose label it is: without a training split the first validation split),
        `validation` (the metrics of each split) and `score`.
    """
    label_from = data.task.train_split if data.train is not None else next(iter(data.validation))
    label = majority_label(data.task, data.splits[label_from])
    validation = {}
    for name, split in data.validation.items():
        metrics = TaskMetrics(data.task)
        metrics.add_batch([label] * len(split), split["label"][:])
        with warnings.catch_warnings():
            # That correlations of a constant are undefined is the point here.
            warnings.simplefilter("ignore")
            validation[name] = metrics.compute()
    return {
        "label": label,
        "label_from": label_from,
        "validation": validation,
        "score": statistics.fmean(score(metrics, data.task) for metrics in validation.values()),
    }


def package_versions() -> dict[str, str]:
    """Return the versions of what a run's numbers depend on."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"hf_lineage": hf_lineage.__version__, "python": platform.python_version(), **packages}


def _git_state() -> dict[str, Any]:
    """Return the checkout's commit and whether files differ from it; both `None` outside a checkout."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain")
    return {"commit": git("rev-parse", "HEAD"), "has_changes": None if status is None else bool(status)}


def _describe_platform(accelerator: Accelerator) -> dict[str, Any]:
    is_cuda = accelerator.device.type == "cuda"
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "device": str(accelerator.device.type),
        "device_name": torch.cuda.get_device_name(accelerator.device) if is_cuda else platform.processor() or None,
        "cpu_count": os.cpu_count(),
        "num_processes": accelerator.num_processes,
        "num_threads": torch.get_num_threads(),
        "mixed_precision": accelerator.mixed_precision,
    }


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is never there in part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file of JSON so that it is never there in part.

    Raises:
        ValueError: If a number is NaN or infinite, which JSON does not have.
    """
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of JSON.

    Raises:
        ValueError: If it is no valid JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a results file: {error}") from error


def read_results(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the results of all runs in a folder and the folders in it, ordered by path.

    Raises:
        ValueError: If the folder holds none, or a results file is not valid JSON.
    """
    found = []
    for path in sorted(Path(folder).rglob(RESULTS_FILE)):
        content = read_json(path)
        if isinstance(content, dict) and content.get("benchmark") == _BENCHMARK:
            found.append(content)
    if not found:
        raise ValueError(f"No results of {_BENCHMARK} in {folder}: looked for files named {RESULTS_FILE}.")
    return found


def render_table(results: Sequence[dict[str, Any]]) -> str:
    """Render runs as a Markdown table that also reads well as plain text.

    Runs that differ only in their seed share a row. Scores and metrics are multiplied by 100; ± is the standard
    deviation over seeds. Below it stands the mean over the tasks of each model that has several.

    Args:
        results: From `read_results`.
    """
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        groups[json.dumps([result["suite"], result["task"], _settings(result)], sort_keys=True)].append(result)
    runs = sorted(groups.values(), key=_row_order)
    header = ["task", "model", "score (best epoch)", "score (last epoch)", "majority", "metrics (best epoch)"]
    rows = [[*header, "examples", "seeds", "notes"], *(_row(group, runs) for group in runs)]
    notes = [
        "Scores are 100 x the mean of the task's metrics on the validation splits; the best epoch is chosen on them.",
        *_averages(runs),
    ]
    return "\n".join([*_align(rows), "", *notes]) + "\n"


def _settings(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result["arguments"].items() if name not in _NOT_SETTINGS}


def _row_order(group: list[dict[str, Any]]) -> tuple[str, int, str, str]:
    suite, task = group[0]["suite"], group[0]["task"]
    position = 0 if suite == FILES_SUITE else list(get_suite(suite)).index(task)
    return suite, position, task, group[0]["model"]


def _row(group: list[dict[str, Any]], runs: list[list[dict[str, Any]]]) -> list[str]:
    first = group[0]
    baseline = first["majority_baseline"]
    return [
        first["task"],
        first["model"],
        _mean_and_spread([result["best"]["score"] for result in group]),
        _mean_and_spread([result["last"]["score"] for result in group]),
        _mean_and_spread([baseline["score"]]) if baseline else "-",
        _metrics_cell(group),
        " + ".join(str(count) for count in first["evaluated_examples"].values()),
        ", ".join(str(seed) for seed in sorted(result["seed"] for result in group)),
        "; ".join([*_data_notes(first), *_differing_settings(first, runs)]),
    ]


def _mean_and_spread(values: Sequence[float]) -> str:
    mean = f"{100 * statistics.fmean(values):.1f}"
    return f"{mean} ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else mean


def _metrics_cell(group: list[dict[str, Any]]) -> str:
    splits = list(group[0]["best"]["validation"])
    task = find_task(group[0]["suite"], group[0]["task"])
    names = task.metrics if task else [name for name in group[0]["best"]["validation"][splits[0]] if name in METRICS]
    cells = []
    for split in splits:
        for metric in names:
            mean = statistics.fmean(result["best"]["validation"][split][metric] for result in group)
            cells.append(f"{f'{split} ' if len(splits) > 1 else ''}{metric} {100 * mean:.1f}")
    return ", ".join(cells)


def _data_notes(result: dict[str, Any]) -> list[str]:
    data = result["data"]
    notes = [
        f"{name} is a subset ({split['rows']} rows)" for name, split in data["splits"].items() if split["is_subset"]
    ]
    if data["train_was_cut"]:
        notes.append(f"trained on {data['train_examples']} examples")
    if not data["train_examples"]:
        notes.append("evaluated only")
    return notes + [f"no {name}" for name in data["missing_splits"]]


def _differing_settings(result: dict[str, Any], runs: list[list[dict[str, Any]]]) -> list[str]:
    """Return the arguments that tell a row from others of the same task and model."""
    key, own = ("suite", "task", "model"), _settings(result)
    others = [_settings(group[0]) for group in runs if all(group[0][name] == result[name] for name in key)]
    return [f"{name}={own[name]}" for name in own if any(other.get(name) != own[name] for other in others)]


def _averages(runs: list[list[dict[str, Any]]]) -> list[str]:
    """Return one line for each model that has several tasks and one row for each of them."""
    scores: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for group in runs:
        mean = statistics.fmean(result["best"]["score"] for result in group)
        scores[group[0]["model"]].append((group[0]["task"], mean))
    lines = []
    for model, pairs in scores.items():
        by_task = dict(pairs)
        # With several rows of one task, a mean would have to pick some of them by their score.
        if len(by_task) == len(pairs) > 1:
            line = f"Mean of {model} over {len(pairs)} tasks: {100 * statistics.fmean(by_task.values()):.1f}"
            if by_task.pop("wnli", None) is not None:
                without = 100 * statistics.fmean(by_task.values())
                line += f"; {without:.1f} without wnli, whose validation split contradicts its training split"
            lines.append(f"{line}.")
    return lines


def _align(rows: list[list[str]]) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
