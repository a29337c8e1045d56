"""Lines of text files and of standard input that are not blank."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hf_lineage.text_files import STANDARD_INPUT, TextFile


class FileLines:
    """The lines of a file that are not blank.

    Args:
        path: A file, UTF-8, plain, `.gz` or `.zst`; `-` for standard input, which is copied to a temporary file.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.

    Raises:
        ValueError: If there is no such file or `errors` is another word.
    """

    def __init__(self, path: Path, errors: str):
        self.path = path
        self._file = TextFile(path, errors)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def size(self) -> int | None:
        """Bytes to read, `None` if that is not known."""
        return None if self.path == STANDARD_INPUT else self._file.size

    def read(self, advance: Callable[[int], object]) -> Iterator[str]:
        """Reads the file from its beginning.

        Args:
            advance: Told how many of its bytes were read since last time.

        Yields:
            Lines without white space around them.

        Raises:
            ValueError: If the file is damaged or not UTF-8.
        """
        for line in self._file.lines(advance):
            if stripped := line.strip():
                yield stripped


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
