"""Models and tokenizers by name: checkpoints, or presets that are built from scratch."""

from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import Accelerator
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

import hf_lineage  # registers our families with the Auto classes
from benchmarks.glue.presets import PRESETS, Preset
from benchmarks.glue.tasks import Task
from hf_lineage.files import atomic_folder
from hf_lineage.parameters import parameters_by_part
from hf_lineage.pretraining.model_settings import require_vocabulary


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of `--tokenizer_name_or_path`.

    Raises:
        ValueError: If there is none.
    """
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"--tokenizer_name_or_path: no tokenizer can be loaded from {path!r}: {error}") from error


def load_model_and_tokenizer(
    model_name_or_path: str,
    task: Task,
    trained_head: bool = False,
    tokenizer: PreTrainedTokenizerBase | None = None,
    freeze_encoder: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model with a head for a task, in float32, and its tokenizer.

    A head of another size is replaced by a new one; new weights come from torch's generator, so seed it first. A
    tokenizer without a padding token pads with its end of sequence token.

    Args:
        model_name_or_path: Name of a preset, a folder, or a name on the Hub.
        task: Sets the number and names of the labels and the problem type.
        trained_head: Whether the head must come with the checkpoint and know the labels in the task's order, as it
            must for evaluation without training.
        tokenizer: Taken in place of the checkpoint's own. A preset that does not read characters needs one.
        freeze_encoder: Whether only the head, ELMo's scalar mix and what the checkpoint lacks are trained.

    Raises:
        ValueError: If there is no such model, the tokenizer does not go with it, or it has no head for the task where
            that is asked for.
    """
    labels = _label_kwargs(task)
    if model_name_or_path in PRESETS:
        if trained_head:
            raise ValueError(f"The preset {model_name_or_path!r} is not trained, so it cannot only be evaluated.")
        if freeze_encoder:
            raise ValueError(f"--freeze_encoder: the preset {model_name_or_path!r} has no trained encoder.")
        model, tokenizer = _build(model_name_or_path, task, labels, tokenizer)
    else:
        model, tokenizer, new_weights = _load(model_name_or_path, task, labels, trained_head, tokenizer)
        if freeze_encoder:
            _freeze_encoder(model, new_weights)
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


def _build(
    name: str, task: Task, labels: dict[str, Any], tokenizer: PreTrainedTokenizerBase | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    preset = PRESETS[name]
    fields: dict[str, Any] = {**preset.config_kwargs, **(preset.pair_config_kwargs if task.is_pair else {}), **labels}
    if preset.vocabulary is None:
        tokenizer = tokenizer or hf_lineage.ElmoTokenizer()
    elif tokenizer is None:
        raise ValueError(f"The preset {name!r} has no vocabulary of its own, so it needs a tokenizer.")
    else:
        _set_padding(tokenizer, name)
        fields.update(vocab_size=len(tokenizer), **_special_ids(tokenizer))
    model = AutoModelForSequenceClassification.from_config(_config_class(preset)(**fields))
    _require_same_input(name, model, tokenizer)
    return model, tokenizer


def _config_class(preset: Preset) -> type[PreTrainedConfig]:
    return getattr(hf_lineage if hasattr(hf_lineage, preset.config) else transformers, preset.config)


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    ids = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    return {name: number for name, number in ids.items() if number is not None}


def _set_padding(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(f"The tokenizer of {name!r} has no token to pad with.")
        tokenizer.pad_token = tokenizer.eos_token


def _require_same_input(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise if one of model and tokenizer knows characters and the other pieces, or pieces that the model lacks."""
    reads_characters = isinstance(model.config, hf_lineage.ElmoConfig)
    if reads_characters != isinstance(tokenizer, hf_lineage.ElmoTokenizer):
        reads, gives = ("characters", "pieces") if reads_characters else ("pieces", "characters")
        raise ValueError(f"{name!r} reads {reads}, but {type(tokenizer).__name__} gives {gives}.")
    if not reads_characters:
        require_vocabulary(model.config, tokenizer)


def _load(
    model_name_or_path: str,
    task: Task,
    labels: dict[str, Any],
    trained_head: bool,
    given_tokenizer: PreTrainedTokenizerBase | None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, set[str]]:
    """Return the model, the tokenizer and the names of the weights that the checkpoint lacks."""
    try:
        tokenizer = given_tokenizer or AutoTokenizer.from_pretrained(model_name_or_path)
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
    if given_tokenizer is not None:
        _require_same_input(model_name_or_path, model, tokenizer)
    missing = set(loading["missing_keys"])
    if trained_head and missing:
        raise ValueError(
            f"{model_name_or_path!r} has no trained head for {task.name!r}, so it cannot only be evaluated; its "
            f"checkpoint lacks {', '.join(sorted(missing))}."
        )
    _set_padding(tokenizer, model_name_or_path)
    return model, tokenizer, missing


def _freeze_encoder(model: PreTrainedModel, new_weights: set[str]) -> None:
    """Stop the training of the encoder, but for the weights that no checkpoint has trained and ELMo's scalar mix."""
    kept = {id(weight) for name, weight in model.named_parameters() if name in new_weights}
    if isinstance(model.base_model, hf_lineage.ElmoModel):
        kept |= {id(weight) for weight in model.base_model.scalar_mixes.parameters()}
    for weight in model.base_model.parameters():
        weight.requires_grad_(id(weight) in kept)


def set_train_mode(model: PreTrainedModel, freeze_encoder: bool = False) -> None:
    """Put a model into training mode; a frozen encoder gives the same features each time, so it has no dropout.

    The dropout behind ELMo's scalar mix is no part of the encoder (Peters et al. 2018, section 3.4).
    """
    model.train()
    if freeze_encoder:
        model.base_model.eval()
        if isinstance(model.base_model, hf_lineage.ElmoModel):
            model.base_model.dropout.train()


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
    accelerator: Accelerator, model: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Save a prepared model and its tokenizer, replacing the folder; it never holds a part of them.

    Args:
        accelerator: The run's accelerator; its main process writes, the others wait.
        model: The prepared model.
        tokenizer: Its tokenizer.
        folder: Where they go.
    """
    # Where the weights are in pieces, every process has to give its own.
    weights = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        with atomic_folder(folder, overwrite=True) as new:
            accelerator.unwrap_model(model).save_pretrained(new, state_dict=weights)
            tokenizer.save_pretrained(new)
    accelerator.wait_for_everyone()


def checked_max_length(
    max_length: int, tokenizer: PreTrainedTokenizerBase, config: PreTrainedConfig, name: str
) -> int:
    """Return `max_length` if the tokenizer and the position embeddings of a model allow it.

    Raises:
        ValueError: If it is longer.
    """
    positions = getattr(config, "max_position_embeddings", None) or 0
    bound = min([tokenizer.model_max_length, *([positions] if positions > 0 else [])])
    if max_length > bound:
        raise ValueError(f"--max_length must be at most {bound}, the longest input of {name!r}, got {max_length}.")
    return max_length


def count_parameters(model: PreTrainedModel) -> dict[str, Any]:
    """Return how many parameters a model has, shared ones counted once: `total`, `trainable` and `by_part`."""
    parameters = list(model.parameters())
    return {
        "total": sum(parameter.numel() for parameter in parameters),
        "trainable": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        "by_part": parameters_by_part(model),
    }
