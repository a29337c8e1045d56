"""The unigram pieces of ALBERT- and XLNet-style models, trained by SentencePiece with the originals' settings."""

import importlib
import io
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PreTrainedTokenizerBase

from hf_lineage import LineageAlbertTokenizer, LineageXLNetTokenizer
from hf_lineage.albert.sentencepiece_albert import wire_fields
from hf_lineage.files import atomic_folder

from .checks import TooLittleTextError, check_symbols
from .report import TokenizerReport, save_report
from .text import TextLines

# (google-research/albert, README.md, "Training Data Preprocessing")
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
# (zihangdai/xlnet, README.md, "Pretraining with XLNet")
XLNET_USER_DEFINED_SYMBOLS = (".", "(", ")", '"', "-", "–", "£", "€")

# the trainer's sums, and so the scores, depend on how many threads share them; so the number is fixed
_THREADS = 16
_MAX_SENTENCE = 1000
_CACHED_WORDS = 1 << 16
_PIECE_BOUNDARY = "\x1f"  # no control character is left in what it is put into
_DIGIT_COMMA = re.compile(r"(?<=\d),")
_RESERVED = "▅"  # SentencePiece leaves out every sentence with its own sign for what is unknown
_ERRORS_ONLY = 2  # level of its log
_NORMALIZER_FIELD, _CHARSMAP_FIELD = 3, 2  # numbers in its model

# What SentencePiece's rule "nmt_nfkc" does besides NFKC: control characters go, invisible ones become spaces, U+0085
# too. After NFKD the rest must not be done: it would put Korean syllables together again, which the backend cannot.
_REMOVED = (*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F)
_SPACES = tuple(int(code, 16) for code in "9 A C D 85 61C 1680 200B 200C 200E 200F 2028 2029 2581 FEFF FFFD".split())


@dataclass(frozen=True)
class UnigramFamily:
    """What makes a unigram vocabulary one of a family.

    Args:
        tokenizer_class: The family's tokenizer.
        ids: Options of SentencePiece's trainer for the pieces with ids of their own, -1 for none.
        control_symbols: The special tokens behind them, which no text is cut into.
        own_symbols: Further ones, which a text may be cut into.
    """

    tokenizer_class: type[PreTrainedTokenizerBase]
    ids: dict[str, Any]
    control_symbols: tuple[str, ...]
    own_symbols: tuple[str, ...] = ()

    @property
    def special_tokens(self) -> list[str]:
        """All of them, in the order of their ids."""
        named = [name for name in ("unk", "bos", "eos", "pad") if self.ids[f"{name}_id"] >= 0]
        named.sort(key=lambda name: self.ids[f"{name}_id"])
        return [*(self.ids[f"{name}_piece"] for name in named), *self.control_symbols, *self.own_symbols]


ALBERT = UnigramFamily(
    LineageAlbertTokenizer,
    {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "pad_piece": "<pad>", "unk_piece": "<unk>"},
    ("[CLS]", "[SEP]", "[MASK]"),
)
XLNET = UnigramFamily(
    LineageXLNetTokenizer,
    {
        "unk_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "pad_id": -1,
        "unk_piece": "<unk>",
        "bos_piece": "<s>",
        "eos_piece": "</s>",
    },
    ("<cls>", "<sep>", "<pad>", "<mask>", "<eod>"),
    ("<eop>",),
)


def train_albert_tokenizer(
    text: TextLines,
    output: str | Path,
    vocab_size: int = 30_000,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    user_defined_symbols: Sequence[str] = USER_DEFINED_SYMBOLS,
    overwrite: bool = False,
) -> tuple[PreTrainedTokenizerBase, TokenizerReport]:
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
) -> tuple[PreTrainedTokenizerBase, TokenizerReport]:
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
) -> tuple[PreTrainedTokenizerBase, TokenizerReport]:
    sentencepiece = _sentencepiece()
    charsmap = _charsmap(sentencepiece, case["keep_accents"])
    preparer: Any = family.tokenizer_class(**case, _spm_precompiled_charsmap=charsmap)
    normalize = preparer.backend_tokenizer.normalizer.normalize_str
    _check(family, vocab_size, character_coverage, user_defined_symbols, normalize)
    with atomic_folder(output, overwrite) as folder:
        sentences = _sentences(text.read("read"), normalize)
        model = _trained(family, sentencepiece, sentences, vocab_size, character_coverage, user_defined_symbols)
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


def _charsmap(sentencepiece: ModuleType, keep_accents: bool) -> bytes:
    """The table by which the text is normalized last: all of `nmt_nfkc`, or without accents only what NFKD leaves."""
    if keep_accents:
        normalizer = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    else:
        rules = [f"{code:X}\t" for code in _REMOVED] + [f"{code:X}\t20" for code in _SPACES]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rules.tsv")
            file.write_text("".join(f"{rule}\n" for rule in rules))
            sentencepiece.set_min_log_level(_ERRORS_ONLY)
            normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=str(file))
    charsmap = dict(wire_fields(normalizer.serialized_normalizer_spec()))[_CHARSMAP_FIELD]
    return bytes(charsmap)


def _sentences(lines: Iterable[str], normalize: Callable[[str], str]) -> Iterator[str]:
    """What the trainer reads: normalized text in parts of bounded length, as it fails on words that are too long."""

    @lru_cache(_CACHED_WORDS)
    def prepared(word: str) -> str:
        words = normalize(word).replace(_RESERVED, " ").split()
        # a piece that ends in a digit and a comma would never be used
        return _DIGIT_COMMA.sub(f"{_PIECE_BOUNDARY},", " ".join(words))

    for line in lines:
        sentence = " ".join(filter(None, map(prepared, line.split())))
        start = 0
        while start < len(sentence):
            end = start + _MAX_SENTENCE
            if end < len(sentence):
                space = sentence.rfind(" ", start + 1, end)
                end = space if space > 0 else end
            yield sentence[start:end]
            start = end


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
            model_type="unigram",
            vocab_size=vocab_size,
            character_coverage=character_coverage,
            **family.ids,
            control_symbols=list(family.control_symbols),
            user_defined_symbols=[*family.own_symbols, *user_defined_symbols],
            normalization_rule_name="identity",
            pretokenization_delimiter=_PIECE_BOUNDARY,
            max_sentence_length=8 * _MAX_SENTENCE,  # in bytes
            num_threads=_THREADS,
            minloglevel=_ERRORS_ONLY,
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        raise _explanation(str(error), vocab_size) from error
    return model.getvalue()


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
    message = _length_delimited(_CHARSMAP_FIELD, charsmap)
    return model + _length_delimited(_NORMALIZER_FIELD, message)


def _length_delimited(number: int, value: bytes) -> bytes:
    length, size = [], len(value)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + value
