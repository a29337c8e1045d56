"""What a family says of itself in model cards; each has a file `card_<family>.py` with one `CARD`."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..auto import FAMILIES

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase


@dataclass(frozen=True)
class FamilyCard:
    """The family's part of a model card.

    Args:
        title: Its name.
        description: What it is, in a few words.
        tag: Its tag on the Hub.
        pretraining_task: The Hub's name for the task that its pretraining is measured by.
        facts: Returns what a configuration and its tokenizer, if there is one, say of the model, each in words.
        citations: Returns the papers behind a configuration, in BibTeX.
        usage: Auto class -> Python code in place of the common one; `{hidden_size}` and other fields of the
            configuration are filled in.
        remark: What a user of any model of the family should know, in Markdown.
    """

    title: str
    description: str
    tag: str
    pretraining_task: str
    facts: Callable[["PreTrainedConfig", "PreTrainedTokenizerBase | None"], dict[str, str]]
    citations: Callable[["PreTrainedConfig"], list[str]]
    usage: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""


def family_card(model_type: str | None) -> FamilyCard:
    """Returns the part of a family.

    Raises:
        ValueError: If no family has that model type.
    """
    if model_type not in FAMILIES:
        raise ValueError(f"no model card for the model type {model_type!r}; there is one for {', '.join(FAMILIES)}")
    folder = FAMILIES[model_type].modeling.split(".")[1]
    return importlib.import_module(f"..{folder}.card_{folder}", __package__).CARD


__all__ = ["FamilyCard", "family_card"]
