"""Results files as `benchmarks.glue` and `benchmarks.speed` write them, with everything that they may hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.glue.tasks import get_suite

Record = dict[str, Any]
PARTS = {"embeddings": 120_000, "encoder": 70_000, "classifier": 2_000}


def _epoch(task: Any, number: int, score: float, with_confusion: bool) -> Record:
    splits = task.validation_splits
    record: Record = {
        "epoch": number,
        "score": score,
        "validation": {
            split: {**dict.fromkeys(task.metrics, score), "loss": 0.5, "examples": 100} for split in splits
        },
    }
    if with_confusion and task.labels:
        size, right = len(task.labels), round(100 * max(score, 0))
        matrix = [[right if row == column else 100 - right for column in range(size)] for row in range(size)]
        for split in splits:
            record["validation"][split]["confusion_matrix"] = matrix
    return record


def _make_run(
    task: str = "sst2",
    seed: int = 1,
    scores: tuple[float, ...] = (0.6, 0.8, 0.7),
    model: str = "m",
    suite: str = "glue",
    bare: bool = False,
    arguments: Record | None = None,
    data: Record | None = None,
    **changes: Any,
) -> Record:
    description = get_suite(suite)[task]
    splits = description.validation_splits
    epochs = [_epoch(description, number, score, not bare) for number, score in enumerate(scores, start=1)]
    run: Record = {
        "benchmark": "benchmarks.glue",
        "suite": suite,
        "task": task,
        "model": model,
        "seed": seed,
        "best": max(epochs, key=lambda epoch: epoch["score"]),
        "last": epochs[-1],
        "epochs": epochs,
        "majority_baseline": {"label": 1, "score": 0.5},
        "evaluated_examples": dict.fromkeys(splits, 100),
        "data": {
            "origin": "somewhere",
            "splits": {split: {"path": split, "rows": 100, "is_subset": False} for split in ("train", *splits)},
            "missing_splits": [],
            "train_examples": 100,
            "train_was_cut": False,
            "max_length": 128,
            **(data or {}),
        },
        "parameters": {"total": 192_000, "trainable": 192_000},
        "wall_seconds": 12.0,
        "train_examples_per_second": 800.0,
        "arguments": {
            "model_name_or_path": model,
            "learning_rate": 1e-3,
            "seeds": str(seed),
            "task_name": task,
            "output_dir": "out",
            **(arguments or {}),
        },
        "command": ["/usr/bin/python3", "-m", "benchmarks.glue", "--model_name_or_path", model, "--seeds", "1,2"],
        "versions": {"torch": "2.13.0", "python": "3.11.7"},
        "git": {"commit": "0123456789abcdef", "has_changes": False},
        "platform": {
            "device": "cpu",
            "machine": "x86_64",
            "num_threads": 2,
            "num_processes": 1,
            "mixed_precision": "no",
        },
    }
    if not bare:
        run |= {
            "peak_memory_bytes": 512_000_000,
            "flops": {"forward_per_example": 12_000_000, "training_total": 3_600_000_000_000},
            "dev_selected": False,
            "tried": [],
            "stopped_early": False,
            "inference_latency_seconds": {"1": 0.0042, "32": 0.0008},
        }
        run["parameters"]["by_part"] = PARTS
    return {**run, **changes}


def _make_speed(**changes: Any) -> Record:
    times = {
        "ratio_median": 2.5,
        "ratio_min": 2.0,
        "ratio_max": 3.0,
        "baseline_seconds_median": 0.25,
        "candidate_seconds_median": 0.1,
    }
    case = {
        "name": "packed-training",
        "description": "A training step",
        "baseline": "transformers' AlbertModel",
        "candidate": "LineageAlbertModel",
        "wanted": 2.0,
        "is_fast_enough": True,
        "tolerance": 1e-5,
        "differences": {"loss": 2e-7},
        "facts": {"rows": 16},
        "pairs": 16,
        "wall": times,
        "cpu": times,
    }
    slower = {**times, "ratio_median": 0.8, "ratio_min": 0.7, "ratio_max": 0.9}
    cases = [case, {**case, "name": "short", "wanted": 1.5, "is_fast_enough": False, "wall": slower}]
    report = {
        "benchmark": "benchmarks.speed",
        "family": "albert",
        "date": "2026-11-30T00:00:00+00:00",
        "versions": {"torch": "2.13.0", "transformers": "5.24.0"},
        "platform": {"cpu": "A processor", "num_threads": 2},
        "cases": cases,
    }
    return {**report, **changes}


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Record]:
    """Make the results of a run; `bare=True` leaves out what older versions did not write."""
    return _make_run


@pytest.fixture(scope="session")
def make_speed() -> Callable[..., Record]:
    """Make the results of a measurement of speed."""
    return _make_speed


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write runs, each into a folder of its own, and other JSON beside them; return the folder of all."""

    def write_all(*runs: Record, **others: Record) -> Path:
        root = tmp_path_factory.mktemp("runs")
        for index, run in enumerate(runs):
            (root / str(index)).mkdir()
            (root / str(index) / "results.json").write_text(json.dumps(run), encoding="utf-8")
        for name, content in others.items():
            (root / f"{name}.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
        return root

    return write_all
