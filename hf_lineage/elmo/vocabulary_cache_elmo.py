"""Files of the context-free vectors of a vocabulary.

As HDF5 they are bilm-tf's token embedding files (`bilm/model.py`, `dump_token_embeddings`): a dataset `embedding` with
a row for each line of the vocabulary. Beside it stand the words, which bilm-tf reads from the vocabulary's file, and a
digest of the weights.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ..files import atomic_file
from ..hdf5 import own_dataset
from ..text_files import TextFile
from .modeling_elmo import ElmoModel
from .tokenization_elmo import ElmoTokenizer
from .word_vectors_elmo import WordEncoder, encoder_digest

StrPath = str | os.PathLike
_WORDS_AT_ONCE = 1024
_HDF5_SUFFIXES, _SAFETENSORS_SUFFIXES = (".hdf5", ".h5"), (".safetensors",)


def write_vocabulary_cache(
    model: ElmoModel,
    tokenizer: ElmoTokenizer,
    words: Sequence[str],
    path: StrPath,
    report: Callable[[int], object] | None = None,
) -> None:
    """Computes the context-free vectors of words and writes them.

    Args:
        model: Its character encoder is used.
        tokenizer: Its tokenizer.
        words: Distinct words. `<S>` and `</S>` stand for the sentence boundaries, as everywhere.
        path: Where to: `.hdf5`, which bilm-tf and AllenNLP read, or `.safetensors`. Both have float32 vectors
            `embedding` of shape `(words, projection_size)`.
        report: Is told now and then how many more words are done.

    Raises:
        ValueError: If there are no words, a word is there twice, or the file's name ends otherwise.
    """
    path = Path(path)
    check_cache_name(path)
    _check_words(words, "the vocabulary")
    encoder = model.character_encoder
    encode = WordEncoder(encoder, tokenizer)
    shape = (len(words), encoder.output_size)
    facts = {"character_encoder": encoder_digest(encoder)}

    def vectors(start: int) -> torch.Tensor:
        some = words[start : start + _WORDS_AT_ONCE]
        computed = encode(some).float().cpu()
        if report:
            report(len(some))
        return computed

    with atomic_file(path) as temporary:
        if path.suffix in _SAFETENSORS_SUFFIXES:
            table = torch.cat([vectors(start) for start in range(0, len(words), _WORDS_AT_ONCE)])
            save_file({"embedding": table}, temporary, {**facts, "words": json.dumps(list(words))})
            return
        with h5py.File(temporary, "w") as file:
            table = file.create_dataset("embedding", shape, "<f4")
            for start in range(0, len(words), _WORDS_AT_ONCE):
                table[start : start + _WORDS_AT_ONCE] = vectors(start).numpy()
            file.create_dataset("words", data=list(words), dtype=h5py.string_dtype())
            file.attrs.update(facts)


class VocabularyCache:
    """The context-free vectors of a vocabulary, read from a file when they are needed.

    Args:
        path: A file of `write_vocabulary_cache` or of bilm-tf (`.hdf5` or `.safetensors`).
        vocab_file: The words, one a line, plain, `.gz` or `.zst`; for files that do not hold them.

    Raises:
        ValueError: If there is no such file, it is none of these, or the words do not fit the vectors.
    """

    def __init__(self, path: StrPath, vocab_file: StrPath | None = None):
        self.path = Path(path)
        check_cache_name(self.path)
        if not self.path.is_file():
            raise ValueError(f"no file {self.path} of a vocabulary's vectors")
        opened = _opened_safetensors if self.path.suffix in _SAFETENSORS_SUFFIXES else _opened_hdf5
        self._table, words, self.digest = opened(self.path)
        if vocab_file is not None:
            words = read_words(vocab_file)
        if words is None:
            raise ValueError(f"{self.path} does not hold its words: give the vocabulary's file too")
        if len(words) != len(self._table):
            raise ValueError(f"{self.path} has {len(self._table)} vectors, its vocabulary {len(words)} words")
        self._rows = {word: row for row, word in enumerate(words)}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, word: str) -> bool:
        return word in self._rows

    def vectors(self, words: Sequence[str]) -> torch.Tensor:
        """`(words, projection_size)` float32 vectors of words that are in the vocabulary."""
        return torch.from_numpy(self._table[[self._rows[word] for word in words]].astype(np.float32, copy=False))

    def check_model(self, model: ElmoModel) -> None:
        """Checks that the vectors can be a model's.

        Raises:
            ValueError: If they are of another width, or the file says that they are of other weights.
        """
        size = model.character_encoder.output_size
        if self._table.shape[1] != size:
            raise ValueError(f"{self.path} has vectors of {self._table.shape[1]}, the model's have {size}")
        if self.digest is not None and self.digest != encoder_digest(model.character_encoder):
            raise ValueError(f"{self.path} was computed with other weights than this model's")


def read_words(path: StrPath) -> list[str]:
    """Reads a vocabulary, one word a line, plain, `.gz` or `.zst`.

    Raises:
        ValueError: If there is no such file or no word in it, a line is blank, or a word is there twice.
    """
    words = list(TextFile(path).lines())
    _check_words(words, str(path))
    return words


def check_cache_name(path: Path) -> None:
    """Checks that a file's name ends as one of the two formats does."""
    allowed = (*_HDF5_SUFFIXES, *_SAFETENSORS_SUFFIXES)
    if path.suffix not in allowed:
        raise ValueError(f"a file of a vocabulary's vectors must end in {', '.join(allowed)}, got {path}")


def _check_words(words: Sequence[str], source: str) -> None:
    if not words:
        raise ValueError(f"{source} has no words")
    seen: dict[str, int] = {}
    for number, word in enumerate(words, 1):
        if not word.strip():
            raise ValueError(f"{source}: line {number} is blank")
        if seen.setdefault(word, number) != number:
            raise ValueError(f"{source} has the word {word!r} in line {seen[word]} and again in line {number}")


def _opened_hdf5(path: Path) -> tuple[Any, list[str] | None, str | None]:
    try:
        with h5py.File(path, "r") as file:
            if "embedding" not in file or file["embedding"].ndim != 2:
                raise ValueError(f"{path} has no dataset 'embedding' with a vector for each word")
            table = own_dataset(file, "embedding", path)
            offset = table.id.get_offset()  # None if it is compressed or in pieces
            vectors = table[...] if offset is None else np.memmap(path, table.dtype, "r", offset, table.shape)
            words = list(own_dataset(file, "words", path).asstr()) if "words" in file else None
            return vectors, words, file.attrs.get("character_encoder")
    except OSError as error:
        raise ValueError(f"{path} is not a complete HDF5 file: {error}") from error


def _opened_safetensors(path: Path) -> tuple[Any, list[str] | None, str | None]:
    with safe_open(path, "np") as file:
        if "embedding" not in file.keys():  # noqa: SIM118  it is no dictionary
            raise ValueError(f"{path} has no tensor 'embedding'")
        facts = file.metadata() or {}
        words = json.loads(facts["words"]) if "words" in facts else None
        return file.get_tensor("embedding"), words, facts.get("character_encoder")


__all__ = ["VocabularyCache", "check_cache_name", "read_words", "write_vocabulary_cache"]
