"""`hf-lineage card`: the model card of a folder."""

from pathlib import Path
from typing import Annotated

import typer

from .common import quiet_progress


def card(
    folder: Annotated[Path, typer.Argument(help="Folder of a model, such as the model/ of a run.")],
    name: Annotated[
        str | None,
        typer.Option(help="What the card's listing loads, such as 'me/elmo'; by default the folder's name."),
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Language, such as 'en'; may be given again.")] = None,
    license: Annotated[str | None, typer.Option(help="License of the weights, such as 'apache-2.0'.")] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(help="JSON of a run that trained it; may be given again. By default the one beside it."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write README.md in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a README.md that is there.")] = False,
) -> None:
    """Print the model card of a folder, or write it there: what it is, how it was trained and is used."""
    quiet_progress()
    from ..hub.model_card import create_model_card, write_model_card

    if overwrite and not write:
        raise ValueError("--overwrite has no meaning without --write")
    made = create_model_card(folder, name, language=language, license=license, results=results or None)
    if write:
        typer.echo(f"{write_model_card(folder, made, overwrite=overwrite)} written")
    else:
        typer.echo(str(made).rstrip())


__all__ = ["card"]
