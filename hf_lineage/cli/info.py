"""`hf-lineage info`: what a model consists of."""

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from .common import checked_source

if TYPE_CHECKING:
    from rich.table import Table
    from transformers import PreTrainedConfig, PreTrainedModel


def info(model: Annotated[str, typer.Argument(help="Folder or Hub name of a model.")]) -> None:
    """Show which layers share their blocks, where layers can, and a model's parameters by part."""
    import torch
    from rich.console import Console
    from rich.table import Table
    from transformers import AutoConfig

    from ..parameters import parameters_by_part

    config = AutoConfig.from_pretrained(checked_source(model))
    # sizes only: the weights would be loaded for nothing
    with torch.device("meta"):
        network = _model_class(config)._from_config(config)
    console = Console()
    if hasattr(config, "layer_blocks"):
        console.print(_layer_map(config))
    table = Table(title=f"{config.model_type} ({model})", title_justify="left")
    table.add_column("part")
    table.add_column("parameters", justify="right")
    total = 0
    for name, count in parameters_by_part(network).items():
        total += count
        table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("total", f"{total:,}")
    console.print(table)


def _layer_map(config: "PreTrainedConfig") -> "Table":
    """One row for each run of layers with the same blocks."""
    from rich.table import Table

    table = Table(title="blocks of the layers", title_justify="left")
    for column in ("layers", "attention block", "feed-forward block"):
        table.add_column(column, justify="right")
    for (attention, ffn), run in groupby(enumerate(config.layer_blocks), key=lambda item: item[1]):
        layers = [layer for layer, _ in run]
        name = str(layers[0]) if len(layers) == 1 else f"{layers[0]}-{layers[-1]}"
        table.add_row(name, str(attention), str(ffn))
    return table


def _model_class(config: "PreTrainedConfig") -> "type[PreTrainedModel]":
    """The class that was saved, or the base model's."""
    import transformers

    import hf_lineage

    (name,) = (config.architectures or [])[:1] or [None]
    for module in (hf_lineage, transformers):
        if name is not None and hasattr(module, name):
            return getattr(module, name)
    return transformers.MODEL_MAPPING[type(config)]


__all__ = ["info"]
