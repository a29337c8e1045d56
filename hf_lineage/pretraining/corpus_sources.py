"""What a corpus is read from, block by block."""

import gzip
import math
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from datasets import Dataset, IterableDataset

_TEXT_TO_GZIP = 3  # about what gzip saves on prose; weighs compressed files against others
_ROWS_AT_ONCE = 16


class Document(NamedTuple):
    """A document: the number of its file in the corpus, where it begins there (byte or row), and its segments."""

    file: int
    position: int
    segments: list[str]

    @property
    def identity(self) -> tuple[int, int]:
        """What tells the document from all others of the corpus."""
        return self.file, self.position


class Source(Protocol):
    """Documents, of about `size` bytes of text."""

    @property
    def size(self) -> float:
        """Bytes of text, about."""

    def __iter__(self) -> Iterator[Document]: ...


@runtime_checkable
class IndexedSource(Source, Protocol):
    """A source whose blocks can be read in any order."""

    @property
    def num_blocks(self) -> int:
        """Number of blocks, some of which may hold no document."""

    def block(self, index: int) -> list[Document]:
        """The documents of a block."""


@runtime_checkable
class SequentialSource(Source, Protocol):
    """A source whose blocks can be read from first to last only."""

    def blocks(self) -> Iterator[list[Document]]:
        """All blocks, in order, each with a document at least."""


AnySource: TypeAlias = IndexedSource | SequentialSource


@dataclass(frozen=True)
class TextFile:
    """A text file of a corpus: its number there, its path and bytes, and whether it is a gzip file."""

    number: int
    path: str
    size: int
    compressed: bool

    @property
    def text_size(self) -> int:
        """Bytes of text, about."""
        return _TEXT_TO_GZIP * self.size if self.compressed else self.size


@dataclass(frozen=True)
class PlainText:
    """Uncompressed text files one after the other, as one line of bytes that blocks are cut from.

    A document belongs to the block in which the blank line before it begins, so a block is found without reading
    what is before it. Where each line is a document, it belongs to the block in which it begins.
    """

    files: tuple[TextFile, ...]
    block_size: int
    by_line: bool = False
    _ends: list[int] = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_ends", list(accumulate(file.size for file in self.files)))

    @property
    def size(self) -> int:
        """Bytes of text, about."""
        return self._ends[-1]

    @property
    def num_blocks(self) -> int:
        """Number of blocks, some of which may hold no document."""
        return math.ceil(self.size / self.block_size)

    def block(self, index: int) -> list[Document]:
        """The documents of a block."""
        start, stop = index * self.block_size, (index + 1) * self.block_size
        documents: list[Document] = []
        for number in range(bisect_right(self._ends, start), len(self.files)):
            begin = self._ends[number] - self.files[number].size
            if begin >= stop:
                break
            documents += self._read(self.files[number], max(start - begin, 0), stop - begin)
        return documents

    def __iter__(self) -> Iterator[Document]:
        for file in self.files:
            yield from self._read(file)

    def _read(self, file: TextFile, start: int = 0, stop: int | None = None) -> Iterator[Document]:
        return (_lines if self.by_line else _documents)(file, start, stop)


@dataclass(frozen=True)
class Rows:
    """A `datasets.Dataset`; a block is a fixed number of rows."""

    file: int
    dataset: Dataset
    column: str
    rows_per_block: int
    size: int

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return math.ceil(len(self.dataset) / self.rows_per_block)

    def block(self, index: int) -> list[Document]:
        """The documents of a block."""
        start = index * self.rows_per_block
        texts = self.dataset[start : start + self.rows_per_block][self.column]
        rows = (_row_document(self.file, start + offset, text) for offset, text in enumerate(texts))
        return [document for document in rows if document.segments]

    def __iter__(self) -> Iterator[Document]:
        for index in range(self.num_blocks):
            yield from self.block(index)


@dataclass(frozen=True)
class CompressedText:
    """Gzip files one after the other; a block ends with the first document that fills it."""

    files: tuple[TextFile, ...]
    block_size: int
    by_line: bool = False

    @property
    def size(self) -> int:
        """Bytes of text, about."""
        return sum(file.text_size for file in self.files)

    def blocks(self) -> Iterator[list[Document]]:
        """All blocks, in order."""
        return _fill_blocks(self, self.block_size)

    def __iter__(self) -> Iterator[Document]:
        for file in self.files:
            yield from (_lines if self.by_line else _documents)(file)


@dataclass(frozen=True)
class RowStream:
    """A shard of a `datasets.IterableDataset`; a block ends with the first document that fills it."""

    file: int
    dataset: IterableDataset
    shard: int
    column: str
    block_size: int
    size: int = 1  # unknown: shards of a dataset weigh the same

    def blocks(self) -> Iterator[list[Document]]:
        """All blocks, in order."""
        return _fill_blocks(self, self.block_size)

    def __iter__(self) -> Iterator[Document]:
        rows = self.dataset.shard(self.dataset.num_shards, self.shard)
        position = 0
        # not iter(rows), which in a worker of a DataLoader would give the worker's share
        for batch in rows.iter(batch_size=_ROWS_AT_ONCE):
            check_column(batch, self.column)
            for text in batch[self.column]:
                document = _row_document(self.file, position, text)
                if document.segments:
                    yield document
                position += 1


def _fill_blocks(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    block: list[Document] = []
    filled = 0
    for document in documents:
        block.append(document)
        filled += sum(map(len, document.segments))
        if filled >= size:
            yield block
            block, filled = [], 0
    if block:
        yield block


def _documents(file: TextFile, start: int = 0, stop: int | None = None) -> Iterator[Document]:
    """The documents before which a blank line begins in `start:stop`; the file's beginning counts as one."""
    with _opened(file) as lines:
        position = start
        if start:
            lines.seek(start - 1)
            position += len(lines.readline()) - 1
        owned = start == 0  # whether the next document, or the one that is being read, is wanted
        first = 0
        segments: list[str] = []
        for line in lines:
            text = _decoded(line, file.path, position)
            if text:
                if owned and not segments:
                    first = position
                if owned:
                    segments.append(text)
            else:
                if segments:
                    yield Document(file.number, first, segments)
                    segments = []
                owned = True
            if stop is not None and position >= stop and not segments:
                return
            position += len(line)
        if segments:
            yield Document(file.number, first, segments)


def _lines(file: TextFile, start: int = 0, stop: int | None = None) -> Iterator[Document]:
    """The lines that begin in `start:stop`, each a document."""
    with _opened(file) as lines:
        position = start
        if start:
            lines.seek(start - 1)
            position += len(lines.readline()) - 1
        for line in lines:
            if stop is not None and position >= stop:
                return
            if text := _decoded(line, file.path, position):
                yield Document(file.number, position, [text])
            position += len(line)


@contextmanager
def _opened(file: TextFile) -> Iterator[BinaryIO]:
    # in a local name, as a file that is open when the interpreter ends outlives the names of modules
    broken = (EOFError, zlib.error, gzip.BadGzipFile)
    with cast(BinaryIO, (gzip.open if file.compressed else open)(file.path, "rb")) as lines:
        try:
            yield lines
        except broken as error:
            raise ValueError(f"{file.path} is not a whole gzip file: {error}") from error


def _decoded(line: bytes, path: str, position: int) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8: byte {position + error.start} is {line[error.start]:#04x} ({error.reason}); "
            "convert the file first"
        ) from error
    return (text if position else text.removeprefix("\ufeff")).strip()


def check_column(columns: Iterable[str], column: str) -> None:
    """Checks that a dataset with these columns has one."""
    if column not in columns:
        raise ValueError(f"text_column must be a column of the dataset, {', '.join(columns)}, got {column!r}")


def _row_document(file: int, position: int, text: object) -> Document:
    if not isinstance(text, str):
        raise ValueError(f"the text of a document must be a string, got {type(text).__name__} in row {position}")
    return Document(file, position, [line.strip() for line in text.split("\n") if line.strip()])


__all__ = [
    "AnySource",
    "CompressedText",
    "Document",
    "IndexedSource",
    "PlainText",
    "RowStream",
    "Rows",
    "SequentialSource",
    "TextFile",
    "check_column",
]
