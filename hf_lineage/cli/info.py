"""`hf-lineage info`: what a model consists of."""

from typing import Annotated

import typer

from .common import checked_source


def info(model: Annotated[str, typer.Argument(help="Folder or Hub name of a model.")]) -> None:
    """Show a model's configuration in short and its parameters by part."""
    import torch
    from rich.console import Console
    from rich.table import Table
    from transformers import AutoConfig, AutoModel

    import hf_lineage  # noqa: F401  registers the families

    config = AutoConfig.from_pretrained(checked_source(model))
    # sizes only: the weights would be loaded for nothing
    with torch.device("meta"):
        network = AutoModel.from_config(config)
    table = Table(title=f"{config.model_type} ({model})", title_justify="left")
    table.add_column("part")
    table.add_column("parameters", justify="right")
    total = 0
    for name, part in network.named_children():
        count = sum(parameter.numel() for parameter in part.parameters())
        total += count
        if count:
            table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("total", f"{total:,}")
    Console().print(table)


__all__ = ["info"]
