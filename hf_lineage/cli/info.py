"""`hf-lineage info`: what a model consists of."""

from typing import TYPE_CHECKING, Annotated

import typer

from .common import checked_source

if TYPE_CHECKING:
    from rich.table import Table


def info(model: Annotated[str, typer.Argument(help="Folder or Hub name of a model.")]) -> None:
    """Show which layers share their blocks, where layers can, and a model's parameters by part."""
    from rich.console import Console
    from rich.table import Table
    from transformers import AutoConfig

    from ..parameters import layer_runs, network_without_weights, parameters_by_part

    config = AutoConfig.from_pretrained(checked_source(model))
    network = network_without_weights(config)
    console = Console()
    if runs := layer_runs(config):
        console.print(_layer_map(runs))
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


def _layer_map(runs: list[tuple[str, int, int]]) -> "Table":
    """One row for each run of layers with the same blocks."""
    from rich.table import Table

    table = Table(title="blocks of the layers", title_justify="left")
    for column in ("layers", "attention block", "feed-forward block"):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(*map(str, run))
    return table


__all__ = ["info"]
