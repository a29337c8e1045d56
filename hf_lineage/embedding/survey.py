"""A first pass over the input: what there is to compute, and whether it can be read to its end."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .reading import Sentence

_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Survey:
    """What a pass over the input has found.

    Args:
        sentences: Number of sentences, those without words included.
        tokens: Number of words.
        digest: Tells the sentences from all others.
        lengths_file: Number of words of each sentence, int64.
        index_file: JSON object, text of a sentence -> its number as a string; of equal texts the last counts.
    """

    sentences: int
    tokens: int
    digest: str
    lengths_file: Path
    index_file: Path

    def lengths(self) -> Iterator[int]:
        """Number of words of each sentence."""
        with self.lengths_file.open("rb") as file:
            while piece := file.read(8 * _AT_ONCE):
                yield from np.frombuffer(piece, np.int64).tolist()


class SentenceDigest:
    """A digest of sentences in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def update(self, sentence: Sentence) -> None:
        """Adds the next sentence."""
        self._digest.update(json.dumps(sentence).encode())

    def hexdigest(self) -> str:
        """The digest of the sentences so far."""
        return self._digest.hexdigest()


def survey(sentences: Iterable[Sentence], folder: Path) -> Survey:
    """Reads all sentences once.

    Args:
        sentences: The input.
        folder: Where to write the files.

    Raises:
        ValueError: If the input cannot be read or has no sentence.
    """
    lengths_file, index_file = folder / "lengths", folder / "sentence_to_index.json"
    count = tokens = 0
    digest = SentenceDigest()
    with ExitStack() as stack:
        lengths: BinaryIO = stack.enter_context(lengths_file.open("wb"))
        index = stack.enter_context(index_file.open("w", encoding="ascii"))
        index.write("{")
        for number, sentence in enumerate(sentences):
            digest.update(sentence)
            lengths.write(np.int64(len(sentence.tokens)).tobytes())
            index.write(f'{", " if number else ""}{json.dumps(sentence.text)}: "{number}"')
            count += 1
            tokens += len(sentence.tokens)
        index.write("}")
    if not count:
        raise ValueError("the input is empty")
    return Survey(count, tokens, digest.hexdigest(), lengths_file, index_file)


__all__ = ["SentenceDigest", "Survey", "survey"]
