"""What a pretraining run can be told, on the command line and in a file."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from transformers import HfArgumentParser

from ..settings_file import read_settings_file, settings_as_words

OptimizerName = Literal["lamb", "adamw", "adagrad"]
ScheduleName = Literal["linear", "constant"]
MixedPrecision = Literal["no", "fp16", "bf16"]

# What may change when a run goes on: nothing of it touches the weights.
FREE_SETTINGS = (
    "output_dir",
    "overwrite_output_dir",
    "per_device_eval_batch_size",
    "eval_steps",
    "save_steps",
    "save_total_limit",
    "logging_steps",
)


def describe(description: str) -> dict[str, str]:
    """Metadata of a field: what `--help` says of it."""
    return {"help": description}


def require(arguments: Any, names: Sequence[str], condition: Callable[[Any], bool], allowed: str) -> None:
    """Raises a `ValueError` for the first of the named arguments that does not meet the condition."""
    for name in names:
        value = getattr(arguments, name)
        if not condition(value):
            raise ValueError(f"--{name} must be {allowed}, got {value!r}")


@dataclass
class PretrainingArguments:
    """The settings of every family."""

    train_files: list[str] = field(
        metadata=describe("Text files or folders of them, .gz too: a sentence a line, a blank line between documents.")
    )
    tokenizer_name_or_path: str = field(metadata=describe("A tokenizer's folder, or its name on the Hub."))
    output_dir: str = field(
        metadata=describe("Checkpoints and metrics go there, the trained model to OUTPUT_DIR/model.")
    )
    family: str = field(default="albert", metadata=describe("Which models are trained."))
    validation_files: list[str] | None = field(default=None, metadata=describe("Held-out text, in the same form."))
    validation_share: float = field(
        default=0.0, metadata=describe("Hold out this share of the documents of the training files instead.")
    )
    model_config: str | None = field(
        default=None,
        metadata=describe(
            "Fields of the configuration as JSON, {...}; in a file, as a mapping. The others as default."
        ),
    )
    model_name_or_path: str | None = field(
        default=None, metadata=describe("Go on from this model instead: a folder, or a name on the Hub.")
    )
    max_length: int = field(default=128, metadata=describe("Longest input in tokens, special tokens included."))
    max_steps: int | None = field(default=None, metadata=describe("Number of optimizer steps."))
    max_minutes: float | None = field(
        default=None,
        metadata=describe(
            "Train for so long instead, evaluation included: the learning rate then follows the clock, and two runs "
            "do not come out alike."
        ),
    )
    per_device_train_batch_size: int = field(default=32, metadata=describe("Examples a process and batch."))
    per_device_eval_batch_size: int = field(default=32, metadata=describe("Evaluated examples a process and batch."))
    gradient_accumulation_steps: int = field(default=1, metadata=describe("Batches a process and optimizer step."))
    optimizer: OptimizerName = field(default="lamb", metadata=describe("LAMB, as ALBERT; AdamW; or Adagrad, as ELMo."))
    learning_rate: float = field(default=0.00176, metadata=describe("Peak learning rate."))
    warmup_ratio: float = field(
        default=0.025,
        metadata=describe("Share of the training in which the learning rate rises from 0; it then falls to 0."),
    )
    lr_scheduler_type: ScheduleName = field(
        default="linear", metadata=describe("Whether the learning rate falls after the warmup, or stays (constant).")
    )
    weight_decay: float = field(default=0.01, metadata=describe("Weight decay, not on biases and norms."))
    adam_beta1: float = field(default=0.9, metadata=describe("Decay of the first moment."))
    adam_beta2: float = field(default=0.999, metadata=describe("Decay of the second moment."))
    adam_epsilon: float = field(default=1e-6, metadata=describe("Added to the root of the second moment."))
    adagrad_accumulator: float = field(
        default=0.0025,
        metadata=describe("Where Adagrad's sum of squares begins: ELMo's 1.0, its losses not multiplied by 20."),
    )
    max_grad_norm: float = field(
        default=1.0, metadata=describe("Longest gradient; longer ones are scaled down. 0 leaves gradients alone.")
    )
    mixed_precision: MixedPrecision | None = field(
        default=None, metadata=describe("Precision of the forward pass; by default what accelerate launch was told.")
    )
    seed: int = field(default=42, metadata=describe("Seed of the new weights, the data and dropout."))
    full_determinism: bool = field(
        default=False,
        metadata=describe("Deterministic kernels only: what a GPU needs for runs that are equal bit for bit."),
    )
    dataloader_num_workers: int = field(
        default=0, metadata=describe("Processes that make batches ahead, for each process that trains.")
    )
    logging_steps: int = field(default=50, metadata=describe("Optimizer steps between two reports of the loss."))
    eval_steps: int | None = field(
        default=None,
        metadata=describe("Optimizer steps between two evaluations; by default only before and after training."),
    )
    save_steps: int = field(default=500, metadata=describe("Optimizer steps between two checkpoints."))
    save_total_limit: int = field(default=2, metadata=describe("How many checkpoints are kept, the newest."))
    overwrite_output_dir: bool = field(
        default=False, metadata=describe("Start anew where OUTPUT_DIR holds a run; without it that run goes on.")
    )

    def __post_init__(self) -> None:
        self._check_numbers()
        require(self, ("optimizer",), lambda value: value in get_args(OptimizerName), "lamb, adamw or adagrad")
        require(self, ("lr_scheduler_type",), lambda value: value in get_args(ScheduleName), "linear or constant")
        precisions = (None, *get_args(MixedPrecision))
        require(self, ("mixed_precision",), lambda value: value in precisions, "no, fp16 or bf16")
        if (self.max_steps is None) == (self.max_minutes is None):
            raise ValueError(
                f"Give either --max_steps or --max_minutes, got {self.max_steps!r} and {self.max_minutes!r}"
            )
        if self.validation_files and self.validation_share:
            raise ValueError(
                f"Give --validation_files or --validation_share, not both: got {self.validation_files!r} and "
                f"{self.validation_share!r}"
            )
        if self.model_config is not None and self.model_name_or_path is not None:
            raise ValueError("Give --model_config or --model_name_or_path, not both: a trained model has its own")
        _ = self.config_fields

    @property
    def config_fields(self) -> dict[str, Any]:
        """`model_config` as a dictionary.

        Raises:
            ValueError: If it is no JSON object.
        """
        try:
            values = json.loads(self.model_config or "{}")
        except ValueError as error:
            raise ValueError(f"--model_config must be a JSON object, got {self.model_config!r}: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"--model_config must be a JSON object, got {self.model_config!r}")
        return values

    def _check_numbers(self) -> None:
        at_least_one = (
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "gradient_accumulation_steps",
            "logging_steps",
            "save_steps",
            "save_total_limit",
        )
        require(self, at_least_one, lambda value: value >= 1, "at least 1")
        require(self, ("max_steps", "eval_steps"), lambda value: value is None or value >= 1, "at least 1")
        require(self, ("max_minutes",), lambda value: value is None or value > 0, "above 0")
        require(self, ("max_length",), lambda value: value >= 8, "at least 8")
        not_negative = ("adagrad_accumulator", "weight_decay", "max_grad_norm", "dataloader_num_workers", "seed")
        require(self, not_negative, lambda value: value >= 0, "at least 0")
        require(self, ("learning_rate", "adam_epsilon"), lambda value: value > 0, "above 0")
        require(self, ("warmup_ratio",), lambda value: 0 <= value <= 1, "between 0 and 1")
        require(self, ("adam_beta1", "adam_beta2"), lambda value: 0 <= value < 1, "at least 0 and below 1")
        require(self, ("validation_share",), lambda value: 0 <= value < 1, "at least 0 and below 1")


def parse_arguments(
    argv: Sequence[str] | None, families: Sequence[str], own_class: Callable[[str], type]
) -> tuple[PretrainingArguments, Any]:
    """Parses a command line, and the file that it names with `--config`; flags win over the file.

    Args:
        argv: The arguments without the program's name; those of this process by default.
        families: The families there are.
        own_class: Returns a dataclass with the settings of a family's own.

    Returns:
        The settings of every family, and those of the family.

    Raises:
        ValueError: If a value is not allowed, or the file is not a mapping of settings.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--config", metavar="FILE", help="A YAML or JSON file with any of these settings.")
    first.add_argument("--family", choices=families)
    known, rest = first.parse_known_args(words)
    from_file = read_settings_file(known.config) if known.config else {}
    family = known.family or from_file.pop("family", families[0])
    if family not in families:
        raise ValueError(f"family in {known.config} must be one of {', '.join(families)}, got {family!r}")
    from_file.pop("family", None)
    classes = (PretrainingArguments, own_class(family))
    parser = HfArgumentParser(
        classes,
        prog="python -m hf_lineage.pretraining",
        description=f"Pretrain a model of the {family} family. Interrupted, the same command goes on where it was.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="A YAML or JSON file with any of these settings.")
    names = [item.name for arguments_class in classes for item in fields(arguments_class)]
    from_file_words = settings_as_words(from_file, names, known.config)
    *parsed, _ = parser.parse_args_into_dataclasses(
        args=[*from_file_words, *rest, f"--family={family}"], look_for_args_file=False
    )
    settings, own = parsed
    return settings, own


__all__ = ["FREE_SETTINGS", "PretrainingArguments", "describe", "parse_arguments", "require"]
