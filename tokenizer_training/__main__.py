"""Command line: `python -m tokenizer_training --help`."""

import sys

import typer

from . import commands

app = typer.Typer(
    help="Train a tokenizer from text, and compare tokenizers.",
    no_args_is_help=True,
    add_completion=False,
    # --vocab_size and --vocab-size are the same
    context_settings={"token_normalize_func": lambda token: token.replace("_", "-")},
)
for family in (commands.elmo, commands.albert, commands.xlnet, commands.bert, commands.gpt, commands.words):
    app.command()(family)
app.command()(commands.compare)


def main() -> None:
    """Runs the command; an error in what the user gave is one line on stderr and exit status 2."""
    try:
        app(prog_name="python -m tokenizer_training")
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        _fail(message, error)
    except ValueError as error:
        _fail(str(error), error)


def _fail(message: str, error: Exception) -> None:
    print(f"tokenizer_training: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2) from error


if __name__ == "__main__":
    main()
