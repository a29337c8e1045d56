"""The `hf-lineage` command."""

import sys

import typer
from safetensors import SafetensorError

from . import card, convert, embed, info, push

app = typer.Typer(
    help="Tools for the models of hf-lineage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # a token can be among them
)
app.add_typer(convert.app, name="convert")
app.command("info")(info.info)
app.command("card")(card.card)
app.command("embed")(embed.embed)
app.command("elmo-cache")(embed.elmo_cache)
app.command("push")(push.push)


def main() -> None:
    """Runs the command; an error in what the user gave is one line on stderr and exit status 2."""
    try:
        app()
    except (ValueError, OSError, SafetensorError) as error:
        print(f"hf-lineage: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from error


__all__ = ["app", "main"]
