"""Lines of text files, packed or not, and of standard input."""

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

STANDARD_INPUT = Path("-")
_BYTE_ORDER_MARK = "\ufeff".encode()
_LINES_PER_UPDATE = 1000


class FileLines:
    """The lines of a file that are not blank.

    Args:
        path: A file, UTF-8, plain, `.gz` or `.zst`; `-` for standard input, which is copied to a temporary file.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.
    """

    def __init__(self, path: Path, errors: str):
        self.path = path
        self.errors = errors
        self._standard_input = _copied_standard_input() if path == STANDARD_INPUT else None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def size(self) -> int | None:
        """Bytes to read, `None` if that is not known."""
        return None if self._standard_input is not None else self.path.stat().st_size

    def read(self, advance: Callable[[int], object]) -> Iterator[str]:
        """Reads the file from its beginning.

        Args:
            advance: Told how many of its bytes were read since last time.

        Yields:
            Lines without white space around them.

        Raises:
            ValueError: If the file is damaged or not UTF-8.
        """
        if self._standard_input is not None:
            self._standard_input.seek(0)
            yield from _decoded(self._standard_input, self.path, self.errors)
            return
        with self.path.open("rb") as raw:
            done = 0
            for number, line in enumerate(_decoded(_unpacked(raw, self.path), self.path, self.errors)):
                if number % _LINES_PER_UPDATE == 0:
                    advance(raw.tell() - done)
                    done = raw.tell()
                yield line
            advance(self.path.stat().st_size - done)  # what unpacks a file may have closed it


def files_of(inputs: Sequence[str | Path]) -> list[Path]:
    """Files as they are, folders as their files that are not hidden, in the order of their names.

    Raises:
        ValueError: If an input is not there or a folder is empty.
    """
    return [file for path in inputs for file in _files(Path(path))]


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
