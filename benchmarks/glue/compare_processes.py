"""Evaluate an untrained model in one and in several processes and compare the metrics on every validation split.

python -m benchmarks.glue.compare_processes --data_dir DIR [--suite glue] [--task_name all] [--num_processes 1,2]
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from transformers import HfArgumentParser
from transformers.utils import logging as transformers_logging

from benchmarks.glue.arguments import DataArguments
from benchmarks.glue.data import TaskData, TextCollator, load_tasks, select_tasks
from benchmarks.glue.models import load_model_and_tokenizer
from benchmarks.glue.results import RESULTS_FILE, write_text
from hf_lineage.files import atomic_folder

_ROOT = Path(__file__).resolve().parents[2]
_SEED = 0
# The loss is a mean in another order of the same float32 logits.
_LOSS_TOLERANCE = 1e-5
_CENTERING_ROWS = 64
_CENTERING_LENGTH = 64


@dataclass
class CompareArguments:
    """Arguments of the command line."""

    data_dir: str = field(metadata={"help": "Folder of the suite's data."})
    suite: str = field(default="glue", metadata={"help": "glue or zh."})
    task_name: str = field(default="all", metadata={"help": "Tasks with commas between them, or all."})
    model_name_or_path: str = field(default="elmo-tiny", metadata={"help": "A preset; its weights are random."})
    num_processes: str = field(default="1,2", metadata={"help": "Numbers of processes with commas between them."})
    per_device_eval_batch_size: int = field(default=64, metadata={"help": "Evaluated examples a process and step."})
    max_length: int = field(default=64, metadata={"help": "Longest input in tokens."})
    output_file: str | None = field(default=None, metadata={"help": "JSON file for what was found."})


def main(args: list[str] | None = None) -> int:
    """Run the comparison and print a table.

    Args:
        args: Arguments of the command line, `sys.argv[1:]` by default.

    Returns:
        0 if every metric and number of examples is identical and the losses are equal up to 1e-5, else 1.
    """
    transformers_logging.disable_progress_bar()
    (arguments,) = HfArgumentParser(CompareArguments).parse_args_into_dataclasses(args)
    data = DataArguments(arguments.task_name, suite=arguments.suite, data_dir=arguments.data_dir)
    counts = [int(count) for count in arguments.num_processes.split(",")]
    table = Table("task", "split", "examples", "metrics", "loss", *(f"{count} processes" for count in counts[1:]))
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for task_data in load_tasks(select_tasks(data), data, needs_train=False):
            model = _save_untrained(task_data, arguments.model_name_or_path, Path(scratch, task_data.task.name))
            runs = [_evaluate(arguments, task_data.task.name, model, count, Path(scratch)) for count in counts]
            for split, reference in runs[0].items():
                differences = [_differences(reference, run[split]) for run in runs[1:]]
                metrics = {name: reference[name] for name in task_data.task.metrics}
                found.append(
                    {
                        "task": task_data.task.name,
                        "split": split,
                        "runs": [{"num_processes": n, **run[split]} for n, run in zip(counts, runs, strict=True)],
                        "differences": dict(zip(map(str, counts[1:]), differences, strict=True)),
                    }
                )
                table.add_row(
                    task_data.task.name,
                    split,
                    str(reference["examples"]),
                    ", ".join(f"{name} {value!r}" for name, value in metrics.items()),
                    repr(reference["loss"]),
                    *(", ".join(names) + " differ" if names else "identical" for names in differences),
                )
    Console(width=160).print(table)
    if arguments.output_file is not None:
        write_text(Path(arguments.output_file), json.dumps(found, indent=2, allow_nan=False) + "\n")
    return int(any(any(entry["differences"].values()) for entry in found))


def _save_untrained(data: TaskData, name: str, folder: Path) -> Path:
    """Save a model with random weights whose predictions are not all equal."""
    torch.manual_seed(_SEED)
    model, tokenizer = load_model_and_tokenizer(name, data.task)
    rows = next(iter(data.validation.values()))
    collator = TextCollator(tokenizer, data.task, _CENTERING_LENGTH)
    with torch.inference_mode():
        logits = model.eval()(**collator([rows[index] for index in range(min(len(rows), _CENTERING_ROWS))])).logits
    # A random head prefers one class in nearly every row; centred, its classes are about equally frequent.
    heads = [module for module in model.modules() if isinstance(module, nn.Linear) and module.bias is not None]
    heads[-1].bias.data -= logits.mean(dim=0)
    with atomic_folder(folder) as new:
        model.save_pretrained(new)
        tokenizer.save_pretrained(new)
    return folder


def _evaluate(
    arguments: CompareArguments, task: str, model: Path, num_processes: int, scratch: Path
) -> Mapping[str, dict[str, Any]]:
    """Return the metrics of each validation split, from a run in processes of their own."""
    output_dir = scratch / f"{num_processes}-processes"
    options = {
        "suite": arguments.suite,
        "data_dir": arguments.data_dir,
        "task_name": task,
        "model_name_or_path": model,
        "output_dir": output_dir,
        "num_train_epochs": 0,
        "seeds": _SEED,
        "per_device_eval_batch_size": arguments.per_device_eval_batch_size,
        "max_length": arguments.max_length,
    }
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(num_processes)]
    command = [
        *launch,
        "-m",
        "benchmarks.glue",
        *(part for key, value in options.items() for part in (f"--{key}", str(value))),
    ]
    # paths are the caller's, so that the working folder stays and the package is found all the same
    search_path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": search_path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    results = json.loads((output_dir / task / f"seed-{_SEED}" / RESULTS_FILE).read_text(encoding="utf-8"))
    if results["platform"]["num_processes"] != num_processes:
        raise RuntimeError(f"{results['platform']['num_processes']} instead of {num_processes} processes ran.")
    return results["best"]["validation"]


def _differences(reference: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of what differs."""
    names = [name for name in reference if name != "loss" and other.get(name) != reference[name]]
    return names + (["loss"] if abs(reference["loss"] - other["loss"]) > _LOSS_TOLERANCE else [])


if __name__ == "__main__":
    raise SystemExit(main())
