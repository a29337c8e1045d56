"""Check trained tokenizers on real text: `python -m benchmarks.tokenizers --help`.

    python -m benchmarks.tokenizers agreement albert:FOLDER xlnet:FOLDER --english TEXT --chinese TEXT
    python -m benchmarks.tokenizers families --english TEXT --chinese TEXT --output FOLDER
    python -m benchmarks.tokenizers training --text TEXT --output FOLDER

The last measures time: run it alone on the machine.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.command_line import one_line_errors
from tokenizer_training.text import TextLines

from . import agreement as agreements
from . import families as family_checks
from . import training as training_cost
from .mixed_text import mixed_lines

app = typer.Typer(
    help="Check trained tokenizers on real text.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"token_normalize_func": lambda token: token.replace("_", "-")},
)
English = Annotated[list[Path], typer.Option(help="English text: files or folders.")]
Chinese = Annotated[list[Path], typer.Option(help="Chinese text: files or folders.")]
Output = Annotated[Path, typer.Option(help="Folder for the tokenizers.")]
_WANTED = 0.999


@app.command()
def agreement(
    tokenizers: Annotated[list[str], typer.Argument(help="albert:FOLDER or xlnet:FOLDER, with a spiece.model.")],
    english: English,
    chinese: Chinese,
    lines: Annotated[int, typer.Option(min=1, help="Number of lines.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Start of the draws.")] = 0,
) -> None:
    """Compare ids with SentencePiece's own on mixed text; status 1 if more than one line in a thousand differs."""
    text = mixed_lines(english, chinese, lines, seed)
    results = []
    for tokenizer in tokenizers:
        family, _, folder = tokenizer.partition(":")
        results.append(agreements.measure_agreement(family, Path(folder), text))
    Console().print(agreements.render(results))
    if any(result.share < _WANTED for result in results):
        raise typer.Exit(1)


@app.command()
def families(
    english: English,
    chinese: Chinese,
    output: Output,
    only: Annotated[list[str] | None, typer.Option(help="Name of a family; may be repeated. Default: all.")] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Entries of vocabularies of pieces. Default: each family's.")
    ] = 6_000,
    lines: Annotated[int, typer.Option(min=1, help="Number of lines to check ids and offsets on.")] = 10_000,
    sample_limit: Annotated[int | None, typer.Option(help="Train on so many lines, drawn from all.")] = None,
) -> None:
    """Train every family twice in both languages and check files, ids and offsets; status 1 if files or ids differ."""
    results = []
    for language, inputs in ((None, english), ("zh", chinese)):
        checked = list(TextLines(inputs, sample_limit=lines, held_out=0).read("draw"))
        for family in only or family_checks.TRAINERS:
            text = TextLines(inputs, sample_limit=sample_limit)
            size = None if family in ("elmo", "words") else vocab_size
            results.append(family_checks.check_family(family, text, checked, output, size, language))
    Console().print(family_checks.render(results))
    if not all(result.is_repeatable and result.is_reloaded for result in results):
        raise typer.Exit(1)


@app.command()
def training(
    text: Annotated[list[Path], typer.Option(help="Text: files or folders.")],
    output: Output,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces.")] = 30_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 1,
) -> None:
    """Measure time and peak memory of training against SentencePiece called directly."""
    output.mkdir(parents=True, exist_ok=True)
    Console().print(training_cost.render(training_cost.measure_training(text, output, vocab_size, repeats)))


def main() -> None:
    """Run the command; an error in what the user gave is one line on stderr and exit status 2."""
    with one_line_errors("benchmarks.tokenizers"):
        app(prog_name="python -m benchmarks.tokenizers")


if __name__ == "__main__":
    main()
