"""Options that several commands have, and what turns groups of them into what a command works with."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from .languages import LANGUAGES, language_options
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
VocabSize = Annotated[int, typer.Option(help="Entries of the vocabulary, special ones included.")]
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


class Training(NamedTuple):
    """What every training command is told.

    Args:
        text: The text.
        output: Folder to write to.
        overwrite: Whether a folder that exists may be replaced.
    """

    text: TextLines
    output: Path
    overwrite: bool

    def run(self, train: Callable[..., tuple[Any, Any]], **options: Any) -> None:
        """Calls a family's training function, and prints the report.

        Args:
            train: Takes the text, the output, `overwrite` and the options; returns the tokenizer and the report.
            options: Those of the family.
        """
        _, report = train(self.text, self.output, overwrite=self.overwrite, **options)
        typer.echo(f"{self.output}: {report}\nmeasured on {self.text.measured()}")


def training(
    *,
    input: Input = None,
    more: More = None,
    dataset: Dataset = None,
    split: Split = "train",
    text_column: TextColumn = "text",
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    held_out: HeldOut = HELD_OUT,
    seed: Seed = 0,
    output: Output,
    overwrite: Overwrite = False,
) -> Training:
    """The text and the folder that these options describe."""
    datasets = [DatasetLines(name, split, text_column) for name in dataset or []]
    text = TextLines([*(input or []), *(more or [])], errors, sample_limit, seed, held_out, datasets)
    return Training(text, output, overwrite)


def pieces(
    language: Language = None, keep_accents: KeepAccents = None, character_coverage: Coverage = None
) -> dict[str, Any]:
    """Options of training for vocabularies of pieces, whose defaults depend on the language."""
    return language_options(language, keep_accents, character_coverage)


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command options in place of its parameters of these names: those of functions, which make the values.

    Args:
        groups: Name of a parameter -> the function.
    """
    shared = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for name, own in inspect.signature(command, eval_str=True).parameters.items():
            parameters += shared[name].values() if name in shared else [own]
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]

        @wraps(command)
        def with_groups(**options: Any) -> None:
            made = {
                name: group(**{option: options.pop(option) for option in shared[name]})
                for name, group in groups.items()
            }
            command(**made, **options)

        # typer reads both
        with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_groups

    return decorate
