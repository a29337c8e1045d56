"""The sentences that SentencePiece trains on: normalized as the tokenizer does, and no longer than it can take."""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from hf_lineage.albert.sentencepiece_albert import wire_fields

PIECE_BOUNDARY = "\x1f"  # no control character is left in what it is put into
MAX_SENTENCE = 1000
ERRORS_ONLY = 2  # level of SentencePiece's log
NORMALIZER_FIELD, CHARSMAP_FIELD = 3, 2  # numbers in its model

_CACHED_WORDS = 1 << 16
_DIGIT_COMMA = re.compile(r",(?<=\d,)")  # the comma first is ten times as fast
_RESERVED = "▅"  # SentencePiece leaves out every sentence with its own sign for what is unknown

# What SentencePiece's rule "nmt_nfkc" does besides NFKC: control characters go, invisible ones become spaces, U+0085
# too. After NFKD the rest must not be done: it would put Korean syllables together again, which the backend cannot.
_REMOVED = (*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F)
_SPACES = tuple(int(code, 16) for code in "9 A C D 85 61C 1680 200B 200C 200E 200F 2028 2029 2581 FEFF FFFD".split())


def normalization_table(sentencepiece: ModuleType, keep_accents: bool) -> bytes:
    """The table by which the text is normalized last: all of `nmt_nfkc`, or without accents only what NFKD leaves."""
    if keep_accents:
        normalizer = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    else:
        rules = [f"{code:X}\t" for code in _REMOVED] + [f"{code:X}\t20" for code in _SPACES]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rules.tsv")
            file.write_text("".join(f"{rule}\n" for rule in rules))
            sentencepiece.set_min_log_level(ERRORS_ONLY)
            normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=str(file))
    charsmap = dict(wire_fields(normalizer.serialized_normalizer_spec()))[CHARSMAP_FIELD]
    return bytes(charsmap)


def prepared_sentences(lines: Iterable[str], normalize: Callable[[str], str], do_lower_case: bool) -> Iterator[str]:
    """What the trainer reads: normalized text in parts of bounded length, as it fails on words that are too long.

    Args:
        lines: The text.
        normalize: What the tokenizer does to a text before it cuts it.
        do_lower_case: Whether it makes letters small. To plain ASCII it does nothing else, so such lines, which are
            most of an English text, are spared the way through `normalize`.

    Yields:
        Sentences of 1 to 1,000 characters.
    """

    cased = str.lower if do_lower_case else str

    @lru_cache(_CACHED_WORDS)
    def normalized(word: str) -> str:
        if _is_plain(word):
            return cased(word)
        return " ".join(normalize(word).replace(_RESERVED, " ").split())

    for line in lines:
        sentence = cased(line) if _is_plain(line) else " ".join(filter(None, map(normalized, line.split())))
        # a piece that ends in a digit and a comma would never be used
        yield from _parts(_DIGIT_COMMA.sub(f"{PIECE_BOUNDARY},", sentence))


def _is_plain(text: str) -> bool:
    """Whether nothing changes in a text but the case of letters: ASCII without spaces or quotes that become fewer."""
    return (
        text.isascii()
        and text.isprintable()
        and "  " not in text
        and "``" not in text
        and "''" not in text
        and text[:1] != " " != text[-1:]
    )


def _parts(sentence: str) -> Iterator[str]:
    start = 0
    while start < len(sentence):
        end = start + MAX_SENTENCE
        if end < len(sentence):
            space = sentence.rfind(" ", start + 1, end)
            end = space if space > 0 else end
        yield sentence[start:end]
        start = end
