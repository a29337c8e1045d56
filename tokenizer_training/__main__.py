"""Command line: `python -m tokenizer_training --help`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .elmo import train_elmo_tokenizer

app = typer.Typer(help="Train a tokenizer from text.", no_args_is_help=True, add_completion=False)


@app.callback()
def _tokenizer_training() -> None:
    pass


@app.command()
def elmo(
    input: Annotated[list[Path], typer.Option(help="Text files, UTF-8, one sentence a line; plain or .gz.")],
    output: Annotated[Path, typer.Option(help="Folder to write the tokenizer to.")],
    vocab_size: Annotated[int, typer.Option(help="Words of the softmax, the three special ones included.")] = 793_471,
    text_split: Annotated[str, typer.Option(help="'whitespace' for tokenized text, 'words' for plain.")] = "words",
    overwrite: Annotated[bool, typer.Option(help="Replace the output folder if it exists.")] = False,
) -> None:
    """Count words for the softmax of ELMo's language model."""
    tokenizer, report = train_elmo_tokenizer(input, output, vocab_size, text_split=text_split, overwrite=overwrite)
    typer.echo(
        f"{output}: {len(tokenizer.word_vocabulary):,} words cover {report.coverage:.2%} of {report.words:,} words in "
        f"{report.lines:,} lines"
    )


def main() -> None:
    """Runs the command; an error in what the user gave is one line on stderr and exit status 2."""
    try:
        app(prog_name="python -m tokenizer_training")
    except (ValueError, OSError) as error:
        print(f"tokenizer_training: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
