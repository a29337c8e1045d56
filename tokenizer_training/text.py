"""The text that every tokenizer is trained on, and the lines of it that are kept out to measure the result."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from .text_datasets import DatasetLines
from .text_files import FileLines, files_of

HELD_OUT = 0.01
MEASURED_LINES = 10_000
_LINES_PER_UPDATE = 1000
_HASH_BYTES = 8


class TextLines:
    """Lines of text, read anew at each pass; blank ones are left out.

    A share of the lines is kept out of what is read, to measure the tokenizer on. A line belongs to them by a hash of
    its text and the seed, wherever and however often it stands, so no line is both trained on and measured.

    Args:
        inputs: Files, UTF-8, plain, `.gz` or `.zst`; folders, of which every file counts that is not hidden, in the
            order of their names; `-` for standard input, which is copied to a temporary file.
        errors: `"strict"` to refuse what is not UTF-8, `"replace"` to read U+FFFD in its place.
        sample_limit: Number of lines to draw from all of them, each with the same chance. They are kept in memory.
        seed: Start of the draws.
        held_out: Share of the different lines that is kept out, at least 0 and below 1.
        datasets: Further text, from datasets.

    Raises:
        ValueError: If an input is not there, a folder is empty or an option is out of range.
    """

    def __init__(
        self,
        inputs: Sequence[str | Path] = (),
        errors: str = "strict",
        sample_limit: int | None = None,
        seed: int = 0,
        held_out: float = HELD_OUT,
        datasets: Sequence[DatasetLines] = (),
    ):
        if errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', got {errors!r}")
        if sample_limit is not None and sample_limit < 1:
            raise ValueError(f"sample_limit must be at least 1, got {sample_limit}")
        if not 0 <= held_out < 1:
            raise ValueError(f"held_out must be at least 0 and below 1, got {held_out}")
        if not inputs and not datasets:
            raise ValueError("give at least one text file (--input) or dataset (--dataset)")
        self.files = files_of(inputs)
        self.sources: list[FileLines | DatasetLines] = [*(FileLines(file, errors) for file in self.files), *datasets]
        self.sample_limit = sample_limit
        self.seed = seed
        self.held_out = held_out
        self._sample: list[str] | None = None
        self._measured: MeasuredLines | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.sources))

    def read(self, description: str) -> Iterator[str]:
        """Reads the lines to train on, or those of them that were drawn, with a progress bar.

        Args:
            description: What is being done, for the bar.

        Yields:
            Lines without the characters that end them, and without white space around them.

        Raises:
            ValueError: If there is no text to train on, or a file is damaged or not UTF-8.
        """
        if self.sample_limit is None:
            yield from self._training_lines(description)
            return
        if self._sample is None:
            sample = LineSample(self.sample_limit, self.seed)
            for line in self._training_lines(f"{description}: draw"):
                sample.add(line)
            self._sample = sample.lines
        yield from tqdm(self._sample, desc=description, unit=" lines", disable=None)

    def measured(self) -> "MeasuredLines":
        """The lines to measure a tokenizer on: those kept out, or if there are none, some that it was trained on."""
        if self._measured is None:
            for _ in self.read("read"):
                pass
        if self._measured is None:
            raise ValueError(f"no text in {self}")
        if self._sample is None or self._measured.is_held_out:
            return self._measured
        lines = LineSample(MEASURED_LINES, self.seed).with_lines(self._sample).lines
        return MeasuredLines(lines, False, self._measured.total, self._measured.share, self.seed)

    def _training_lines(self, description: str) -> Iterator[str]:
        kept_out, trained_on = LineSample(MEASURED_LINES, self.seed), LineSample(MEASURED_LINES, self.seed)
        for line in self._all(description):
            if self._is_held_out(line):
                kept_out.add(line)
            else:
                trained_on.add(line)
                yield line
        if not trained_on.total:
            raise ValueError(
                f"held_out={self.held_out} keeps all lines of {self} out of training: choose a lower share"
            )
        measured = kept_out if kept_out.total else trained_on
        self._measured = MeasuredLines(measured.lines, bool(kept_out.total), measured.total, self.held_out, self.seed)

    def _is_held_out(self, line: str) -> bool:
        if not self.held_out:
            return False
        digest = hashlib.blake2b(line.encode(), digest_size=_HASH_BYTES, key=b"%d" % self.seed)
        return int.from_bytes(digest.digest(), "big") < self.held_out * 2 ** (8 * _HASH_BYTES)

    def _all(self, description: str) -> Iterator[str]:
        sizes = [source.size for source in self.sources]
        total = None if None in sizes else sum(size for size in sizes if size is not None)
        number = 0
        with tqdm(desc=description, total=total, unit="B", unit_scale=True, disable=None) as bar:
            for source in self.sources:
                for line in source.read(bar.update):
                    number += 1
                    if number % _LINES_PER_UPDATE == 0 and not bar.disable:
                        rate = number / max(bar.format_dict["elapsed"], 1e-9)
                        bar.set_postfix_str(f"{rate:,.0f} lines/s", refresh=False)
                    yield line
        if not number:
            raise ValueError(f"no text in {self}")


@dataclass(frozen=True)
class MeasuredLines:
    """Lines that a tokenizer is measured on, and how they were chosen.

    Args:
        lines: The lines, at most 10,000.
        is_held_out: Whether they were kept out of training.
        total: Number of lines that they were drawn from.
        share: Share of the different lines that was to be kept out.
        seed: Seed of the draws.
    """

    lines: list[str]
    is_held_out: bool
    total: int
    share: float
    seed: int

    def __str__(self) -> str:
        drawn = f"{len(self.lines):,} lines"
        if len(self.lines) < self.total:
            drawn += f", drawn from {self.total:,}"
        if self.is_held_out:
            return (
                f"{drawn} that were kept out of training, each with a probability of {self.share} by a hash of its "
                f"text and the seed {self.seed}, so that none of them was trained on"
            )
        reason = f" (none fell to the share of {self.share})" if self.share else ""
        return f"{drawn} of the training text, as none were kept out{reason}"


class LineSample:
    """Lines drawn from a stream while it passes, each with the same chance.

    Args:
        limit: How many to draw; all, if there are fewer.
        seed: Start of the draw.
    """

    def __init__(self, limit: int, seed: int = 0):
        self.limit = limit
        self.total = 0
        self._generator = random.Random(seed)
        self._drawn: list[tuple[int, str]] = []

    def add(self, line: str) -> None:
        """Takes the next line of the stream."""
        if self.total < self.limit:
            self._drawn.append((self.total, line))
        elif (place := self._generator.randrange(self.total + 1)) < self.limit:
            self._drawn[place] = (self.total, line)
        self.total += 1

    def with_lines(self, lines: Iterable[str]) -> "LineSample":
        """Takes lines, and returns itself."""
        for line in lines:
            self.add(line)
        return self

    @property
    def lines(self) -> list[str]:
        """The lines drawn so far, in their order."""
        return [line for _, line in sorted(self._drawn)]
