"""Static word vectors from the files of word2vec and GloVe."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np

LONGEST_WORD = 1000  # bytes; where a binary file has none that ends by then, it is none of word2vec
LARGEST_SIZE = 100_000


@dataclass(frozen=True)
class StaticVectors:
    """Words and their vectors.

    Attributes:
        words: Each word once, in the order of the file.
        vectors: `(words, size)` float32.
        format: `"word2vec binary"`, `"word2vec text"` or `"GloVe text"`.
    """

    words: list[str]
    vectors: np.ndarray
    format: str

    @property
    def is_lower_cased(self) -> bool:
        """Whether no word has an upper case letter."""
        return all(word == word.lower() for word in self.words)


def read_static_vectors(path: str | os.PathLike, limit: int | None = None) -> StaticVectors:
    """Reads word vectors; which format a file has, and whether gzip has packed it, follows from what it holds.

    Memory grows with what the file holds, never with what its first line says. Of a word that comes twice the first
    vector counts. Bytes that are not UTF-8 become U+FFFD.

    Args:
        path: The file.
        limit: How many words to read, those at the file's beginning; `None` for all.

    Raises:
        ValueError: If the file is missing, damaged, empty or in another format, or a vector is not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no file {path} (looked in {path.resolve().parent})")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ValueError(f"limit must be None or an integer of at least 1, got {limit!r}")
    try:
        with _opened(path) as file:
            return _read(file, limit, str(path))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error


def _opened(path: Path) -> IO[bytes]:
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if is_gzip else open(path, "rb")


def _read(file: IO[bytes], limit: int | None, name: str) -> StaticVectors:
    first = file.readline(LONGEST_WORD * 1000)
    header = first.split()
    if len(header) == 2 and all(part.isdigit() for part in header):
        count, size = map(int, header)
        if not 1 <= size <= LARGEST_SIZE or count < 1:
            raise ValueError(f"{name} says {count} vectors of {size}; a size is 1 to {LARGEST_SIZE}")
        wanted = count if limit is None else min(count, limit)
        head = io.BytesIO(file.read(1 << 16))
        # a vector in text is only digits, signs and the like
        is_text = _looks_like_text(head.getvalue(), size)
        source = io.BufferedReader(cast(io.RawIOBase, _Joined(head, file)))
        rows = _text_rows(source, size, name) if is_text else _binary_rows(source, size, name)
        found = _collected(rows, wanted, size, name)
        if found[2] < wanted:
            raise ValueError(f"{name} says {count} vectors, it holds {found[2]}")
        return StaticVectors(found[0], found[1], "word2vec text" if is_text else "word2vec binary")
    size = len(header) - 1
    if not _is_text_row(first, size):
        raise ValueError(
            f"{name} is no file of word vectors: its first line must be two numbers, or a word and its vector, "
            f"got {first[:60]!r}"
        )
    lines = io.BufferedReader(cast(io.RawIOBase, _Joined(io.BytesIO(first), file)))
    words, vectors, _ = _collected(_text_rows(lines, size, name), limit, size, name)
    return StaticVectors(words, vectors, "GloVe text")


class _Joined(io.RawIOBase):
    """One file behind the other."""

    def __init__(self, *files: IO[bytes]):
        self.files = list(files)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer) -> int:
        """Reads from the first file that has something left."""
        while self.files:
            content = self.files[0].read(len(buffer))
            if content:
                buffer[: len(content)] = content
                return len(content)
            self.files.pop(0)
        return 0


def _looks_like_text(head: bytes, size: int) -> bool:
    return _is_text_row(head.split(b"\n", 1)[0], size)


def _is_text_row(line: bytes, size: int) -> bool:
    parts = line.split()
    if size < 1 or size > LARGEST_SIZE or len(parts) < size + 1:
        return False
    try:
        [float(part) for part in parts[-size:]]
    except ValueError:
        return False
    return True


def _text_rows(file: IO[bytes], size: int, name: str) -> Iterator[tuple[bytes, np.ndarray]]:
    longest = LONGEST_WORD + 50 * size
    for number in range(1, 1 << 62):
        line = file.readline(longest)
        if not line:
            return
        # from the right, since GloVe has words with spaces
        parts = line.rstrip().rsplit(b" ", size)
        if len(parts) != size + 1:
            parts = line.split()
        try:
            if len(parts) != size + 1:
                raise ValueError
            vector = np.array(parts[1:], dtype=np.float32)
        except ValueError:
            raise ValueError(
                f"{name}, vector {number}: must be a word and {size} numbers, got {line[:60]!r}"
            ) from None
        yield parts[0], vector


def _binary_rows(file: IO[bytes], size: int, name: str) -> Iterator[tuple[bytes, np.ndarray]]:
    for number in range(1, 1 << 62):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte and not word.strip():
                return
            word += byte
            if not byte or len(word) > LONGEST_WORD:
                raise ValueError(f"{name}, vector {number}: no word of at most {LONGEST_WORD} bytes and a space")
        content = file.read(4 * size)
        if len(content) != 4 * size:
            raise ValueError(f"{name}, vector {number}: {4 * size} bytes of a vector, there are {len(content)}")
        # some programs write a line feed behind a vector
        yield bytes(word.lstrip(b"\n")), np.frombuffer(content, dtype="<f4")


def _collected(
    rows: Iterator[tuple[bytes, np.ndarray]], wanted: int | None, size: int, name: str
) -> tuple[list[str], np.ndarray, int]:
    """Words and vectors without repetitions, and how many were read."""
    vectors: dict[str, np.ndarray] = {}
    read = 0
    for encoded, vector in rows:
        read += 1
        if not np.isfinite(vector).all():
            raise ValueError(f"{name}, vector {read}: it holds a number that is not finite")
        vectors.setdefault(encoded.decode("utf-8", errors="replace"), vector)
        if read == wanted:
            break
    if not vectors:
        raise ValueError(f"{name} holds no vectors")
    return list(vectors), np.stack(list(vectors.values())).astype(np.float32, copy=False), read


__all__ = ["StaticVectors", "read_static_vectors"]
