"""The text that every tokenizer is trained on: lines of files, folders and standard input."""

import gzip
import io
import random
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from tqdm import tqdm

STANDARD_INPUT = Path("-")
_BYTE_ORDER_MARK = "\ufeff".encode()
_LINES_PER_UPDATE = 1000


class TooLittleTextError(ValueError):
    """Raised where a text cannot fill a vocabulary.

    Args:
        largest: The number of entries that it is enough for.
        vocab_size: The number that was asked for.
    """

    def __init__(self, largest: int, vocab_size: int) -> None:
        super().__init__(
            f"the text is enough for a vocabulary of {largest}, not of {vocab_size}: "
            f"choose vocab_size {largest} or less, or give more text"
        )
        self.largest = largest


class TextLines:
    """Lines of text, read anew at each pass; blank ones are left out.

    Args:
        inputs: Files, UTF-8, plain, `.gz` or `.zst`; folders, of which every file counts that is not hidden, in the
            order of their names; `-` for standard input, which is copied to a temporary file.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.
        sample_limit: Number of lines to draw from all of them, each with the same chance. They are kept in memory.
        seed: Start of the draw.

    Raises:
        ValueError: If an input is not there, a folder is empty or an option is out of range.
    """

    def __init__(
        self,
        inputs: Sequence[str | Path],
        errors: str = "strict",
        sample_limit: int | None = None,
        seed: int = 0,
    ):
        if errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', got {errors!r}")
        if sample_limit is not None and sample_limit < 1:
            raise ValueError(f"sample_limit must be at least 1, got {sample_limit}")
        if not inputs:
            raise ValueError("give at least one text file")
        self.files = [file for path in inputs for file in _files(Path(path))]
        self.errors = errors
        self.sample_limit = sample_limit
        self.seed = seed
        self._sample: list[str] | None = None
        self._standard_input = _copied_standard_input() if STANDARD_INPUT in self.files else None

    def read(self, description: str) -> Iterator[str]:
        """Reads the lines, or those that were drawn, with a progress bar.

        Args:
            description: What is being done, for the bar.

        Yields:
            Lines without the characters that end them, and without white space around them.

        Raises:
            ValueError: If there is no text, or a file is damaged or not UTF-8.
        """
        if self.sample_limit is None:
            yield from self._all(description)
            return
        if self._sample is None:
            sample = LineSample(self.sample_limit, self.seed)
            for _ in sample.watch(self._all(f"{description}: draw")):
                pass
            self._sample = sample.lines
        yield from tqdm(self._sample, desc=description, unit=" lines", disable=None)

    def _all(self, description: str) -> Iterator[str]:
        size = sum(file.stat().st_size for file in self.files if file != STANDARD_INPUT)
        is_empty = True
        with tqdm(desc=description, total=size or None, unit="B", unit_scale=True, disable=None) as bar:
            for file in self.files:
                for line in self._lines(file, bar):
                    is_empty = False
                    yield line
        if is_empty:
            raise ValueError(f"no text in {', '.join(map(str, self.files))}")

    def _lines(self, file: Path, bar: tqdm) -> Iterator[str]:
        if self._standard_input is not None and file == STANDARD_INPUT:
            self._standard_input.seek(0)
            yield from _decoded(self._standard_input, file, self.errors)
            return
        with file.open("rb") as raw:
            done = 0
            for number, line in enumerate(_decoded(_unpacked(raw, file), file, self.errors)):
                if number % _LINES_PER_UPDATE == 0:
                    bar.update(raw.tell() - done)
                    done = raw.tell()
                yield line
            bar.update(file.stat().st_size - done)  # what unpacks a file may have closed it


class LineSample:
    """Lines drawn from a stream while it passes, each with the same chance.

    Args:
        limit: How many to draw; all, if there are fewer.
        seed: Start of the draw.
    """

    def __init__(self, limit: int, seed: int = 0):
        self.limit = limit
        self._generator = random.Random(seed)
        self._drawn: list[tuple[int, str]] = []

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Passes lines on."""
        for number, line in enumerate(lines):
            if number < self.limit:
                self._drawn.append((number, line))
            elif (place := self._generator.randrange(number + 1)) < self.limit:
                self._drawn[place] = (number, line)
            yield line

    @property
    def lines(self) -> list[str]:
        """The lines drawn so far, in their order."""
        return [line for _, line in sorted(self._drawn)]


def _files(path: Path) -> list[Path]:
    if path == STANDARD_INPUT or path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"no text file or folder {path}")
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    visible = [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if not visible:
        raise ValueError(f"no files in the folder {path}")
    return visible


def _copied_standard_input() -> BinaryIO:
    copy = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as its text
    shutil.copyfileobj(sys.stdin.buffer, copy)
    return cast(BinaryIO, copy)


def _unpacked(raw: BinaryIO, file: Path) -> BinaryIO:
    if file.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if file.suffix == ".zst":
        try:
            import pyarrow
        except ImportError as error:
            raise ValueError(f"{file}: reading .zst needs pyarrow, which comes with datasets") from error
        return cast(BinaryIO, io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, "r"), "zstd")))
    return raw


def _decoded(stream: BinaryIO, file: Path, errors: str) -> Iterator[str]:
    """The lines of a file that are not blank."""
    position = 0
    try:
        for number, line in enumerate(stream, 1):
            is_marked = position == 0 and line.startswith(_BYTE_ORDER_MARK)
            try:
                text = line.decode("utf-8-sig" if is_marked else "utf-8", errors).strip()
            except UnicodeDecodeError as error:
                offset = position + error.start + is_marked * len(_BYTE_ORDER_MARK)
                raise ValueError(
                    f"{file}: byte {offset} ({error.object[error.start]:#04x}, in line {number}) is not UTF-8; "
                    f"--errors replace reads on"
                ) from error
            position += len(line)
            if text:
                yield text
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{file} cannot be read to its end: {error}") from error
