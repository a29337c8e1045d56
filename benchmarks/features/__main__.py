"""Measure what a frozen biLM's vectors are worth: `python -m benchmarks.features --help`.

    python -m benchmarks.features tagging --model_name_or_path MODEL --task pos --data_dir POS --output_dir OUT
    python -m benchmarks.features wic --model_name_or_path MODEL --data_dir WIC --output_dir OUT
    python -m benchmarks.features unigram --config PRETRAINING_YAML

The first two with `--random_weights` as well, for the same architecture without training.
"""

import sys
from pathlib import Path
from typing import Annotated

import datasets
import typer
from transformers.utils import logging as transformers_logging

from benchmarks.features.runs import write_table
from benchmarks.features.suite import Job, run_tagging, run_wic
from benchmarks.features.tagging import HeadSettings
from benchmarks.features.tagging_data import TASKS
from benchmarks.features.unigram import compare_with_unigram

app = typer.Typer(
    help="Measure what a frozen biLM's vectors are worth.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"token_normalize_func": lambda token: token.replace("_", "-")},
)
ModelName = Annotated[str, typer.Option("--model-name-or-path", help="Folder or Hub name of an ELMo model.")]
OutputDir = Annotated[Path, typer.Option(help="Folder for a JSON a run and results.md, the table of all runs in it.")]
Seeds = Annotated[str, typer.Option(help="Seeds with commas between them.")]
RandomWeights = Annotated[
    bool, typer.Option("--random-weights", help="Give the biLM random weights, of each seed's, instead of its own.")
]


@app.command()
def tagging(
    model: ModelName,
    task: Annotated[str, typer.Option(help=f"What the tags are: {', '.join(TASKS)} (entities, BIO).")],
    data_dir: Annotated[Path, typer.Option(help="Has train, validation and test.parquet, or a folder with them.")],
    output_dir: OutputDir,
    seeds: Seeds = "1,2,3",
    random_weights: RandomWeights = False,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 5,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences in a batch.")] = 16,
    learning_rate: Annotated[float, typer.Option(help="At the start; it falls to 0.")] = 3e-3,
    lstm_size: Annotated[int, typer.Option(min=1, help="Width of each direction of the head's BiLSTM.")] = 128,
    dropout: Annotated[float, typer.Option(help="After the mix.")] = 0.1,
    classifier_dropout: Annotated[float, typer.Option(help="Before the BiLSTM and before the classifier.")] = 0.1,
) -> None:
    """Train a scalar mix, a BiLSTM and a classifier of words over a frozen biLM."""
    if task not in TASKS:
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {task!r}")
    if not 0 < learning_rate < float("inf"):
        raise ValueError(f"--learning_rate must be a number above 0, got {learning_rate}")
    job = Job(model, random_weights, _parsed_seeds(seeds), data_dir, output_dir)
    head = HeadSettings(epochs, batch_size, learning_rate, lstm_size, dropout, classifier_dropout)
    run_tagging(job, TASKS[task], head)
    print(write_table(output_dir), end="")


@app.command()
def wic(
    model: ModelName,
    data_dir: Annotated[Path, typer.Option(help="Has train.parquet and validation.parquet or ..._subset.parquet.")],
    output_dir: OutputDir,
    seeds: Seeds = "1,2,3",
    random_weights: RandomWeights = False,
) -> None:
    """Tell by a frozen biLM's vectors whether a word has the same sense in two sentences."""
    run_wic(Job(model, random_weights, _parsed_seeds(seeds), data_dir, output_dir))
    print(write_table(output_dir), end="")


@app.command()
def unigram(
    config: Annotated[Path, typer.Option(help="Settings that `hf_lineage.pretraining` was run with to the end.")],
) -> None:
    """Table the held-out perplexity of a pretraining run beside that of a unigram of the same training text."""
    print(compare_with_unigram(config), end="")


def _parsed_seeds(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts) or len(set(map(int, parts))) < len(parts):
        raise ValueError(f"--seeds must be different integers of at least 0 with commas between them, got {text!r}")
    return tuple(map(int, parts))


def main() -> None:
    """Run the command; an error in what the user gave is one line on stderr and exit status 2."""
    datasets.disable_progress_bars()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # that heads are new needs no mention
    try:
        app(prog_name="python -m benchmarks.features")
    except (ValueError, OSError) as error:
        print(f"benchmarks.features: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
