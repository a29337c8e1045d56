"""Which pieces of a tokenizer make a word together."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import regex
from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

# scripts written without spaces, in which a piece is as much of a word as can be told; SA is Thai, Lao, Khmer, Burmese
_UNSPACED = r"[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{Line_Break=SA}]"
_LETTERS = regex.compile(rf"[[\p{{L}}\p{{M}}]--{_UNSPACED}]+", regex.VERSION1)
_STARTS_UNSPACED = regex.compile(_UNSPACED, regex.VERSION1)
_BYTE_PIECE = regex.compile("<0x([0-9A-F]{2})>")
_FALLBACK_MARKERS = ("▁", "Ġ", "##", "</w>")

_STICKS, _LETTERS_ONLY, _OPEN, _LONE_MARKER, _MARKED = (np.uint8(1 << bit) for bit in range(5))


class _Marker(NamedTuple):
    """How pieces show where words are: by what marks a `"start"`, an `"end"`, or that a piece `"continues"` a word."""

    position: str
    text: str = ""
    byte_level: bool = False


class WholeWords:
    """Finds the words in rows of token ids, by a table over the vocabulary.

    What marks a word is read from the tokenizer's own pre-tokenizer, decoder and model, or counted in its vocabulary
    where it has none of these:

    - SentencePiece ("▁") and byte-level BPE ("Ġ"): a piece begins a word if it has the mark. Without it, it continues
      a word if it is all letters and comes after a letter; punctuation, digits, and pieces of scripts that are written
      without spaces (Chinese, Japanese, Thai, ...) are words of their own. The original ALBERT knows only the letters
      a-z, and appends letters to punctuation before them; here `re-enter` is three words, as for BERT. A mark
      that is a piece by itself belongs to the next piece. Bytes that are a part of a character stay together.
    - WordPiece ("##"): a marked piece continues the word, unless its script is written without spaces.
    - "</w>": a piece with it ends the word.
    - otherwise each token is a word.

    Args:
        tokenizer (`PreTrainedTokenizerBase`):
            Any tokenizer of transformers.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        vocabulary = tokenizer.get_vocab()
        marker = _marker(tokenizer, vocabulary)
        whole = set(tokenizer.added_tokens_decoder) | set(tokenizer.all_special_ids)
        self._flags = np.zeros(max(vocabulary.values()) + 1, dtype=np.uint8)
        for piece, number in vocabulary.items():
            if number not in whole:
                self._flags[number] = _piece_flags(piece, marker)

    def __len__(self) -> int:
        return len(self._flags)

    def starts(self, input_ids: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Tells where words begin.

        Args:
            input_ids (integers, `(..., tokens)`):
                Ids below `len(self)`.
            inside (bool, `(..., tokens)`):
                False for tokens that are no part of any word, such as special tokens and padding; a word never reaches
                over them.

        Returns:
            bool, `(..., tokens)`: True for the first token of each word.
        """
        flags = self._flags[input_ids]
        before = np.zeros_like(flags)
        before[..., 1:] = np.where(inside[..., :-1], flags[..., :-1], 0)
        follows = np.zeros_like(inside)
        follows[..., 1:] = inside[..., :-1]
        letters_join = ((flags & _LETTERS_ONLY) > 0) & ((before & _OPEN) > 0)
        joins = letters_join | ((flags & _STICKS) > 0) | ((before & _LONE_MARKER) > 0)
        return inside & ~(follows & joins & ((flags & _MARKED) == 0))


def _marker(tokenizer: PreTrainedTokenizerBase, vocabulary: dict[str, int]) -> _Marker:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        steps = list(_pipeline_steps(backend))
        if any(step.get("type") == "ByteLevel" for step in steps):
            return _Marker("start", "Ġ", byte_level=True)
        for step in steps:
            if step.get("type") == "Metaspace":
                return _Marker("start", step["replacement"])
            if step.get("type") == "Replace" and "▁" in (step.get("content"), step["pattern"].get("String")):
                return _Marker("start", "▁")
        if prefix := getattr(backend.model, "continuing_subword_prefix", None):
            return _Marker("continues", prefix)
        if suffix := getattr(backend.model, "end_of_word_suffix", None):
            return _Marker("end", suffix)
        if type(backend.model).__name__ in ("WordLevel", "WordPiece"):
            return _Marker("start")
    return _most_frequent_marker(vocabulary)


def _pipeline_steps(backend: Any) -> Iterator[dict]:
    """All normalizers, pre-tokenizers and decoders, nested ones too, as the dictionaries they are saved as."""
    for part in (backend.pre_tokenizer, backend.decoder, backend.normalizer):
        try:
            remaining = [json.loads(part.__getstate__())] if part is not None else []
        except Exception:  # a step written in Python has no saved form; tokenizers raises plain Exception
            continue
        while remaining:
            step = remaining.pop(0)
            yield step
            for value in step.values():
                if isinstance(value, list):
                    remaining += [inner for inner in value if isinstance(inner, dict) and "type" in inner]


def _most_frequent_marker(vocabulary: dict[str, int]) -> _Marker:
    counts = {
        "▁": sum(piece.startswith("▁") for piece in vocabulary),
        "Ġ": sum(piece.startswith("Ġ") for piece in vocabulary),
        "##": sum(piece.startswith("##") and len(piece) > 2 for piece in vocabulary),
        "</w>": sum(piece.endswith("</w>") for piece in vocabulary),
    }
    text = max(_FALLBACK_MARKERS, key=lambda marker: counts[marker])
    if counts[text] < max(2, len(vocabulary) // 100):
        return _Marker("start")
    position = {"##": "continues", "</w>": "end"}.get(text, "start")
    return _Marker(position, text, byte_level=text == "Ġ")


def _piece_flags(piece: str, marker: _Marker) -> np.uint8:
    if not marker.text:
        return np.uint8(0)
    if marker.position == "end":
        return _LETTERS_ONLY | (np.uint8(0) if piece.endswith(marker.text) else _OPEN)
    if marker.position == "continues":
        continues = piece.startswith(marker.text) and not _STARTS_UNSPACED.match(piece, len(marker.text))
        return _STICKS if continues else np.uint8(0)
    if marker.byte_level:
        raw = _bytes_of(piece)
        marked = raw[:1].isspace()
        raw = raw.lstrip()
    elif single := _BYTE_PIECE.fullmatch(piece):
        raw, marked = bytes.fromhex(single[1]), False
    else:
        marked = piece.startswith(marker.text)
        raw = piece.removeprefix(marker.text).encode(errors="replace")
    if not raw:
        return _MARKED | _LONE_MARKER
    return _content_flags(raw) | (_MARKED if marked else np.uint8(0))


_BYTE_OF_CHARACTER = {character: byte for byte, character in bytes_to_unicode().items()}


def _bytes_of(piece: str) -> bytes:
    if all(character in _BYTE_OF_CHARACTER for character in piece):
        return bytes(_BYTE_OF_CHARACTER[character] for character in piece)
    return piece.encode(errors="replace")


def _content_flags(raw: bytes) -> np.uint8:
    whole = raw.lstrip(bytes(range(0x80, 0xC0)))  # what is cut off continues a character of the piece before
    text = _completed(whole).decode(errors="replace")
    flags = _STICKS if len(whole) < len(raw) else np.uint8(0)
    if not text or _LETTERS.fullmatch(text, len(text) - 1):
        flags |= _OPEN
    if text and _LETTERS.fullmatch(text):
        flags |= _LETTERS_ONLY
    return flags


def _completed(raw: bytes) -> bytes:
    """Adds the bytes that the last character lacks: any will do, as a first byte tells the script well enough."""
    for length in range(1, min(4, len(raw)) + 1):
        lead = raw[-length]
        if lead >= 0xC0:
            needed = 2 + (lead >= 0xE0) + (lead >= 0xF0) - length
            second = {0xE0: 0xA0, 0xF0: 0x90}.get(lead, 0x80)
            return raw + (bytes([second, 0x80, 0x80]) if length == 1 else b"\x80\x80")[: max(needed, 0)]
    return raw


__all__ = ["WholeWords"]
