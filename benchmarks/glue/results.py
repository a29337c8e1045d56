"""What a run leaves behind, as JSON; `benchmarks.report` makes tables of it."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

import hf_lineage
from benchmarks.glue.arguments import Arguments
from benchmarks.glue.data import TaskData, majority_label
from benchmarks.glue.metrics import TaskMetrics, score
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
        "git": git_state(),
        "platform": describe_platform(accelerator),
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


def git_state() -> dict[str, Any]:
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


def describe_platform(accelerator: Accelerator) -> dict[str, Any]:
    """Return what a run's times depend on."""
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


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: If it is not valid JSON, which has neither NaN nor infinity.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except ValueError as error:
        raise ValueError(f"{path} is not a results file: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def read_results(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the results of all runs in a folder and the folders in it, ordered by path.

    Raises:
        ValueError: If the folder holds none, or a results file is not valid JSON.
    """
    contents = [read_json(path) for path in sorted(Path(folder).rglob(RESULTS_FILE))]
    found = [content for content in contents if isinstance(content, dict) and content.get("benchmark") == _BENCHMARK]
    if not found:
        raise ValueError(f"No results of {_BENCHMARK} in {folder}: looked for files named {RESULTS_FILE}.")
    return found
