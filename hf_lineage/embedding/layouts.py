"""Files whose vectors have their places before the first one is known.

Each sentence's shape is known from its number of words. So the file is made first, with room for all vectors, and
these are written into their places in any order: a run that was killed writes the missing ones.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import h5py
import numpy as np

from .survey import Survey

_NUMBER_BYTES = 4  # of a float32
_SAFETENSORS_HEADER_LIMIT = 100_000_000  # what the library's reader accepts


@dataclass(frozen=True)
class VectorShape:
    """Shape of a sentence's vectors.

    Args:
        num_layers: Number of layers, `None` where there is one alone and no dimension for it.
        hidden_size: Width of a vector.
    """

    num_layers: int | None
    hidden_size: int

    @property
    def numbers(self) -> int:
        """Numbers of one word."""
        return (self.num_layers or 1) * self.hidden_size

    def of(self, tokens: int) -> tuple[int, ...]:
        """Shape for a number of words: `(num_layers, tokens, hidden_size)` or `(tokens, hidden_size)`."""
        return (tokens, self.hidden_size) if self.num_layers is None else (self.num_layers, tokens, self.hidden_size)


def lay_out_hdf5(target: Path, survey: Survey, shape: VectorShape, with_sentences: bool) -> Iterator[int]:
    """Makes AllenNLP's format: datasets "0", "1", ... and `sentence_to_index`.

    Args:
        target: The file.
        survey: What there is to write.
        shape: Shape of a sentence's vectors.
        with_sentences: Whether to write `sentence_to_index`.

    Yields:
        Where in the file the vectors of each sentence belong.
    """
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    properties.set_obj_track_times(False)
    # the groups of earlier versions are slow and large with many datasets
    with h5py.File(target, "w", libver="v108") as file:
        for number, length in enumerate(survey.lengths()):
            space = h5py.h5s.create_simple(shape.of(length))
            name = str(number).encode()
            yield h5py.h5d.create(file.id, name, h5py.h5t.IEEE_F32LE, space, properties).get_offset() or 0
        if with_sentences:
            index = file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())
            index[0] = survey.index_file.read_text(encoding="ascii")


def lay_out_safetensors(target: Path, survey: Survey, shape: VectorShape, with_sentences: bool) -> Iterator[int]:
    """Makes a safetensors file with tensors "0", "1", ..., `sentence_to_index` in its metadata; else as HDF5.

    Raises:
        ValueError: If its header would be larger than readers accept.
    """
    end = 0
    with target.open("w+b") as file:
        file.write(bytes(8))
        metadata = {"format": "pt"}
        if with_sentences:
            metadata["sentence_to_index"] = survey.index_file.read_text(encoding="ascii")
        file.write(b'{"__metadata__":' + json.dumps(metadata).encode())
        del metadata
        for number, length in enumerate(survey.lengths()):
            start, end = end, end + _NUMBER_BYTES * length * shape.numbers
            entry = {"dtype": "F32", "shape": shape.of(length), "data_offsets": [start, end]}
            file.write(f',"{number}":{json.dumps(entry, separators=(",", ":"))}'.encode())
        file.write(b"}")
        size = file.tell() - 8
        if size > _SAFETENSORS_HEADER_LIMIT:
            raise ValueError(
                f"{survey.sentences} sentences are too many for safetensors, whose readers accept a header of "
                f"{_SAFETENSORS_HEADER_LIMIT} bytes; this one has {size}: take hdf5"
                + (", or --forget-sentences" if with_sentences else "")
            )
        padding = -size % 8
        file.write(b" " * padding)
        file.seek(0)
        file.write((size + padding).to_bytes(8, "little"))
        begin = 8 + size + padding
        file.truncate(begin + end)
    for length in survey.lengths():
        yield begin
        begin += _NUMBER_BYTES * length * shape.numbers


def lay_out_npy(target: Path, survey: Survey, shape: VectorShape, with_sentences: bool) -> Iterator[int]:
    """Makes a folder of `vectors.npy`, all words in a row, `offsets.npy`, and `sentence_to_index.json`.

    Sentence `i` is `vectors[offsets[i]:offsets[i + 1]]`, with the words first: `(tokens, num_layers, hidden_size)` or
    `(tokens, hidden_size)`.
    """
    target.mkdir()
    layers = () if shape.num_layers is None else (shape.num_layers,)
    facts = {"descr": "<f4", "fortran_order": False, "shape": (survey.tokens, *layers, shape.hidden_size)}
    with (target / "vectors.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, facts)
        begin = file.tell()
        file.truncate(begin + _NUMBER_BYTES * survey.tokens * shape.numbers)
    if with_sentences:
        shutil.copyfile(survey.index_file, target / "sentence_to_index.json")
    with (target / "offsets.npy").open("wb") as file:
        header = {"descr": "<i8", "fortran_order": False, "shape": (survey.sentences + 1,)}
        np.lib.format.write_array_header_1_0(file, header)
        words = 0
        file.write(np.int64(words).tobytes())
        for length in survey.lengths():
            yield begin + _NUMBER_BYTES * words * shape.numbers
            words += length
            file.write(np.int64(words).tobytes())


class PlacedVectors:
    """Writes vectors into a file that was laid out.

    Args:
        file: The file.
        offsets: Where the vectors of each sentence belong: a file of int64.
        words_first: Whether the words come before the layers.
    """

    def __init__(self, file: Path, offsets: Path, words_first: bool = False):
        self._file: BinaryIO = file.open("r+b", buffering=0)
        self._offsets: BinaryIO = offsets.open("rb")
        self._words_first = words_first

    def write(self, number: int, vectors: np.ndarray) -> None:
        """Writes the vectors of a sentence."""
        if not vectors.size:
            return
        if self._words_first and vectors.ndim == 3:
            vectors = vectors.swapaxes(0, 1)
        self._offsets.seek(8 * number)
        self._file.seek(int.from_bytes(self._offsets.read(8), "little"))
        remaining = np.ascontiguousarray(vectors, "<f4").data.cast("B")
        while remaining:  # a single call writes 2 GiB at most
            remaining = remaining[self._file.write(remaining) :]

    def sync(self) -> None:
        """Waits until everything is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the files."""
        self._file.close()
        self._offsets.close()


__all__ = ["PlacedVectors", "VectorShape", "lay_out_hdf5", "lay_out_npy", "lay_out_safetensors"]
