"""The demonstration: every family and two of transformers' own models, small and from scratch, on the embedded tasks.

python -m benchmarks.demo [--output_dir DIR]
"""

import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
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
MODELS = {
    "elmo-tiny": {"--learning_rate": "3e-3", "--num_train_epochs": "6"},
    "xlnet-tiny": {"--learning_rate": "1e-3", "--num_train_epochs": "10"},
    "albert-tiny": {"--learning_rate": "1e-3", "--num_train_epochs": "11"},
    "bert-tiny": {"--learning_rate": "1e-3", "--num_train_epochs": "8"},
    "gpt2-tiny": {"--learning_rate": "1e-3", "--num_train_epochs": "8"},
}
WHAT_DECIDES = {
    "sentiment": "the words themselves",
    "word_order": "which of two words comes first",
    "agreement": "which noun is the subject",
    "word_sense": "the sense of a word in two sentences",
}

_TABLE_WIDTH = 130  # where there is no terminal whose width counts


@dataclass
class DemoArguments:
    """Arguments of the demonstration."""

    output_dir: str = field(default="runs/demo", metadata={"help": "Folder for results and models."})


def main() -> None:
    """Trains every model on every task and prints what they reach beside two baselines."""
    (arguments,) = HfArgumentParser(DemoArguments).parse_args_into_dataclasses()
    start, output_dir = time.perf_counter(), Path(arguments.output_dir)
    _train_all(output_dir)
    results = [result for model in MODELS for result in read_results(output_dir / model)]
    console = Console(width=None if sys.stdout.isatty() else _TABLE_WIDTH)
    console.print(_table(results))
    console.print(
        "Accuracy on the validation split after the last epoch, one seed. The bag of words is a logistic regression "
        f"on word counts. {time.perf_counter() - start:.0f} s in all; results and models: {output_dir}/."
    )
    _write_report(output_dir)


def _train_all(output_dir: Path) -> None:
    """Train as many models at once as there are cores, one thread each: so small, none of them could use more."""
    cores = os.cpu_count() or 1
    threads = max(1, cores // len(MODELS))
    with ThreadPoolExecutor(min(cores, len(MODELS))) as pool:
        statuses = pool.map(lambda model: _train(model, output_dir / model, threads), MODELS)
        failed = [status for status in statuses if status]
    if failed:
        sys.exit(failed[0])  # what went wrong is said already


def _train(model: str, output_dir: Path, threads: int) -> int:
    # Every option of the launcher that it would otherwise ask or warn about.
    launch = ["--num_processes=1", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    launch += [f"--num_cpu_threads_per_process={threads}"]
    command = [sys.executable, "-m", "accelerate.commands.launch", *launch, "-m", "benchmarks.glue"]
    command += ["--suite", "minisuite", "--task_name", "all", "--model_name_or_path", model, "--max_length", "64"]
    command += ["--output_dir", str(output_dir), "--overwrite_output_dir"]
    command += [part for setting in MODELS[model].items() for part in setting]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if " epoch " in line:
            print(f"{model}: {line}", end="")
    return process.wait()


def _write_report(output_dir: Path) -> None:
    """Write the HTML report of all results beside them."""
    if importlib.util.find_spec("benchmarks.report") is None:
        return
    file = output_dir / "report.html"
    subprocess.run([sys.executable, "-m", "benchmarks.report", str(output_dir), "--output", str(file)], check=True)
    print(f"Report: {file}")


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
