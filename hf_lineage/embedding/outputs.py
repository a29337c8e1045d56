"""The formats of vectors' files, each behind the same few methods."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..files import atomic_file, replace_folder
from .layouts import PlacedVectors, VectorShape, lay_out_hdf5, lay_out_npy, lay_out_safetensors
from .reading import Sentence
from .survey import Survey

FORMATS = ("hdf5", "safetensors", "parquet", "npy")
_SUFFIXES = {
    ".hdf5": "hdf5",
    ".h5": "hdf5",
    ".safetensors": "safetensors",
    ".parquet": "parquet",
    ".npy": "npy",
}
_LAYOUTS: dict[str, Callable[[Path, Survey, VectorShape, bool], Iterator[int]]] = {
    "hdf5": lay_out_hdf5,
    "safetensors": lay_out_safetensors,
    "npy": lay_out_npy,
}


class Output(Protocol):
    """A file or folder of vectors that is being made; sentences may come in any order within a window."""

    target: Path

    def prepare(self, survey: Survey) -> None:
        """Does what is to be done before the first vector."""

    def open(self) -> None:
        """Goes on behind what is there."""

    def write(self, number: int, vectors: np.ndarray) -> None:
        """Takes the vectors of a sentence that has words."""

    def end_window(self, first: int, sentences: list[Sentence]) -> None:
        """Puts a window on the disk; its first sentence has the number `first`."""

    def close(self) -> None:
        """Closes the files."""


class PlacedOutput:
    """HDF5, safetensors or npy: every vector has its place in a file that is made first.

    Args:
        folder: Folder to work in.
        kind: The format.
        shape: Shape of a sentence's vectors.
        with_sentences: Whether to write the index of sentences.
    """

    def __init__(self, folder: Path, kind: str, shape: VectorShape, with_sentences: bool):
        self.target = folder / f"vectors.{kind}"
        self._offsets = folder / "offsets"
        self._kind, self._shape, self._with_sentences = kind, shape, with_sentences
        self._vectors: PlacedVectors | None = None

    def prepare(self, survey: Survey) -> None:
        """Makes the file, with room for all vectors."""
        with self._offsets.open("wb") as file:
            for offset in _LAYOUTS[self._kind](self.target, survey, self._shape, self._with_sentences):
                file.write(np.int64(offset).tobytes())

    def open(self) -> None:
        """Opens the file for writing."""
        words_first = self._kind == "npy"
        file = self.target / "vectors.npy" if words_first else self.target
        self._vectors = PlacedVectors(file, self._offsets, words_first)

    def write(self, number: int, vectors: np.ndarray) -> None:
        """Writes the vectors of a sentence into their place."""
        assert self._vectors is not None
        self._vectors.write(number, vectors)

    def end_window(self, first: int, sentences: list[Sentence]) -> None:
        """Waits until the window is on the disk."""
        assert self._vectors is not None
        self._vectors.sync()

    def close(self) -> None:
        """Closes the file."""
        if self._vectors is not None:
            self._vectors.close()


class ParquetOutput:
    """A folder of Parquet files, one for each window, with a row for each sentence.

    Columns: `sentence` (its number), `text`, `tokens` and `vectors`, which are lists of words, or lists of layers of
    words. A window is held in memory.

    Args:
        folder: Folder to work in.
        shape: Shape of a sentence's vectors.
        with_sentences: Whether to write the columns `text` and `tokens`.
    """

    def __init__(self, folder: Path, shape: VectorShape, with_sentences: bool):
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ValueError("writing parquet needs pyarrow: pip install 'hf-lineage[embedding]'") from error
        self.target = folder / "vectors.parquet"
        self._shape, self._with_sentences = shape, with_sentences
        self._window: dict[int, np.ndarray] = {}

    def prepare(self, survey: Survey) -> None:
        """Makes the folder."""
        self.target.mkdir()

    def open(self) -> None:
        """Clears what a kill has left of a file."""
        for leftover in self.target.glob(".*"):
            leftover.unlink()

    def write(self, number: int, vectors: np.ndarray) -> None:
        """Keeps the vectors until their window ends."""
        self._window[number] = vectors

    def end_window(self, first: int, sentences: list[Sentence]) -> None:
        """Writes the window's file."""
        import pyarrow as pa
        import pyarrow.parquet

        numbers = range(first, first + len(sentences))
        columns: dict[str, Any] = {"sentence": pa.array(numbers, pa.int64())}
        if self._with_sentences:
            columns["text"] = pa.array([sentence.text for sentence in sentences], pa.string())
            columns["tokens"] = pa.array([sentence.tokens for sentence in sentences], pa.list_(pa.string()))
        columns["vectors"] = self._vectors(numbers, sentences)
        self._window.clear()
        with atomic_file(self.target / f"part-{first:010d}.parquet") as temporary:
            pyarrow.parquet.write_table(pa.table(columns), temporary, use_dictionary=False, compression="none")

    def _vectors(self, numbers: range, sentences: list[Sentence]) -> Any:
        import pyarrow as pa

        counts = np.array([len(sentence.tokens) for sentence in sentences])
        if self._shape.num_layers is not None:
            counts = counts.repeat(self._shape.num_layers)
        flat = [self._window[number].reshape(-1) for number in numbers if number in self._window]
        values = np.concatenate([np.zeros(0, np.float32), *flat])
        self._window.clear()  # while the copy is made and written, one of the two is enough
        words = pa.FixedSizeListArray.from_arrays(pa.array(values), self._shape.hidden_size)
        array = pa.ListArray.from_arrays(_starts(counts), words)
        if self._shape.num_layers is not None:
            array = pa.ListArray.from_arrays(_starts(np.full(len(sentences), self._shape.num_layers)), array)
        return array

    def close(self) -> None:
        """Forgets a window that has not ended."""
        self._window.clear()


def checked_format(output: Path, name: str | None) -> str:
    """The format of a file of vectors: the one that is named, or else that of the file's name.

    Raises:
        ValueError: If there is no such format.
    """
    if name is None and output.suffix not in _SUFFIXES:
        raise ValueError(f"{output} does not tell its format: give --format, one of {', '.join(FORMATS)}")
    kind = _SUFFIXES[output.suffix] if name is None else name
    if kind not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, got {name!r}")
    return kind


def make_output(folder: Path, kind: str, shape: VectorShape, with_sentences: bool) -> Output:
    """Makes what writes a format; see there for the arguments."""
    if kind == "parquet":
        return ParquetOutput(folder, shape, with_sentences)
    return PlacedOutput(folder, kind, shape, with_sentences)


def move_into_place(made: Path, output: Path) -> None:
    """Gives a file or folder its final name, in the place of what has that name."""
    if output.is_dir() and not output.is_symlink():
        replace_folder(made, output)
        return
    if made.is_dir():
        output.unlink(missing_ok=True)  # a folder cannot take the place of a file at once
    os.replace(made, output)


def _starts(counts: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


__all__ = ["FORMATS", "Output", "checked_format", "make_output", "move_into_place"]
