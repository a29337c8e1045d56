"""What a run can be told on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from transformers import HfArgumentParser

from benchmarks.glue.tasks import get_tasks

SchedulerName = Literal["linear", "cosine", "polynomial", "constant_with_warmup"]
MixedPrecision = Literal["no", "fp16", "bf16"]
SaveModel = Literal["best", "last", "none"]


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
        metadata=_describe("A folder, a name on the Hub, or a preset of benchmarks/glue/models.py built from scratch.")
    )


@dataclass
class DataArguments:
    """Which tasks it is fine-tuned on, and where their data is."""

    task_name: str = field(metadata=_describe("Tasks with commas between them (cola,sst2), or all."))
    suite: Literal["glue", "minisuite"] = field(
        default="glue", metadata=_describe("GLUE, or the small tasks that this project generates itself.")
    )
    data_dir: str | None = field(
        default=None,
        metadata=_describe(
            "Folder with <task>/<split>.parquet; <split>_subset.parquet is taken where the full file is absent. "
            "Without it GLUE comes from nyu-mll/glue on the Hub."
        ),
    )
    max_length: int = field(
        default=128, metadata=_describe("Longest input in tokens, special tokens and both sentences included.")
    )
    max_train_samples: int | None = field(
        default=None,
        metadata=_describe("Train on this many examples only: a random choice, the same one for every seed."),
    )

    def __post_init__(self) -> None:
        _require_choice(self, "suite", Literal["glue", "minisuite"])
        _require(self, ("max_length",), lambda value: value >= 1, "at least 1")
        _require(self, ("max_train_samples",), lambda value: value is None or value >= 1, "at least 1")
        if self.suite == "minisuite" and self.data_dir is not None:
            raise ValueError(f"The minisuite is generated, so --data_dir must be left out, got {self.data_dir!r}.")
        get_tasks(self.task_names, self.suite)

    @property
    def task_names(self) -> list[str]:
        """The names given as `task_name`, one by one."""
        return _split(self.task_name)


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
    lr_scheduler_type: SchedulerName = field(
        default="linear", metadata=_describe("Course of the learning rate after the warmup.")
    )
    warmup_ratio: float = field(default=0.1, metadata=_describe("Share of the optimizer steps that warm up."))
    max_grad_norm: float = field(
        default=1.0, metadata=_describe("Longest gradient; longer ones are scaled down. 0 leaves gradients alone.")
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
        default=False, metadata=_describe("Replace results that OUTPUT_DIR already holds for these tasks and seeds.")
    )

    def __post_init__(self) -> None:
        _require_choice(self, "lr_scheduler_type", SchedulerName)
        _require_choice(self, "save_model", SaveModel)
        _require(
            self, ("mixed_precision",), lambda value: value in (None, *get_args(MixedPrecision)), "no, fp16, bf16"
        )
        at_least_one = ("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps")
        _require(self, at_least_one, lambda value: value >= 1, "at least 1")
        not_negative = ("num_train_epochs", "weight_decay", "max_grad_norm", "dataloader_num_workers")
        _require(self, not_negative, lambda value: value >= 0, "at least 0")
        _require(self, ("learning_rate",), lambda value: value > 0, "above 0")
        _require(self, ("warmup_ratio",), lambda value: 0 <= value <= 1, "between 0 and 1")
        numbers = _split(self.seeds)
        _require(
            self,
            ("seeds",),
            lambda value: (
                numbers and all(number.isdecimal() for number in numbers) and len({*numbers}) == len(numbers)
            ),
            "different whole numbers with commas between them",
        )

    @property
    def seed_list(self) -> list[int]:
        """The numbers given as `seeds`."""
        return [int(seed) for seed in _split(self.seeds)]

    def run_dir(self, task_name: str, seed: int) -> Path:
        """Return the folder of one run."""
        return Path(self.output_dir, task_name, f"seed-{seed}")


class Arguments(NamedTuple):
    """Everything a run is told."""

    model: ModelArguments
    data: DataArguments
    fine_tuning: FineTuningArguments


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    """Parse a command line.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Raises:
        ValueError: If a value is not allowed.
    """
    parser = HfArgumentParser(
        (ModelArguments, DataArguments, FineTuningArguments),
        prog="python -m benchmarks.glue",
        description="Fine-tune a model on GLUE-format tasks, evaluate it after every epoch and write what it scored.",
    )
    return Arguments(*parser.parse_args_into_dataclasses(args=None if argv is None else list(argv)))
