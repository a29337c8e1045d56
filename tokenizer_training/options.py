"""Options that several commands have, and what turns those of the text into the text."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from .languages import LANGUAGES
from .text import HELD_OUT, TextLines
from .text_datasets import DatasetLines

Input = Annotated[
    list[Path] | None,
    typer.Option(help="Text: files (UTF-8; plain, .gz or .zst), folders of them, or - for standard input."),
]
More = Annotated[list[Path] | None, typer.Argument(metavar="INPUT", help="More text, so that --input *.txt works.")]
Dataset = Annotated[
    list[str] | None,
    typer.Option(help="NAME or NAME:CONFIG of a dataset of the Hub, or a parquet, JSON or CSV file or a folder."),
]
Split = Annotated[str, typer.Option(help="Which split of the datasets.")]
TextColumn = Annotated[str, typer.Option(help="Which column of the datasets.")]
Errors = Annotated[str, typer.Option(help="'strict' to refuse what is not UTF-8, 'replace' to read on.")]
SampleLimit = Annotated[int | None, typer.Option(help="Train on so many lines, drawn from all.")]
HeldOut = Annotated[float, typer.Option(help="Share of the lines that is kept out of training for the report.")]
Seed = Annotated[int, typer.Option(help="Start of every draw.")]

Output = Annotated[Path, typer.Option(help="Folder to write the tokenizer to.")]
Overwrite = Annotated[bool, typer.Option(help="Replace the output folder if it exists.")]
Language = Annotated[
    str | None,
    typer.Option(help=f"Sets coverage and accents for a language that needs it: {', '.join(LANGUAGES)}."),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Share of the text's characters that the vocabulary knows. Default: 0.99995, or the language's."
    ),
]
Lowercase = Annotated[bool, typer.Option(help="Make letters small.")]
KeepAccents = Annotated[
    bool | None,
    typer.Option(
        "--keep-accents/--no-keep-accents",
        help="Keep accents, as for languages with vowel marks. Default: no, or the language's.",
    ),
]
Symbols = Annotated[str, typer.Option(help="Pieces, with spaces between, that are never part of a longer one.")]
SpecialTokens = Annotated[str, typer.Option(help="Further special tokens, with spaces between.")]


def text_lines(
    input: Input = None,
    more: More = None,
    dataset: Dataset = None,
    split: Split = "train",
    text_column: TextColumn = "text",
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    held_out: HeldOut = HELD_OUT,
    seed: Seed = 0,
) -> TextLines:
    """The text that these options, which every training command has, describe."""
    datasets = [DatasetLines(name, split, text_column) for name in dataset or []]
    return TextLines([*(input or []), *(more or [])], errors, sample_limit, seed, held_out, datasets)


def takes_text(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `text_lines` in place of its first parameter, the text."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = list(inspect.signature(text_lines, eval_str=True).parameters.values())

    @wraps(command)
    def with_text(**options: Any) -> None:
        text = text_lines(**{parameter.name: options.pop(parameter.name) for parameter in shared})
        command(text, **options)

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*shared, *own)]
    # typer reads both
    with_text.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_text.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_text
