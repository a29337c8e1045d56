"""What the commands do: one for each family, and the comparison."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from .byte_bpe import train_gpt_tokenizer
from .compare import compare_tokenizers, render
from .elmo import train_elmo_tokenizer
from .languages import language_options
from .options import (
    Coverage,
    Errors,
    KeepAccents,
    Language,
    Lowercase,
    Output,
    Overwrite,
    SpecialTokens,
    Symbols,
)
from .report import TokenizerReport
from .text import TextLines
from .unigram import (
    USER_DEFINED_SYMBOLS,
    XLNET_USER_DEFINED_SYMBOLS,
    train_albert_tokenizer,
    train_xlnet_tokenizer,
)
from .wordpiece import train_bert_tokenizer
from .words import train_word_tokenizer

_ALBERT_SYMBOLS = " ".join(USER_DEFINED_SYMBOLS)
_XLNET_SYMBOLS = " ".join(XLNET_USER_DEFINED_SYMBOLS)


def elmo(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[
        int | None,
        typer.Option(help="Words of the softmax, three special ones included. Default: all, up to 793,471."),
    ] = None,
    text_split: Annotated[str, typer.Option(help="'whitespace' for tokenized text, 'words' for plain.")] = "words",
    word_input: Annotated[
        bool, typer.Option("--word-input", help="The model reads these words too, in place of characters.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Count words for the softmax of ELMo's language model."""
    _, report = train_elmo_tokenizer(
        text, output, vocab_size, text_split=text_split, overwrite=overwrite, word_input=word_input
    )
    _show(output, text, report)


def albert(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces, special ones included.")] = 30_000,
    language: Language = None,
    lowercase: Lowercase = True,
    keep_accents: KeepAccents = None,
    character_coverage: Coverage = None,
    user_defined_symbols: Symbols = _ALBERT_SYMBOLS,
    overwrite: Overwrite = False,
) -> None:
    """Train the unigram pieces of an ALBERT-style model with SentencePiece."""
    _, report = train_albert_tokenizer(
        text,
        output,
        vocab_size,
        do_lower_case=lowercase,
        **language_options(language, keep_accents, character_coverage),
        user_defined_symbols=user_defined_symbols.split(),
        overwrite=overwrite,
    )
    _show(output, text, report)


def xlnet(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces, special ones included.")] = 32_000,
    language: Language = None,
    lowercase: Lowercase = False,
    keep_accents: KeepAccents = None,
    character_coverage: Coverage = None,
    user_defined_symbols: Symbols = _XLNET_SYMBOLS,
    overwrite: Overwrite = False,
) -> None:
    """Train the unigram pieces of an XLNet-style model with SentencePiece."""
    _, report = train_xlnet_tokenizer(
        text,
        output,
        vocab_size,
        do_lower_case=lowercase,
        **language_options(language, keep_accents, character_coverage),
        user_defined_symbols=user_defined_symbols.split(),
        overwrite=overwrite,
    )
    _show(output, text, report)


def bert(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[int, typer.Option(help="Number of entries, special ones included.")] = 30_522,
    language: Language = None,
    lowercase: Lowercase = True,
    keep_accents: KeepAccents = None,
    character_coverage: Coverage = None,
    extra_special_tokens: SpecialTokens = "",
    overwrite: Overwrite = False,
) -> None:
    """Train the WordPiece vocabulary of a BERT."""
    _, report = train_bert_tokenizer(
        text,
        output,
        vocab_size,
        do_lower_case=lowercase,
        **language_options(language, keep_accents, character_coverage),
        extra_special_tokens=extra_special_tokens.split(),
        overwrite=overwrite,
    )
    _show(output, text, report)


def gpt(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[int, typer.Option(help="Number of tokens, special ones included.")] = 50_257,
    extra_special_tokens: SpecialTokens = "",
    overwrite: Overwrite = False,
) -> None:
    """Train the byte-level BPE of a GPT-2-style language model."""
    _, report = train_gpt_tokenizer(text, output, vocab_size, extra_special_tokens.split(), overwrite)
    _show(output, text, report)


def words(
    text: TextLines,
    output: Output,
    vocab_size: Annotated[
        int | None, typer.Option(help="Number of words, special ones included. Default: all.")
    ] = None,
    min_count: Annotated[int, typer.Option(help="How often a word must occur to be known.")] = 1,
    lowercase: Lowercase = False,
    keep_accents: Annotated[bool, typer.Option(help="Keep accents.")] = True,
    extra_special_tokens: SpecialTokens = "",
    overwrite: Overwrite = False,
) -> None:
    """Count whole words, for models of a closed vocabulary."""
    _, report = train_word_tokenizer(
        text,
        output,
        vocab_size,
        min_count,
        do_lower_case=lowercase,
        keep_accents=keep_accents,
        extra_special_tokens=extra_special_tokens.split(),
        overwrite=overwrite,
    )
    _show(output, text, report)


def compare(
    first: Annotated[str, typer.Argument(help="Folder or Hub name of a tokenizer.")],
    second: Annotated[str, typer.Argument(help="Another.")],
    text: Annotated[list[Path], typer.Option(help="What to cut: files (plain, .gz or .zst), folders, or -.")],
    errors: Errors = "strict",
    sample_limit: Annotated[int, typer.Option(help="Cut so many lines, drawn from all.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Start of the draw.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:
    """Show two tokenizers side by side on the same text."""
    lines = TextLines(text, errors, sample_limit, seed, held_out=0)
    tokenizers = (_tokenizer(first), _tokenizer(second))
    comparison = compare_tokenizers((first, second), tokenizers, list(lines.read("read")))
    if as_json:
        typer.echo(json.dumps(comparison.as_dict(), ensure_ascii=False, indent=2))
    else:
        Console().print(render(comparison))


def _tokenizer(source: str) -> PreTrainedTokenizerBase:
    if not Path(source).is_dir() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise ValueError(f"no folder {source}")
    try:
        return AutoTokenizer.from_pretrained(source)
    except (ValueError, OSError) as error:
        raise ValueError(f"no tokenizer can be loaded from {source}: {error}") from error


def _show(output: Path, text: TextLines, report: TokenizerReport) -> None:
    typer.echo(f"{output}: {report}\nmeasured on {text.measured()}")
