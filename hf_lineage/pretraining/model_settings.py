"""The model that a run starts from: its fields checked, and that it goes with the tokenizer."""

import difflib
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


def checked_fields(given: Mapping[str, Any], config: PreTrainedConfig, decided: Mapping[str, Any]) -> dict[str, Any]:
    """The fields given with `--model_config`.

    Args:
        given: Names and values.
        config: Any configuration of the family.
        decided: Fields that other settings decide already.

    Raises:
        ValueError: If there is no field of that name, or another setting says otherwise.
    """
    name_of_class = type(config).__name__
    allowed = {**config.to_dict(), **config.attribute_map}
    for name, value in given.items():
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"--model_config has {name!r}, which is no field of {name_of_class}{hint}")
        if name in decided and decided[name] != value:
            raise ValueError(f"--model_config has {name}={value!r}, but the settings make it {decided[name]!r}")
    return {config.attribute_map.get(name, name): value for name, value in given.items()}


def load_pretrained(model_class: type[PreTrainedModel], path: str, **fields: Any) -> PreTrainedModel:
    """Loads the model of `--model_name_or_path` in float32, with other fields of the configuration.

    Raises:
        ValueError: If there is none, or it cannot be loaded.
    """
    try:
        return model_class.from_pretrained(path, dtype=torch.float32, **fields)
    except OSError as error:
        raise ValueError(f"--model_name_or_path: cannot load a model from {path}: {error}") from error


def require_vocabulary(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises a `ValueError` if the tokenizer has tokens that the model does not."""
    if config.vocab_size < len(tokenizer):
        raise ValueError(
            f"The model has vocab_size={config.vocab_size}, but the tokenizer has {len(tokenizer)} tokens"
        )


__all__ = ["checked_fields", "load_pretrained", "require_vocabulary"]
