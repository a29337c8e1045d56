"""Reads the pieces of a published `spiece.model` without the packages sentencepiece and protobuf."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# types of a piece and of a model in sentencepiece_model.proto
_NORMAL, _UNKNOWN, _BYTE = 1, 2, 6
_UNIGRAM = 1

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class SentencePieceModel(NamedTuple):
    """What a tokenizer needs of a SentencePiece model.

    Args:
        vocab: Pieces with their scores, in the order of their ids.
        unk_id: Id of the unknown piece.
        charsmap: The table by which SentencePiece normalizes a text before it cuts it, empty for none.
    """

    vocab: list[tuple[str, float]]
    unk_id: int
    charsmap: bytes


def read_sentencepiece_model(path: str | os.PathLike) -> SentencePieceModel:
    """Reads a unigram model as SentencePiece writes it.

    A user-defined piece such as `(` is one like all others here. Its score of 0 is higher than the logarithm of a
    probability, so it always wins, as it does in SentencePiece. (sentencepiece, `sentencepiece_model.proto`.)

    Args:
        path: The file, usually called `spiece.model`.

    Raises:
        ValueError: If the file is no such model, or one that is not cut into words at spaces as XLNet's is.
    """
    try:
        return _model(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not a SentencePiece model that can be read here: {error}") from error


def _model(data: bytes) -> SentencePieceModel:
    vocab: list[tuple[str, float]] = []
    kinds: list[int] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in wire_fields(data):
        if number == 1:
            piece = dict(wire_fields(_message(value)))
            vocab.append((_message(piece.get(1, b"")).decode("utf-8"), _score(piece.get(2, bytes(4)))))
            kinds.append(_integer(piece.get(3, _NORMAL)))
        elif number == 2:
            trainer.update(wire_fields(_message(value)))
        elif number == 3:
            normalizer.update(wire_fields(_message(value)))
    if not vocab:
        raise ValueError("it has no pieces")
    if kinds.count(_UNKNOWN) != 1:
        raise ValueError(f"it must have one unknown piece, it has {kinds.count(_UNKNOWN)}")
    if _integer(trainer.get(3, _UNIGRAM)) != _UNIGRAM:
        raise ValueError("its type must be unigram, it is a BPE, word or character model")
    if _BYTE in kinds:
        raise ValueError("it falls back to bytes, which XLNet's tokenizer does not")
    defaults = {"add_dummy_prefix": 3, "remove_extra_whitespaces": 4, "escape_whitespaces": 5}
    switched_off = [name for name, number in defaults.items() if not _integer(normalizer.get(number, 1))]
    if switched_off:
        raise ValueError(f"it was trained without {' and '.join(switched_off)}")
    if _integer(trainer.get(24, 0)):
        raise ValueError("it was trained with treat_whitespace_as_suffix")
    return SentencePieceModel(vocab, kinds.index(_UNKNOWN), _message(normalizer.get(2, b"")))


def wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields in protobuf's wire format.

    Args:
        data: A serialized message.

    Yields:
        The number of each field with its value: an integer, or the bytes of a text, a message or a fixed-width number.

    Raises:
        ValueError: If the bytes are no message.
    """
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        elif wire_type in (_FIXED32, _FIXED64):
            length = 4 if wire_type == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire_type} at byte {position}")
        if length > len(data) - position:
            raise ValueError(f"a field of {length} bytes where {len(data) - position} are left")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ValueError("it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number of more than ten bytes")


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"the number {value} where text or a message belongs")
    return value


def _integer(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{len(value)} bytes where an integer belongs")
    return value


def _score(value: int | bytes) -> float:
    if len(_message(value)) != 4:
        raise ValueError("a score that is no 32-bit number")
    return struct.unpack("<f", _message(value))[0]


__all__ = ["SentencePieceModel", "read_sentencepiece_model", "wire_fields"]
