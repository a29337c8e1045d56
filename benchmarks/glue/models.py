"""Models and tokenizers by name: checkpoints, or presets that are built from scratch."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

import hf_lineage  # registers our families with the Auto classes
from benchmarks.glue.tasks import Task
from hf_lineage.files import atomic_folder


@dataclass(frozen=True)
class Preset:
    """A model that is built from scratch.

    Args:
        config: Name of a configuration class of `hf_lineage`.
        model: Name of its class for sequence classification.
        tokenizer: Name of its tokenizer class, which needs no vocabulary.
        config_kwargs: What the configuration sets.
        pair_config_kwargs: What it sets besides for tasks of sentence pairs.
    """

    config: str
    model: str
    tokenizer: str
    config_kwargs: Mapping[str, Any] = field(default_factory=dict)
    pair_config_kwargs: Mapping[str, Any] = field(default_factory=dict)


def _elmo(filters: list[list[int]], hidden_size: int, lstm_hidden_size: int, dropout: float, head: int) -> Preset:
    return Preset(
        config="ElmoConfig",
        model="ElmoForSequenceClassification",
        tokenizer="ElmoTokenizer",
        config_kwargs={
            "char_cnn_filters": filters,
            "num_highway_layers": 1,
            "hidden_size": hidden_size,
            "lstm_hidden_size": lstm_hidden_size,
            # The default is meant for pretrained layers, whose vectors it is to keep from overfitting.
            "dropout": dropout,
            "classifier_hidden_size": head,
        },
        pair_config_kwargs={"pair_encoding": "separate"},
    )


PRESETS: dict[str, Preset] = {
    # 0.2 million parameters, for the embedded tasks
    "elmo-tiny": _elmo([[1, 16], [2, 16], [3, 32], [4, 64]], 128, 64, dropout=0.1, head=64),
    # 1.5 million parameters
    "elmo-small": _elmo([[1, 32], [2, 32], [3, 64], [4, 128]], 256, 256, dropout=0.2, head=512),
}


def load_model_and_tokenizer(
    model_name_or_path: str, task: Task, trained_head: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model with a head for a task, in float32, and its tokenizer.

    A head of another size is replaced by a new one; new weights come from torch's generator, so seed it first. A
    tokenizer without a padding token pads with its end of sequence token.

    Args:
        model_name_or_path: Name of a preset, a folder, or a name on the Hub.
        task: Sets the number and names of the labels and the problem type.
        trained_head: Whether the head must come with the checkpoint and know the labels in the task's order, as it
            must for evaluation without training.

    Raises:
        ValueError: If there is no such model, or it has no head for the task where that is asked for.
    """
    labels = _label_kwargs(task)
    if model_name_or_path in PRESETS:
        if trained_head:
            raise ValueError(f"The preset {model_name_or_path!r} is not trained, so it cannot only be evaluated.")
        model, tokenizer = _build(PRESETS[model_name_or_path], task, labels)
    else:
        model, tokenizer = _load(model_name_or_path, task, labels, trained_head)
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(f"The tokenizer of {model_name_or_path!r} has no token to pad with.")
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(model.config, "pad_token_id", 0) is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def _label_kwargs(task: Task) -> dict[str, Any]:
    if task.is_regression:
        return {"num_labels": 1, "problem_type": "regression"}
    return {
        "num_labels": len(task.labels),
        "id2label": dict(enumerate(task.labels)),
        "label2id": {label: index for index, label in enumerate(task.labels)},
        "problem_type": "single_label_classification",
    }


def _build(preset: Preset, task: Task, labels: dict[str, Any]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    pair_config_kwargs = preset.pair_config_kwargs if task.is_pair else {}
    config = getattr(hf_lineage, preset.config)(**preset.config_kwargs, **pair_config_kwargs, **labels)
    return getattr(hf_lineage, preset.model)(config), getattr(hf_lineage, preset.tokenizer)()


def _load(
    model_name_or_path: str, task: Task, labels: dict[str, Any], trained_head: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(model_name_or_path)
        if trained_head:
            config = PreTrainedConfig.get_config_dict(model_name_or_path)[0]
            _require_labels(model_name_or_path, config, task)
        model, loading = AutoModelForSequenceClassification.from_pretrained(
            model_name_or_path,
            **labels,
            dtype=torch.float32,
            ignore_mismatched_sizes=not trained_head,
            output_loading_info=True,
        )
    except OSError as error:
        raise ValueError(
            f"No model {model_name_or_path!r}: it is none of the presets ({', '.join(PRESETS)}) and cannot be loaded "
            f"from a folder or the Hub: {error}"
        ) from error
    if trained_head and loading["missing_keys"]:
        raise ValueError(
            f"{model_name_or_path!r} has no trained head for {task.name!r}, so it cannot only be evaluated; its "
            f"checkpoint lacks {', '.join(sorted(loading['missing_keys']))}."
        )
    return model, tokenizer


def _require_labels(model_name_or_path: str, config: dict[str, Any], task: Task) -> None:
    """Raise if a checkpoint names its labels, and they are not the task's in the task's order."""
    names = [str(name) for _, name in sorted((int(index), name) for index, name in config.get("id2label", {}).items())]
    is_named = names and not all(name.startswith("LABEL_") for name in names)
    if task.is_regression:
        if is_named or len(names) > 1:
            raise ValueError(f"{model_name_or_path!r} predicts the labels {names}, {task.name!r} asks for one number.")
    elif is_named and [name.lower() for name in names] != [label.lower() for label in task.labels]:
        raise ValueError(f"{model_name_or_path!r} has the labels {names}, {task.name!r} has {list(task.labels)}.")


def save_model_and_tokenizer(
    accelerator: Accelerator, model: torch.nn.Module, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Save a prepared model and its tokenizer, replacing the folder; it never holds a part of them.

    Args:
        accelerator: The run's accelerator; its main process writes, the others wait.
        model: The prepared model.
        tokenizer: Its tokenizer.
        folder: Where they go.
    """
    if accelerator.is_main_process:
        with atomic_folder(folder, overwrite=True) as new:
            accelerator.unwrap_model(model).save_pretrained(new)
            tokenizer.save_pretrained(new)
    accelerator.wait_for_everyone()


def effective_max_length(max_length: int, tokenizer: PreTrainedTokenizerBase, config: PreTrainedConfig) -> int:
    """Return the longest input that the tokenizer and the position embeddings allow, at most `max_length` tokens."""
    positions = getattr(config, "max_position_embeddings", None) or 0
    bounds = [max_length, tokenizer.model_max_length, *([positions] if positions > 0 else [])]
    if min(bounds) < max_length:
        warnings.warn(f"--max_length {max_length} is more than the model takes; {min(bounds)} is used.", stacklevel=2)
    return min(bounds)


def count_parameters(model: torch.nn.Module) -> dict[str, int]:
    """Return how many parameters a model has, shared ones counted once: `{"total": ..., "trainable": ...}`."""
    parameters = list(model.parameters())
    return {
        "total": sum(parameter.numel() for parameter in parameters),
        "trainable": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
    }
