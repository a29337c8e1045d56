"""A corpus without some of its documents, or with those alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .corpus import Corpus, Document
from .corpus_sources import IndexedSource, SequentialSource, Source


class HeldOutSplit:
    """Which documents of a corpus are held out: each by a draw of its own, whatever else the corpus holds.

    Args:
        share: Probability that a document is held out, above 0 and below 1.
        seed: Seed of the draws.

    Raises:
        ValueError: If the share is out of range.
    """

    def __init__(self, share: float, seed: int) -> None:
        if not 0 < share < 1:
            raise ValueError(f"The held-out share must be above 0 and below 1, got {share!r}")
        self.share, self.seed = share, seed

    def train(self, corpus: Corpus) -> Corpus:
        """Returns the corpus without the documents that are held out."""
        return _PartOfCorpus(corpus, self, held_out=False)

    def held_out(self, corpus: Corpus) -> Corpus:
        """Returns the corpus of the documents that are held out."""
        return _PartOfCorpus(corpus, self, held_out=True)

    def is_held_out(self, document: Document) -> bool:
        """Returns whether a document is held out."""
        draw = np.random.SeedSequence([self.seed, *document.identity]).generate_state(1)[0]
        return bool(draw < self.share * 2**32)


class _PartOfCorpus(Corpus):
    def __init__(self, corpus: Corpus, split: HeldOutSplit, held_out: bool) -> None:
        self.block_size, self.files = corpus.block_size, corpus.files
        self.sources = tuple(
            _PartOfIndexed(source, split, held_out)
            if isinstance(source, IndexedSource)
            else _PartOfSequential(source, split, held_out)
            for source in corpus.sources
        )


@dataclass(frozen=True)
class _PartOfSource:
    source: Source
    split: HeldOutSplit
    is_held_out: bool

    @property
    def size(self) -> float:
        share = self.split.share
        return self.source.size * (share if self.is_held_out else 1 - share)

    def __iter__(self) -> Iterator[Document]:
        return (document for document in self.source if self._has(document))

    def _has(self, document: Document) -> bool:
        return self.split.is_held_out(document) == self.is_held_out


class _PartOfIndexed(_PartOfSource):
    source: IndexedSource

    @property
    def num_blocks(self) -> int:
        return self.source.num_blocks

    def block(self, index: int) -> list[Document]:
        return [document for document in self.source.block(index) if self._has(document)]


class _PartOfSequential(_PartOfSource):
    source: SequentialSource

    def blocks(self) -> Iterator[list[Document]]:
        for block in self.source.blocks():
            kept = [document for document in block if self._has(document)]
            if kept:
                yield kept


__all__ = ["HeldOutSplit"]
