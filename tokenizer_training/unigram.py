"""The unigram pieces of ALBERT- and XLNet-style models, trained by SentencePiece with the originals' settings."""

import importlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hf_lineage.files import atomic_folder

from .checks import TooLittleTextError, check_symbols
from .report import TokenizerReport, save_report
from .text import TextLines
from .unigram_families import ALBERT, USER_DEFINED_SYMBOLS, XLNET, XLNET_USER_DEFINED_SYMBOLS, UnigramFamily
from .unigram_text import (
    CHARSMAP_FIELD,
    ERRORS_ONLY,
    MAX_SENTENCE,
    NORMALIZER_FIELD,
    PIECE_BOUNDARY,
    normalization_table,
    prepared_sentences,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# the trainer's sums, and so the scores, depend on how many threads share them; so the number is fixed
_THREADS = 16


def train_albert_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int = 30_000,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    user_defined_symbols: Sequence[str] = USER_DEFINED_SYMBOLS,
    overwrite: bool = False,
) -> "tuple[PreTrainedTokenizerBase, TokenizerReport]":
    """Trains the unigram pieces of a text and saves a `LineageAlbertTokenizer`.

    Ids 0 to 4 are `<pad>`, `<unk>`, `[CLS]`, `[SEP]` and `[MASK]`, the user-defined symbols follow. The folder has a
    `spiece.model` too, for SentencePiece; the same text gives the same files.

    Args:
        text: The text.
        output: Folder to write to.
        vocab_size: Number of pieces, special ones included.
        do_lower_case: As in the tokenizer.
        keep_accents: As in the tokenizer.
        character_coverage: Share of the text's characters that become pieces; the rarest others are unknown.
        user_defined_symbols: Pieces that are never part of a longer one.
        overwrite: Whether a folder that exists may be replaced.

    Returns:
        The tokenizer, and what it makes of the lines that the text keeps out of training.

    Raises:
        ValueError: If an argument is out of range, sentencepiece is not installed, the text cannot be read, or it
            cannot fill so large a vocabulary or do with so small a one.
    """
    case = {"do_lower_case": do_lower_case, "keep_accents": keep_accents}
    return _train(ALBERT, text, output, vocab_size, case, character_coverage, user_defined_symbols, overwrite)


def train_xlnet_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int = 32_000,
    do_lower_case: bool = False,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    user_defined_symbols: Sequence[str] = XLNET_USER_DEFINED_SYMBOLS,
    overwrite: bool = False,
) -> "tuple[PreTrainedTokenizerBase, TokenizerReport]":
    """Trains the unigram pieces of a text and saves a `LineageXLNetTokenizer`.

    Ids 0 to 8 are `<unk>`, `<s>`, `</s>`, `<cls>`, `<sep>`, `<pad>`, `<mask>`, `<eod>` and `<eop>`, the user-defined
    symbols follow; all else is as in `train_albert_tokenizer`.
    """
    case = {"do_lower_case": do_lower_case, "keep_accents": keep_accents}
    return _train(XLNET, text, output, vocab_size, case, character_coverage, user_defined_symbols, overwrite)


def _train(
    family: UnigramFamily,
    text: TextLines,
    output: str | Path,
    vocab_size: int,
    case: dict[str, bool],
    character_coverage: float,
    user_defined_symbols: Sequence[str],
    overwrite: bool,
) -> "tuple[PreTrainedTokenizerBase, TokenizerReport]":
    sentencepiece = _sentencepiece()
    charsmap = normalization_table(sentencepiece, case["keep_accents"])
    normalize = family.text_normalizer(**case, charsmap=charsmap).normalize_str
    _check(family, vocab_size, character_coverage, user_defined_symbols, normalize)
    with atomic_folder(output, overwrite) as folder, ThreadPoolExecutor(1) as meanwhile:

        def sentences() -> Iterator[str]:
            yield from prepared_sentences(text.read("read"), normalize, case["do_lower_case"])
            # from here on SentencePiece lets Python run, so importing the tokenizer, with transformers, costs little
            meanwhile.submit(getattr, family, "tokenizer_class")

        model = _trained(family, sentencepiece, sentences(), vocab_size, character_coverage, user_defined_symbols)
        model_file = folder / "spiece.model"
        model_file.write_bytes(_with_charsmap(model, charsmap))
        tokenizer = family.tokenizer_class(vocab_file=model_file, **case)
        tokenizer.save_pretrained(folder)
        report = save_report(tokenizer, text, folder)
    return tokenizer, report


def _sentencepiece() -> ModuleType:
    try:
        return importlib.import_module("sentencepiece")
    except ImportError as error:
        raise ValueError(
            "training a unigram vocabulary needs sentencepiece: pip install 'sentencepiece>=0.2.3'"
        ) from error


def _check(
    family: UnigramFamily,
    vocab_size: int,
    character_coverage: float,
    symbols: Sequence[str],
    normalize: Callable[[str], str],
) -> None:
    if not 0 < character_coverage <= 1:
        raise ValueError(f"character_coverage must be above 0 and at most 1, got {character_coverage}")
    check_symbols("user_defined_symbols", symbols, family.special_tokens)
    lost = [symbol for symbol in symbols if normalize(symbol) != symbol or " " in symbol]
    if lost:
        raise ValueError(f"user_defined_symbols has {lost[0]!r}, which no text is after normalization")
    fixed = len(family.special_tokens) + len(symbols)
    if vocab_size <= fixed:
        raise ValueError(
            f"vocab_size must be above {fixed}, the special tokens and user-defined symbols; got {vocab_size}"
        )


def _trained(
    family: UnigramFamily,
    sentencepiece: ModuleType,
    sentences: Iterable[str],
    vocab_size: int,
    character_coverage: float,
    user_defined_symbols: Sequence[str],
) -> bytes:
    failures: list[Exception] = []

    def guarded() -> Iterator[str]:
        try:
            yield from sentences
        except Exception as error:  # which SentencePiece would turn to one of its own
            failures.append(error)
            raise

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=guarded(),
            model_writer=model,
            **trainer_options(family, vocab_size, character_coverage, user_defined_symbols),
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        raise _explanation(str(error), vocab_size) from error
    return model.getvalue()


def trainer_options(
    family: UnigramFamily, vocab_size: int, character_coverage: float, user_defined_symbols: Sequence[str]
) -> dict[str, Any]:
    """Options of `SentencePieceTrainer.train` for text that is prepared already."""
    return {
        "model_type": "unigram",
        "vocab_size": vocab_size,
        "character_coverage": character_coverage,
        **family.ids,
        "control_symbols": list(family.control_symbols),
        "user_defined_symbols": [*family.own_symbols, *user_defined_symbols],
        "normalization_rule_name": "identity",
        "pretokenization_delimiter": PIECE_BOUNDARY,
        "max_sentence_length": 8 * MAX_SENTENCE,  # in bytes
        "num_threads": _THREADS,
        "minloglevel": ERRORS_ONLY,
    }


def _explanation(message: str, vocab_size: int) -> ValueError:
    if found := re.search(r"Vocabulary size too high .* a value <= (\d+)", message):
        return TooLittleTextError(int(found[1]), vocab_size)
    if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return ValueError(
            f"the characters of the text need a vocabulary of at least {found[1]}, not {vocab_size}: "
            f"choose a larger vocab_size or a lower character_coverage"
        )
    if "sentences_.empty()" in message:
        return ValueError("the text has nothing but white space and control characters")
    return ValueError(f"sentencepiece cannot train on this text: {message}")


def _with_charsmap(model: bytes, charsmap: bytes) -> bytes:
    """Adds the table to a model. A message that is there a second time is added to the first by all who read it."""
    message = _length_delimited(CHARSMAP_FIELD, charsmap)
    return model + _length_delimited(NORMALIZER_FIELD, message)


def _length_delimited(number: int, value: bytes) -> bytes:
    length, size = [], len(value)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + value
