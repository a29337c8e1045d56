"""What a pretraining run writes down: a line of JSON for each report as it goes, and one file at the end."""

import importlib.metadata
import json
import math
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator

import hf_lineage

from ..commands import hide_secrets, without_secrets
from ..files import atomic_file

RECORDS_FILE = "metrics.jsonl"
RESULTS_FILE = "results.json"
_PACKAGES = ("transformers", "torch", "accelerate", "datasets", "tokenizers", "numpy")


class Records:
    """The reports of a run, in a file with a JSON object a line.

    Args:
        folder: Where the file is.
        last_step: Step that the run goes on from: what an earlier attempt reported beyond it is dropped, for it is
            reported again.
    """

    def __init__(self, folder: Path, last_step: int) -> None:
        self.path = folder / RECORDS_FILE
        self.records = [record for record in _read(self.path) if record["step"] <= last_step] if last_step else []
        text = "".join(f"{json.dumps(record)}\n" for record in self.records)
        with atomic_file(self.path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def add(self, record: dict[str, Any]) -> None:
        """Adds a report.

        Raises:
            ValueError: If a number is NaN or infinite, which JSON does not have.
        """
        line = json.dumps(record, allow_nan=False)
        self.records.append(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def with_key(self, key: str) -> list[dict[str, Any]]:
        """Returns the reports that have something of that name."""
        return [record for record in self.records if key in record]


def standard_error(share: float, count: float) -> float:
    """Returns the standard error of a share of `count` independent trials."""
    return math.sqrt(share * (1 - share) / count)


def prediction_sums(name: str, logits: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
    """Returns the sum of the losses, the number of right answers and the number of all, as `{name}_loss` and so on."""
    return {
        f"{name}_loss": F.cross_entropy(logits.float(), labels, reduction="sum"),
        f"{name}_correct": (logits.argmax(-1) == labels).sum(),
        f"{name}_count": len(labels),
    }


def prediction_metrics(sums: dict[str, float], name: str, metric: str) -> dict[str, float]:
    """Returns loss, accuracy with its standard error, and count, from sums over all batches; nothing without any."""
    count = sums.get(f"{name}_count")
    if not count:
        return {}
    accuracy = sums[f"{name}_correct"] / count
    return {
        f"{metric}_loss": sums[f"{name}_loss"] / count,
        f"{metric}_accuracy": accuracy,
        f"{metric}_accuracy_standard_error": standard_error(accuracy, count),
        f"{metric}_count": count,
    }


def versions() -> dict[str, str]:
    """Returns the versions of what a run's numbers depend on."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"hf_lineage": hf_lineage.__version__, "python": platform.python_version(), **packages}


def describe_machine(accelerator: Accelerator) -> dict[str, Any]:
    """Returns what a run's speed depends on."""
    device = accelerator.device
    return {
        "system": platform.platform(),
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or None,
        "cpu_count": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "num_processes": accelerator.num_processes,
        "mixed_precision": accelerator.mixed_precision,
    }


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Writes the file that a run ends with.

    Raises:
        ValueError: If a number is NaN or infinite.
    """
    told = {"arguments": hide_secrets(results["arguments"]), "command": without_secrets(sys.orig_argv)}
    text = json.dumps({**results, **told}, indent=2, allow_nan=False)
    with atomic_file(folder / RESULTS_FILE) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break  # the run was killed in the middle of this line
    return records


__all__ = [
    "RECORDS_FILE",
    "RESULTS_FILE",
    "Records",
    "describe_machine",
    "prediction_metrics",
    "prediction_sums",
    "standard_error",
    "versions",
    "write_results",
]
