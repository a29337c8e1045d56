"""The text that every tokenizer is trained on: lines of files, folders and standard input."""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from hf_lineage.text_files import STANDARD_INPUT, TextFile


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
        if sample_limit is not None and sample_limit < 1:
            raise ValueError(f"sample_limit must be at least 1, got {sample_limit}")
        if not inputs:
            raise ValueError("give at least one text file")
        self.files = [file for path in inputs for file in _files(Path(path))]
        standard_input = [TextFile(STANDARD_INPUT, errors)] if STANDARD_INPUT in self.files else []
        self._texts = [standard_input[0] if file == STANDARD_INPUT else TextFile(file, errors) for file in self.files]
        self.sample_limit = sample_limit
        self.seed = seed
        self._sample: list[str] | None = None

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
        size = sum(text.size for text in self._texts)
        is_empty = True
        with tqdm(desc=description, total=size or None, unit="B", unit_scale=True, disable=None) as bar:
            for text in self._texts:
                for line in map(str.strip, text.lines(bar.update)):
                    if line:
                        is_empty = False
                        yield line
        if is_empty:
            raise ValueError(f"no text in {', '.join(map(str, self.files))}")


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
