"""Whose tokenizer a folder holds.

Every family has this file with the same content, since a family's folder must work by itself as custom code.
"""

import json
import os
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.utils import logging

logger = logging.get_logger(__name__)


def check_tokenizer_origin(
    wanted: type[PreTrainedTokenizerBase], config_file: str | os.PathLike | None, also_read: tuple[str, ...] = ()
) -> None:
    """Refuses the files of another model's tokenizer, and warns of a tokenizer beside another model.

    Args:
        wanted: The class that is to read the files.
        config_file: The tokenizer_config.json beside them, if there is one.
        also_read: Names of unrelated classes whose files mean the same to `wanted`.

    Raises:
        ValueError: If the files were saved by the tokenizer of another model. A class that transformers does not
            know, such as a user's own, is not refused.
    """
    if config_file is None:
        return
    saved_by = _content(Path(config_file)).get("tokenizer_class")
    if isinstance(saved_by, str) and saved_by not in also_read and _is_another(wanted, saved_by):
        raise ValueError(
            f"{config_file} is that of a {saved_by}, whose files {wanted.__name__} would read wrongly: load it by "
            f"AutoTokenizer or {saved_by}, or give the folder of a {' or '.join((wanted.__name__, *also_read))}"
        )
    _warn_of_another_model(wanted, also_read, Path(config_file).with_name("config.json"))


def _is_another(wanted: type, name: str) -> bool:
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name  # slow, and needed only here

    found = None if name == wanted.__name__ else tokenizer_class_from_name(name)
    return found is not None and not issubclass(found, wanted) and not issubclass(wanted, found)


def _warn_of_another_model(wanted: type, also_read: tuple[str, ...], model_config_file: Path) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING

    model_type = _content(model_config_file).get("model_type") if model_config_file.is_file() else None
    own = TOKENIZER_MAPPING.get(CONFIG_MAPPING[model_type], None) if model_type in CONFIG_MAPPING else None
    if own is not None and own.__name__ not in also_read and _is_another(wanted, own.__name__):
        logger.warning(
            f"{model_config_file.parent} holds a {model_type} model and a {wanted.__name__}: unless the model was "
            f"trained with it, its tokenizer is a {own.__name__}"
        )


def _content(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


__all__ = ["check_tokenizer_origin"]
