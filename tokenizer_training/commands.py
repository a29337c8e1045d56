"""What the commands do: one for each family, and the comparison.

Each imports what it needs when it runs: no family waits for the packages of another.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    Errors,
    Lowercase,
    SpecialTokens,
    Symbols,
    Training,
    VocabSize,
    pieces,
    takes,
    training,
)
from .text import TextLines
from .unigram_families import USER_DEFINED_SYMBOLS, XLNET_USER_DEFINED_SYMBOLS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ALBERT_SYMBOLS = " ".join(USER_DEFINED_SYMBOLS)
_XLNET_SYMBOLS = " ".join(XLNET_USER_DEFINED_SYMBOLS)


@takes(training=training)
def elmo(
    training: Training,
    vocab_size: Annotated[
        int | None,
        typer.Option(help="Words of the softmax, three special ones included. Default: all, up to 793,471."),
    ] = None,
    text_split: Annotated[str, typer.Option(help="'whitespace' for tokenized text, 'words' for plain.")] = "words",
    word_input: Annotated[
        bool, typer.Option("--word-input", help="The model reads these words too, in place of characters.")
    ] = False,
) -> None:
    """Count words for the softmax of ELMo's language model."""
    from .elmo import train_elmo_tokenizer

    training.run(train_elmo_tokenizer, vocab_size=vocab_size, text_split=text_split, word_input=word_input)


@takes(training=training, pieces=pieces)
def albert(
    training: Training,
    pieces: dict[str, Any],
    vocab_size: VocabSize = 30_000,
    lowercase: Lowercase = True,
    user_defined_symbols: Symbols = _ALBERT_SYMBOLS,
) -> None:
    """Train the unigram pieces of an ALBERT-style model with SentencePiece."""
    from .unigram import train_albert_tokenizer

    symbols = user_defined_symbols.split()
    training.run(
        train_albert_tokenizer,
        vocab_size=vocab_size,
        do_lower_case=lowercase,
        user_defined_symbols=symbols,
        **pieces,
    )


@takes(training=training, pieces=pieces)
def xlnet(
    training: Training,
    pieces: dict[str, Any],
    vocab_size: VocabSize = 32_000,
    lowercase: Lowercase = False,
    user_defined_symbols: Symbols = _XLNET_SYMBOLS,
) -> None:
    """Train the unigram pieces of an XLNet-style model with SentencePiece."""
    from .unigram import train_xlnet_tokenizer

    symbols = user_defined_symbols.split()
    training.run(
        train_xlnet_tokenizer,
        vocab_size=vocab_size,
        do_lower_case=lowercase,
        user_defined_symbols=symbols,
        **pieces,
    )


@takes(training=training, pieces=pieces)
def bert(
    training: Training,
    pieces: dict[str, Any],
    vocab_size: VocabSize = 30_522,
    lowercase: Lowercase = True,
    extra_special_tokens: SpecialTokens = "",
) -> None:
    """Train the WordPiece vocabulary of a BERT."""
    from .wordpiece import train_bert_tokenizer

    special = extra_special_tokens.split()
    training.run(
        train_bert_tokenizer,
        vocab_size=vocab_size,
        do_lower_case=lowercase,
        extra_special_tokens=special,
        **pieces,
    )


@takes(training=training)
def gpt(training: Training, vocab_size: VocabSize = 50_257, extra_special_tokens: SpecialTokens = "") -> None:
    """Train the byte-level BPE of a GPT-2-style language model."""
    from .byte_bpe import train_gpt_tokenizer

    training.run(train_gpt_tokenizer, vocab_size=vocab_size, extra_special_tokens=extra_special_tokens.split())


@takes(training=training)
def words(
    training: Training,
    vocab_size: Annotated[
        int | None, typer.Option(help="Number of words, special ones included. Default: all.")
    ] = None,
    min_count: Annotated[int, typer.Option(help="How often a word must occur to be known.")] = 1,
    lowercase: Lowercase = False,
    keep_accents: Annotated[bool, typer.Option(help="Keep accents.")] = True,
    extra_special_tokens: SpecialTokens = "",
) -> None:
    """Count whole words, for models of a closed vocabulary."""
    from .words import train_word_tokenizer

    training.run(
        train_word_tokenizer,
        vocab_size=vocab_size,
        min_count=min_count,
        do_lower_case=lowercase,
        keep_accents=keep_accents,
        extra_special_tokens=extra_special_tokens.split(),
    )


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
    from rich.console import Console

    from .compare import compare_tokenizers, render

    lines = TextLines(text, errors, sample_limit, seed, held_out=0)
    tokenizers = (_tokenizer(first), _tokenizer(second))
    comparison = compare_tokenizers((first, second), tokenizers, list(lines.read("read")))
    if as_json:
        typer.echo(json.dumps(comparison.as_dict(), ensure_ascii=False, indent=2))
    else:
        Console().print(render(comparison))


def _tokenizer(source: str) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    if not Path(source).is_dir() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise ValueError(f"no folder {source}")
    try:
        return AutoTokenizer.from_pretrained(source)
    except (ValueError, OSError) as error:
        raise ValueError(f"no tokenizer can be loaded from {source}: {error}") from error
