"""`hf-lineage info`: what a model consists of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .common import checked_source

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedConfig, PreTrainedModel


def info(model: Annotated[str, typer.Argument(help="Folder or Hub name of a model.")]) -> None:
    """Show a model's configuration in short and its parameters by part."""
    import torch
    from rich.console import Console
    from rich.table import Table
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(checked_source(model))
    # sizes only: the weights would be loaded for nothing
    with torch.device("meta"):
        network = _model_class(config)._from_config(config)
    table = Table(title=f"{config.model_type} ({model})", title_justify="left")
    table.add_column("part")
    table.add_column("parameters", justify="right")
    total = 0
    for name, part in _parts(network):
        count = sum(parameter.numel() for parameter in part.parameters())
        total += count
        if count:
            table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("total", f"{total:,}")
    Console().print(table)


def _model_class(config: "PreTrainedConfig") -> "type[PreTrainedModel]":
    """The class that was saved, or the base model's."""
    import transformers

    import hf_lineage

    (name,) = (config.architectures or [])[:1] or [None]
    for module in (hf_lineage, transformers):
        if name is not None and hasattr(module, name):
            return getattr(module, name)
    return transformers.MODEL_MAPPING[type(config)]


def _parts(network: "PreTrainedModel") -> "Iterator[tuple[str, Module]]":
    """The parts of a model, those of its base model among them."""
    for name, part in network.named_children():
        if part is network.base_model:
            yield from part.named_children()
        else:
            yield name, part


__all__ = ["info"]
