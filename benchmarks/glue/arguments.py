"""What a run can be told on the command line."""

import argparse
import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import huggingface_hub
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
from transformers import HfArgumentParser

from benchmarks.glue.tasks import FILES_SUITE, get_suite, get_tasks
from hf_lineage.commands import hide_secrets
from hf_lineage.settings_file import read_settings_file, settings_as_words

SchedulerName = Literal["linear", "cosine", "polynomial", "constant_with_warmup"]
MixedPrecision = Literal["no", "fp16", "bf16"]
SuiteName = Literal["auto", "glue", "zh", "minisuite", "files"]
SaveModel = Literal["best", "last", "none"]

# What `--grid` may vary.
GRID_SETTINGS = (
    "learning_rate",
    "num_train_epochs",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "weight_decay",
    "warmup_ratio",
    "layer_decay",
    "max_grad_norm",
)


def _describe(description: str) -> dict[str, str]:
    return {"help": description}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _require(arguments: Any, names: Sequence[str], condition: Any, allowed: str) -> None:
    """Raise a `ValueError` for the first of the named arguments that does not meet the condition."""
    for name in names:
        value = getattr(arguments, name)
        if not condition(value):
            raise ValueError(f"--{name} must be {allowed}, got {value!r}.")


def _require_choice(arguments: Any, name: str, choices: Any) -> None:
    _require(arguments, (name,), lambda value: value in get_args(choices), f"one of {', '.join(get_args(choices))}")


@dataclass
class ModelArguments:
    """Which model is fine-tuned or evaluated."""

    model_name_or_path: str = field(
        metadata=_describe(
            "A folder, a name on the Hub, or a preset of benchmarks/glue/presets.py built from scratch."
        )
    )
    tokenizer_name_or_path: str | None = field(
        default=None,
        metadata=_describe(
            "A tokenizer in place of the model's own. Without it a preset's is trained on the task's training text."
        ),
    )


@dataclass
class DataArguments:
    """Which tasks it is fine-tuned on, and where their data is."""

    task_name: str = field(
        metadata=_describe("Tasks with commas between them (cola,sst2), or all; any name for files of your own.")
    )
    suite: SuiteName = field(
        default="auto",
        metadata=_describe(
            "glue, zh (Chinese), minisuite (small tasks that this project generates itself) or files (your own). By "
            "default files where they are given, minisuite for its tasks and for all without --data_dir when "
            "HF_HUB_OFFLINE is set, else glue."
        ),
    )
    data_dir: str | None = field(
        default=None,
        metadata=_describe(
            "Folder with <task>/<split>.parquet (<split>_subset.parquet is taken where the full file is absent), or "
            "with GLUE's official TSV folders. Without it GLUE comes from nyu-mll/glue on the Hub."
        ),
    )
    train_file: str | None = field(
        default=None, metadata=_describe("CSV, JSON or JSONL file with sentence1, sentence2 (of pairs) and label.")
    )
    validation_file: str | None = field(default=None, metadata=_describe("The same for validation."))
    test_file: str | None = field(default=None, metadata=_describe("The same for --predict; it may have no labels."))
    labels: str | None = field(
        default=None,
        metadata=_describe("Label names of your files with commas between them, in the order of their ids."),
    )
    metrics: str | None = field(
        default=None,
        metadata=_describe(
            "Metrics of your files with commas between them; accuracy, or pearson,spearman, by default."
        ),
    )
    max_length: int = field(
        default=128, metadata=_describe("Longest input in tokens, special tokens and both sentences included.")
    )
    max_train_samples: int | None = field(
        default=None,
        metadata=_describe("Train on this many examples only: a random choice, the same one for every seed."),
    )
    predict: bool = field(
        default=False,
        metadata=_describe(
            "Predict the test splits, of several seeds with the model that is best on validation, into "
            "OUTPUT_DIR/predictions; GLUE's under the leaderboard's names and as submission.zip."
        ),
    )

    def __post_init__(self) -> None:
        _require_choice(self, "suite", SuiteName)
        self.suite = self._resolve_suite()
        _require(self, ("max_length",), lambda value: value >= 1, "at least 1")
        _require(self, ("max_train_samples",), lambda value: value is None or value >= 1, "at least 1")
        if self.suite == FILES_SUITE:
            self._check_files()
            return
        for name in ("labels", "metrics"):
            _require(self, (name,), lambda value: value is None, "left out without files of your own")
        if self.suite == "minisuite" and self.data_dir is not None:
            raise ValueError(f"The minisuite is generated, so --data_dir must be left out, got {self.data_dir!r}.")
        if self.suite == "minisuite" and self.predict:
            raise ValueError("The minisuite has no test splits, so --predict must be left out.")
        if self.suite == "zh" and self.data_dir is None:
            raise ValueError("The suite zh is read from a folder: give --data_dir.")
        self._check_diagnostics()

    @property
    def task_names(self) -> list[str]:
        """The names given as `task_name`, one by one."""
        return _split(self.task_name)

    @property
    def files(self) -> dict[str, str]:
        """The files of one's own by split."""
        paths = {"train": self.train_file, "validation": self.validation_file, "test": self.test_file}
        return {name: path for name, path in paths.items() if path is not None}

    @property
    def label_names(self) -> list[str]:
        """The names given as `labels`, one by one."""
        return _split(self.labels or "")

    @property
    def metric_names(self) -> list[str]:
        """The names given as `metrics`, one by one."""
        return _split(self.metrics or "")

    def _resolve_suite(self) -> SuiteName:
        if self.suite not in ("auto", FILES_SUITE) and self.files:
            raise ValueError(f"Files of your own are no part of the suite {self.suite!r}: leave --suite out.")
        if self.suite != "auto":
            return self.suite
        if self.files:
            return "files"
        names = set(self.task_names)
        is_offline_demo = names == {"all"} and self.data_dir is None and huggingface_hub.constants.HF_HUB_OFFLINE
        return "minisuite" if names and (is_offline_demo or names <= set(get_suite("minisuite"))) else "glue"

    def _check_files(self) -> None:
        if self.validation_file is None:
            raise ValueError("Files of your own need at least --validation_file.")
        if self.data_dir is not None:
            raise ValueError(f"With files of your own --data_dir must be left out, got {self.data_dir!r}.")
        if not re.fullmatch(r"[\w-][\w.-]*", self.task_name):
            raise ValueError(
                f"--task_name must be one name of letters, digits, '_', '-' and '.' for files of your own, got "
                f"{self.task_name!r}."
            )
        if self.predict and self.test_file is None:
            raise ValueError("--predict with files of your own needs --test_file.")
        names = self.label_names
        if self.labels is not None and len(set(names)) < max(len(names), 2):
            raise ValueError(f"--labels must be two or more different names, got {self.labels!r}.")

    def _check_diagnostics(self) -> None:
        """Raise where a diagnostic set is named that nothing would predict."""
        tasks = get_tasks(self.task_names, self.suite)
        predicted = {name for task in tasks for name in task.diagnostics if self.predict}
        for task in tasks:
            if not task.validation_splits and task.name not in predicted:
                parents = [other.name for other in get_suite(self.suite).values() if task.name in other.diagnostics]
                raise ValueError(
                    f"The task {task.name!r} has no labels to train or evaluate on: it is predicted with the model of "
                    f"{' or '.join(parents)}, so name that task too and give --predict."
                )


@dataclass
class FineTuningArguments:
    """How it is trained and evaluated, and what is kept."""

    output_dir: str = field(
        metadata=_describe("Results go to OUTPUT_DIR/<task>/seed-<seed>/results.json, the model to model/ beside it.")
    )
    seeds: str = field(default="42", metadata=_describe("Seeds with commas between them; one run for each."))
    num_train_epochs: int = field(default=3, metadata=_describe("Passes over the training set; 0 only evaluates."))
    per_device_train_batch_size: int = field(default=32, metadata=_describe("Training examples a process and step."))
    per_device_eval_batch_size: int = field(default=64, metadata=_describe("Evaluated examples a process and step."))
    gradient_accumulation_steps: int = field(
        default=1, metadata=_describe("Batches whose gradients are averaged into one optimizer step.")
    )
    learning_rate: float = field(default=2e-5, metadata=_describe("Peak learning rate of AdamW."))
    weight_decay: float = field(default=0.01, metadata=_describe("Weight decay of AdamW, not on biases and norms."))
    layer_decay: float = field(
        default=1.0,
        metadata=_describe(
            "Each layer's learning rate is that of the one above it times this; the head has the peak."
        ),
    )
    freeze_encoder: bool = field(
        default=False,
        metadata=_describe("Train the head on the features of a fixed encoder, with ELMo its mix of layers too."),
    )
    lr_scheduler_type: SchedulerName = field(
        default="linear", metadata=_describe("Course of the learning rate after the warmup.")
    )
    warmup_ratio: float = field(default=0.1, metadata=_describe("Share of the optimizer steps that warm up."))
    max_grad_norm: float = field(
        default=1.0, metadata=_describe("Longest gradient; longer ones are scaled down. 0 leaves gradients alone.")
    )
    early_stopping_patience: int | None = field(
        default=None,
        metadata=_describe("Stop after so many epochs in a row without a better score; by default never."),
    )
    grid: str | None = field(
        default=None,
        metadata=_describe(
            "Settings to choose from on the validation split, as JSON, in a file as a mapping: "
            '{"learning_rate": [1e-5, 3e-5]}. Every combination runs with every seed; that of the best mean is kept.'
        ),
    )
    mixed_precision: MixedPrecision | None = field(
        default=None, metadata=_describe("Precision of the forward pass; by default what accelerate launch was told.")
    )
    group_by_length: bool = field(
        default=True, metadata=_describe("Put training texts of similar length into one batch, to pad less.")
    )
    dataloader_num_workers: int = field(
        default=0, metadata=_describe("Processes that tokenize batches ahead; 0 tokenizes in the training process.")
    )
    save_model: SaveModel = field(
        default="best", metadata=_describe("Which epoch's model and tokenizer are kept after training.")
    )
    overwrite_output_dir: bool = field(
        default=False,
        metadata=_describe(
            "Start anew where OUTPUT_DIR holds runs of these tasks and seeds; without it, finished ones are skipped "
            "and the others go on."
        ),
    )
    save_steps: int | None = field(
        default=None,
        metadata=_describe("Optimizer steps between checkpoints to go on from, besides the one after every epoch."),
    )
    report_to: str = field(
        default="none",
        metadata=_describe("Trackers of accelerate with commas between them (tensorboard, wandb, ...), all, or none."),
    )
    logging_steps: int = field(default=50, metadata=_describe("Optimizer steps between two losses for the trackers."))

    def __post_init__(self) -> None:
        _require_choice(self, "lr_scheduler_type", SchedulerName)
        _require_choice(self, "save_model", SaveModel)
        _require(
            self, ("mixed_precision",), lambda value: value in (None, *get_args(MixedPrecision)), "no, fp16, bf16"
        )
        at_least_one = (
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "gradient_accumulation_steps",
            "logging_steps",
        )
        _require(self, at_least_one, lambda value: value >= 1, "at least 1")
        or_none = ("early_stopping_patience", "save_steps")
        _require(self, or_none, lambda value: value is None or value >= 1, "at least 1")
        not_negative = ("num_train_epochs", "weight_decay", "max_grad_norm", "dataloader_num_workers")
        _require(self, not_negative, lambda value: value >= 0, "at least 0")
        _require(self, ("learning_rate",), lambda value: value > 0, "above 0")
        _require(self, ("warmup_ratio",), lambda value: 0 <= value <= 1, "between 0 and 1")
        _require(self, ("layer_decay",), lambda value: 0 < value <= 1, "above 0 and at most 1")
        numbers = _split(self.seeds)
        _require(
            self,
            ("seeds",),
            lambda value: (
                numbers and all(number.isdecimal() for number in numbers) and len({*numbers}) == len(numbers)
            ),
            "different whole numbers with commas between them",
        )

        if self.freeze_encoder and self.layer_decay != 1:
            raise ValueError("--layer_decay does not go with --freeze_encoder, which trains no layer.")
        if self.grid is not None and self.num_train_epochs == 0:
            raise ValueError("--grid does not go with --num_train_epochs 0, which only evaluates.")
        _ = self.grid_points, self.trackers

    @property
    def trackers(self) -> list[str]:
        """The names given as `report_to`.

        Raises:
            ValueError: If accelerate knows no tracker of a name, or its package is not installed.
        """
        names = [] if self.report_to == "none" else _split(self.report_to)
        available = [str(tracker) for tracker in get_available_trackers()]
        for name in names:
            if name != "all" and name not in available:
                known = ", ".join(str(tracker) for tracker in LOGGER_TYPE_TO_CLASS)
                raise ValueError(
                    f"--report_to must be none, all or installed ones of {known}; got {name!r}, installed: "
                    f"{', '.join(available) or 'none of them'}."
                )
        return available if "all" in names else names

    @property
    def grid_points(self) -> list[dict[str, Any]]:
        """Every combination of the settings in `grid`, in the order given; a single empty one without a grid.

        Raises:
            ValueError: If `grid` is no JSON object of lists, or names or holds what is not allowed.
        """
        try:
            grid = json.loads(self.grid or "{}")
        except ValueError as error:
            raise ValueError(f"--grid must be a JSON object, got {self.grid!r}: {error}") from error
        if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
            raise ValueError(
                f"--grid must be a JSON object that gives each setting a list of values, got {self.grid!r}."
            )
        for name, values in grid.items():
            if name not in GRID_SETTINGS:
                raise ValueError(f"--grid may vary {', '.join(GRID_SETTINGS)}; got {name!r}.")
            allowed = int if isinstance(getattr(self, name), int) else (int, float)
            wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, allowed)]
            if wrong:
                raise ValueError(f"--grid: {wrong[0]!r} is no value of {name}.")
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        for point in points:
            self.at(point)
        return points

    def at(self, point: dict[str, Any]) -> "FineTuningArguments":
        """Return the settings of one point of the grid.

        Raises:
            ValueError: If a value is not allowed.
        """
        return dataclasses.replace(self, grid=None, **point) if self.grid else self

    @property
    def seed_list(self) -> list[int]:
        """The numbers given as `seeds`."""
        return [int(seed) for seed in _split(self.seeds)]

    def task_dir(self, task_name: str) -> Path:
        """Return the folder of all runs of a task."""
        return Path(self.output_dir, task_name)

    def run_dir(self, task_name: str, seed: int) -> Path:
        """Return the folder of one run."""
        return self.task_dir(task_name) / f"seed-{seed}"


class Arguments(NamedTuple):
    """Everything a run is told."""

    model: ModelArguments
    data: DataArguments
    fine_tuning: FineTuningArguments

    def as_dict(self) -> dict[str, Any]:
        """Return all settings by name, as they may be written and shown: without secrets."""
        return hide_secrets({name: value for part in self for name, value in dataclasses.asdict(part).items()})


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    """Parse a command line, and the file that it names with `--config`; flags win over the file.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Raises:
        ValueError: If a value is not allowed, or the file is not a mapping of settings.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    config: dict[str, Any] = {"metavar": "FILE", "help": "A YAML or JSON file with any of these settings; flags win."}
    first.add_argument("--config", **config)
    known, words = first.parse_known_args(sys.argv[1:] if argv is None else list(argv))
    parts = (ModelArguments, DataArguments, FineTuningArguments)
    if known.config:
        names = [item.name for part in parts for item in dataclasses.fields(part)]
        values = {name: _joined(value) for name, value in read_settings_file(known.config).items()}
        words = [*settings_as_words(values, names, known.config), *words]
    parser = HfArgumentParser(
        parts,
        prog="python -m benchmarks.glue",
        description="Fine-tune a model on GLUE-format tasks, evaluate it after every epoch and write what it scored.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", **config)
    *parsed, _ = parser.parse_args_into_dataclasses(args=words, look_for_args_file=False)
    arguments = Arguments(*parsed)
    if (
        arguments.data.predict
        and arguments.fine_tuning.num_train_epochs
        and arguments.fine_tuning.save_model == "none"
    ):
        raise ValueError("--predict needs a model that is kept: --save_model must be best or last, got 'none'.")
    return arguments


def _joined(value: Any) -> Any:
    """Return what stands for a list on the command line; `seeds: [1, 2]` is `--seeds 1,2`."""
    return ",".join(map(str, value)) if isinstance(value, list) else value
