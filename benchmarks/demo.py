"""The demonstration: each family, small and from scratch, on the tasks that this project generates itself.

python -m benchmarks.demo [--output_dir DIR]
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from transformers import HfArgumentParser

from benchmarks.glue.results import read_results
from benchmarks.minisuite import MINISUITE_TASKS, load_task
from benchmarks.minisuite.baselines import bag_of_words_accuracy

# Preset -> its arguments. A learning rate for training from scratch is far above one for fine-tuning.
MODELS = {"elmo-tiny": {"--learning_rate": "3e-3", "--num_train_epochs": "8", "--per_device_train_batch_size": "32"}}
WHAT_DECIDES = {
    "sentiment": "the words themselves",
    "word_order": "which of two words comes first",
    "agreement": "which noun is the subject",
    "word_sense": "the sense of a word in two sentences",
}


@dataclass
class DemoArguments:
    """Arguments of the demonstration."""

    output_dir: str = field(default="runs/demo", metadata={"help": "Folder for results and models."})


def main() -> None:
    """Trains every model on every task and prints what they reach beside two baselines."""
    (arguments,) = HfArgumentParser(DemoArguments).parse_args_into_dataclasses()
    start = time.perf_counter()
    for model, settings in MODELS.items():
        _train(model, settings, Path(arguments.output_dir, model))
    results = [result for model in MODELS for result in read_results(Path(arguments.output_dir, model))]
    console = Console()
    console.print(_table(results))
    console.print(
        "Accuracy on the validation split after the last epoch, one seed. The bag of words is a logistic regression "
        f"on word counts. {time.perf_counter() - start:.0f} s in all; results and models: {arguments.output_dir}/."
    )


def _train(model: str, settings: dict[str, str], output_dir: Path) -> None:
    # Every option of the launcher that it would otherwise ask or warn about.
    launch = ["--num_processes=1", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    launch += [f"--num_cpu_threads_per_process={os.cpu_count()}"]
    command = [sys.executable, "-m", "accelerate.commands.launch", *launch, "-m", "benchmarks.glue"]
    command += ["--suite", "minisuite", "--task_name", "all", "--model_name_or_path", model]
    command += ["--output_dir", str(output_dir), "--overwrite_output_dir"]
    status = subprocess.run([*command, *(part for setting in settings.items() for part in setting)]).returncode
    if status:
        sys.exit(status)  # what went wrong is said already


def _table(results: list[dict[str, Any]]) -> Table:
    table = Table(title="Accuracy (%)", title_justify="left")
    table.add_column("task")
    table.add_column("what decides it")
    for column in ("majority class", "bag of words", *MODELS):
        table.add_column(column, justify="right")
    by_task = {(result["task"], result["model"]): result for result in results}
    for name, task in MINISUITE_TASKS.items():
        runs = [by_task[name, model] for model in MODELS]
        scores = [runs[0]["majority_baseline"]["score"], bag_of_words_accuracy(load_task(name), task)]
        scores += [run["last"]["score"] for run in runs]
        table.add_row(name, WHAT_DECIDES[name], *(f"{100 * score:.1f}" for score in scores))
    return table


if __name__ == "__main__":
    main()
