"""Files of text, read line by line: plain, compressed, or standard input."""

import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

STANDARD_INPUT = Path("-")
_BYTE_ORDER_MARK = "\ufeff".encode()
_LINES_PER_REPORT = 1000


class TextFile:
    """The lines of a file, read anew at each pass.

    Args:
        path: The file, UTF-8, plain, `.gz` or `.zst`; `-` for standard input, which is copied to a temporary file.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.

    Raises:
        ValueError: If there is no such file or `errors` is another word.
    """

    def __init__(self, path: str | os.PathLike, errors: str = "strict"):
        if errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', got {errors!r}")
        self.path = Path(path)
        self.errors = errors
        self._standard_input = None
        if self.path == STANDARD_INPUT:
            self._standard_input = _copied_standard_input()
        elif not self.path.is_file():
            raise ValueError(f"no text file {self.path}")

    @property
    def size(self) -> int:
        """Bytes of the file as it is on disk, 0 for standard input."""
        return 0 if self._standard_input else self.path.stat().st_size

    def lines(self, report: Callable[[int], object] | None = None) -> Iterator[str]:
        """Reads the file.

        Args:
            report: Is told now and then how many more bytes of the file have been read.

        Yields:
            All lines, blank ones too, without the characters that end them.

        Raises:
            ValueError: If the file is damaged or not UTF-8.
        """
        if self._standard_input is not None:
            self._standard_input.seek(0)
            yield from self._decoded(self._standard_input)
            return
        with self.path.open("rb") as raw:
            done = 0
            for number, line in enumerate(self._decoded(self._unpacked(raw))):
                if report and number % _LINES_PER_REPORT == 0:
                    report(raw.tell() - done)
                    done = raw.tell()
                yield line
        if report:
            report(self.size - done)

    def _unpacked(self, raw: BinaryIO) -> BinaryIO:
        if self.path.suffix == ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        if self.path.suffix == ".zst":
            try:
                import pyarrow
            except ImportError as error:
                raise ValueError(f"{self.path}: reading .zst needs pyarrow, which comes with datasets") from error
            stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, "r"), "zstd")
            return cast(BinaryIO, io.BufferedReader(stream))
        return raw

    def _decoded(self, stream: BinaryIO) -> Iterator[str]:
        position = 0
        try:
            for number, line in enumerate(stream, 1):
                is_marked = position == 0 and line.startswith(_BYTE_ORDER_MARK)
                try:
                    text = line.decode("utf-8-sig" if is_marked else "utf-8", self.errors)
                except UnicodeDecodeError as error:
                    offset = position + error.start + is_marked * len(_BYTE_ORDER_MARK)
                    raise ValueError(
                        f"{self.path}: byte {offset} ({error.object[error.start]:#04x}, in line {number}) is not "
                        f"UTF-8; --errors replace reads on"
                    ) from error
                position += len(line)
                yield text.rstrip("\r\n")
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{self.path} cannot be read to its end: {error}") from error


def _copied_standard_input() -> BinaryIO:
    copy = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as its text
    shutil.copyfileobj(sys.stdin.buffer, copy)
    return cast(BinaryIO, copy)


__all__ = ["STANDARD_INPUT", "TextFile"]
