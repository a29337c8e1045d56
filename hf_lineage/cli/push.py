"""`hf-lineage push`: a model to the Hub."""

from pathlib import Path
from typing import Annotated

import typer

from .common import quiet_progress


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model of this package.")],
    repo: Annotated[str, typer.Argument(help="Repository on the Hub: USER/NAME, or NAME for one of your own.")],
    with_code: Annotated[
        bool, typer.Option("--with-code", help="Copy the family's files, for readers without this package.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", help="Create a private repository.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch; created if it does not exist.")] = None,
    token: Annotated[
        str | None, typer.Option(help="By default HF_TOKEN or that of `hf auth login`, which others cannot see.")
    ] = None,
    message: Annotated[str | None, typer.Option(help="Message of the commit.")] = None,
) -> None:
    """Publish a model and its tokenizer on the Hub, in one commit."""
    from ..hub.contents import left_out_files
    from ..hub.model_card import CARD_FILE
    from ..hub.push import push_folder

    quiet_progress()
    typer.echo(push_folder(folder, repo, with_code, private, revision, token, message))
    if left_out := left_out_files(folder):
        typer.echo(f"not published: {', '.join(left_out)}")
    card = folder / CARD_FILE
    # one that convert or Trainer wrote names the folder, which nobody else has
    if card.is_file() and repo not in card.read_text(encoding="utf-8", errors="replace"):
        typer.echo(f"{CARD_FILE} was published as it is and does not name {repo}: see what its listing loads")


__all__ = ["push"]
