"""What is refused of a checkpoint, with the reason.

Every family has this file with the same content, since a family's folder must work by itself as custom code.
"""

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import GenerationConfig, PreTrainedConfig
from transformers.utils import logging

_LFS_POINTER = b"version https://git-lfs"

logger = logging.get_logger(__name__)


def check_fields(config: PreTrainedConfig, others: dict[str, Any]) -> None:
    """Warns of fields that can only be misspelt, and refuses two values for one field.

    Other unknown fields pass without a word: transformers and its users keep their own in a configuration.

    Args:
        config: The configuration, its fields set.
        others: What it was given besides its fields, by name.

    Raises:
        ValueError: If a field and another name of it have different values.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    for alias in config.attribute_map.keys() & others.keys():
        name = config.attribute_map[alias]
        value = getattr(config, name)
        if value not in (fields[name].default, others[alias]):
            raise ValueError(
                f"{alias} and {name} are two names of one field, got {alias}={others[alias]!r} and {name}={value!r}"
            )
    for name, meant in _misspelt(others, [*fields, *config.attribute_map]).items():
        logger.warning_once(
            f"{type(config).__name__} has no field {name!r}, so it changes nothing; did you mean {meant!r}?"
        )


def _misspelt(names: Iterable[str], known: list[str]) -> dict[str, str]:
    unknown = [name for name in names if name not in known and not hasattr(PreTrainedConfig, name)]
    of_generation = GenerationConfig().to_dict() if unknown else {}
    found = {}
    for name in unknown:
        close = [] if name in of_generation else difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        # "pooler_num_attention_heads" is another thing and no slip
        if close and not name.endswith(f"_{close[0]}"):
            found[name] = close[0]
    return found


def check_model_type(config_dict: dict[str, Any], config_class: type[PreTrainedConfig], source: Any) -> None:
    """Refuses the configuration of another architecture.

    Args:
        config_dict: The content of config.json.
        config_class: The class that is to have it.
        source: Where it was read.

    Raises:
        ValueError: If it names another model type than that of the class or of one that it derives from.
    """
    wanted = config_class.model_type
    given = config_dict.get("model_type", wanted)
    if given not in [getattr(each, "model_type", None) for each in config_class.__mro__]:
        raise ValueError(
            f"{source} holds a model of the type {given!r}, not {wanted!r}: load it by AutoConfig, AutoModel and so "
            f"on, or by the classes of {given!r}"
        )


def load_checked(load: Callable[..., Any], source: Any, *args, **kwargs) -> Any:
    """Loads a model as `PreTrainedModel.from_pretrained` does, and refuses what is damaged or of another architecture.

    Args:
        load: `from_pretrained` of transformers.
        source: Its first argument; the others are passed on.

    Raises:
        ValueError: If a file of weights is damaged; or if none of its weights is one of the model's, unless
            `output_loading_info` was asked for.
    """
    wants_info = kwargs.pop("output_loading_info", False)
    try:
        model, info = load(source, *args, output_loading_info=True, **kwargs)
    except SafetensorError as error:
        raise ValueError(_damage(source, kwargs.get("subfolder") or "", error)) from error
    # who asks for what was loaded looks at it
    if source is not None and kwargs.get("state_dict") is None and not wants_info:
        _check_origin(model, info, source)
    return (model, info) if wants_info else model


def _check_origin(model: Any, info: dict[str, Any], source: Any) -> None:
    base = model.base_model
    prefix = "" if base is model else f"{model.base_model_prefix}."
    wanted = [f"{prefix}{name}" for name, _ in base.named_parameters()]
    found = sorted(info["unexpected_keys"])
    if found and set(wanted) <= set(info["missing_keys"]):
        raise ValueError(
            f"the weights of {source} are of another architecture than its config.json: {type(model).__name__} has "
            f"{', '.join(wanted[:2])} and so on, found are {', '.join(found[:2])} and so on"
        )


def _damage(source: Any, subfolder: str, error: SafetensorError) -> str:
    folder = Path(str(source), subfolder)
    for file in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
        try:
            with safe_open(file, framework="pt"):
                continue
        except (SafetensorError, OSError) as found:
            with file.open("rb") as content:
                is_pointer = content.read(len(_LFS_POINTER)) == _LFS_POINTER
            if is_pointer:
                return f"{file} is a pointer of Git LFS and not the weights: fetch them (git lfs pull)"
            return (
                f"{file} ({file.stat().st_size:,} bytes) is damaged or no safetensors file: {found}; copy or download "
                "it again"
            )
    return f"the weights of {source} are damaged: {error}; download them again (force_download=True)"


__all__ = ["check_fields", "check_model_type", "load_checked"]
