"""Whose tokenizer a folder holds.

Every family has this file with the same content, since a family's folder must work by itself as custom code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.utils import logging

logger = logging.get_logger(__name__)


def check_tokenizer_origin(
    wanted: type[PreTrainedTokenizerBase], files: Mapping[str, str | None], also_read: tuple[str, ...] = ()
) -> None:
    """Refuses the files of another model's tokenizer, and warns of a tokenizer beside another model.

    Args:
        wanted: The class that is to read the files.
        files: What transformers has found, by its names; "tokenizer_config_file" says who saved them.
        also_read: Names of unrelated classes whose files mean the same to `wanted`.

    Raises:
        ValueError: If the files were saved by the tokenizer of another model. A class that transformers does not
            know, such as a user's own, is not refused.
    """
    config_file = files.get("tokenizer_config_file")
    name = _content(config_file).get("tokenizer_class")
    saved_by = _known_tokenizer(name)
    if saved_by is not None and _is_another(wanted, saved_by, also_read):
        raise ValueError(
            f"{config_file} is that of a {name}, whose files {wanted.__name__} would read wrongly: load it by "
            f"AutoTokenizer or {name}, or give the folder of a {' or '.join((wanted.__name__, *also_read))}"
        )
    folder = next((Path(file).parent for file in files.values() if file is not None), None)
    if folder is not None:
        _warn_of_another_model(wanted, folder, also_read)


def _known_tokenizer(name: Any) -> type[PreTrainedTokenizerBase] | None:
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name  # slow, and needed only here

    found = tokenizer_class_from_name(name) if isinstance(name, str) else None
    return found if isinstance(found, type) and issubclass(found, PreTrainedTokenizerBase) else None


def _is_another(wanted: type, other: type, also_read: tuple[str, ...]) -> bool:
    # by name, since the same class may be there twice, from the package and as custom code
    ancestors, others = ({base.__name__ for base in each.__mro__} for each in (wanted, other))
    return not {other.__name__} & {*ancestors, *also_read} and wanted.__name__ not in others


def _warn_of_another_model(wanted: type, folder: Path, also_read: tuple[str, ...]) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING

    model_type = _content(folder / "config.json").get("model_type")
    known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    own = TOKENIZER_MAPPING.get(CONFIG_MAPPING[model_type], None) if known else None
    if own is not None and _is_another(wanted, own, also_read):
        logger.warning(
            f"{folder} holds a {model_type} model and a {wanted.__name__}: unless the model was trained with it, its "
            f"tokenizer is a {own.__name__}"
        )


def _content(file: str | Path | None) -> dict[str, Any]:
    """What a JSON file holds; nothing if it cannot be read, which is said by who needs it."""
    try:
        content = {} if file is None else json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


__all__ = ["check_tokenizer_origin"]
