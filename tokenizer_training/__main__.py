"""Command line: `python -m tokenizer_training --help`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .elmo import train_elmo_tokenizer
from .text import TextLines
from .unigram import (
    USER_DEFINED_SYMBOLS,
    XLNET_USER_DEFINED_SYMBOLS,
    train_albert_tokenizer,
    train_xlnet_tokenizer,
)
from .wordpiece import train_bert_tokenizer

app = typer.Typer(
    help="Train a tokenizer from text.",
    no_args_is_help=True,
    add_completion=False,
    # --vocab_size and --vocab-size are the same
    context_settings={"token_normalize_func": lambda token: token.replace("_", "-")},
)

Input = Annotated[
    list[Path],
    typer.Option(help="Text: files (UTF-8; plain, .gz or .zst), folders of them, or - for standard input."),
]
More = Annotated[list[Path] | None, typer.Argument(metavar="INPUT", help="More text, so that --input *.txt works.")]
Output = Annotated[Path, typer.Option(help="Folder to write the tokenizer to.")]
Coverage = Annotated[float, typer.Option(help="Share of the text's characters that the vocabulary knows.")]
Lowercase = Annotated[bool, typer.Option(help="Make letters small.")]
KeepAccents = Annotated[bool, typer.Option(help="Keep accents, as for languages with vowel marks.")]
Errors = Annotated[str, typer.Option(help="'strict' to refuse what is not UTF-8, 'replace' to read on.")]
SampleLimit = Annotated[int | None, typer.Option(help="Train on so many lines, drawn from all.")]
Seed = Annotated[int, typer.Option(help="Start of every draw.")]
Overwrite = Annotated[bool, typer.Option(help="Replace the output folder if it exists.")]


@app.callback()
def _tokenizer_training() -> None:
    pass


@app.command()
def elmo(
    input: Input,
    output: Output,
    more: More = None,
    vocab_size: Annotated[int, typer.Option(help="Words of the softmax, the three special ones included.")] = 793_471,
    text_split: Annotated[str, typer.Option(help="'whitespace' for tokenized text, 'words' for plain.")] = "words",
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Count words for the softmax of ELMo's language model."""
    text = TextLines([*input, *(more or [])], errors, sample_limit, seed)
    tokenizer, report = train_elmo_tokenizer(text, output, vocab_size, text_split=text_split, overwrite=overwrite)
    typer.echo(
        f"{output}: {len(tokenizer.word_vocabulary):,} words cover {report.coverage:.2%} of {report.words:,} words in "
        f"{report.lines:,} lines"
    )


@app.command()
def albert(
    input: Input,
    output: Output,
    more: More = None,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces, special ones included.")] = 30_000,
    lowercase: Lowercase = True,
    keep_accents: KeepAccents = False,
    character_coverage: Coverage = 0.99995,
    user_defined_symbols: Annotated[
        str, typer.Option(help="Pieces, with spaces between, that are never part of a longer one.")
    ] = " ".join(USER_DEFINED_SYMBOLS),
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Train the unigram pieces of an ALBERT-style model with SentencePiece."""
    _, report = train_albert_tokenizer(
        TextLines([*input, *(more or [])], errors, sample_limit, seed),
        output,
        vocab_size,
        do_lower_case=lowercase,
        keep_accents=keep_accents,
        character_coverage=character_coverage,
        user_defined_symbols=user_defined_symbols.split(),
        overwrite=overwrite,
    )
    typer.echo(f"{output}: {report}")


@app.command()
def xlnet(
    input: Input,
    output: Output,
    more: More = None,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces, special ones included.")] = 32_000,
    lowercase: Lowercase = False,
    keep_accents: KeepAccents = False,
    character_coverage: Coverage = 0.99995,
    user_defined_symbols: Annotated[
        str, typer.Option(help="Pieces, with spaces between, that are never part of a longer one.")
    ] = " ".join(XLNET_USER_DEFINED_SYMBOLS),
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Train the unigram pieces of an XLNet-style model with SentencePiece."""
    _, report = train_xlnet_tokenizer(
        TextLines([*input, *(more or [])], errors, sample_limit, seed),
        output,
        vocab_size,
        do_lower_case=lowercase,
        keep_accents=keep_accents,
        character_coverage=character_coverage,
        user_defined_symbols=user_defined_symbols.split(),
        overwrite=overwrite,
    )
    typer.echo(f"{output}: {report}")


@app.command()
def bert(
    input: Input,
    output: Output,
    more: More = None,
    vocab_size: Annotated[int, typer.Option(help="Number of entries, special ones included.")] = 30_522,
    lowercase: Lowercase = True,
    keep_accents: KeepAccents = False,
    character_coverage: Coverage = 0.99995,
    errors: Errors = "strict",
    sample_limit: SampleLimit = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Train the WordPiece vocabulary of a BERT."""
    _, report = train_bert_tokenizer(
        TextLines([*input, *(more or [])], errors, sample_limit, seed),
        output,
        vocab_size,
        do_lower_case=lowercase,
        keep_accents=keep_accents,
        character_coverage=character_coverage,
        overwrite=overwrite,
    )
    typer.echo(f"{output}: {report}")


def main() -> None:
    """Runs the command; an error in what the user gave is one line on stderr and exit status 2."""
    try:
        app(prog_name="python -m tokenizer_training")
    except (ValueError, OSError) as error:
        print(f"tokenizer_training: {error}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
