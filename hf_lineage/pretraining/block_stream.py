"""Examples made from blocks of documents: a `datasets.IterableDataset` that is sharded, shuffled and resumable."""

import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any

import numpy as np
from datasets import DatasetInfo, Features, IterableDataset
from datasets.iterable_dataset import ExamplesIterable

from .corpus import Corpus, Document
from .corpus_sources import IndexedSource, SequentialSource

_BLOCKS_PER_GROUP = 8
_OPEN_SOURCES = 16
_BLOCK, _ORDER, _EXAMPLES = range(3)  # what a generator draws, so that no two draw the same numbers


@dataclass(frozen=True)
class Block:
    """A run of documents of one source of a corpus.

    Attributes:
        source (`int`): Number of the source in `Corpus.sources`.
        index (`int`): Number of the block in the source.
        documents (`list[Document]`): The documents, in order; may be empty.
        neighbour (`Callable`): Reads a document that is not in the block, the nearest before it where there is one;
            gives `None` only if the corpus has no other.
        piece (`int`): Which piece of the block this is, where it is read in several.
    """

    source: int
    index: int
    documents: list[Document]
    neighbour: Callable[[], Document | None]
    piece: int = 0


ExampleMaker = Callable[[Block, np.random.Generator], list[dict[str, Any]]]


def block_stream(
    corpus: Corpus, make_examples: ExampleMaker, *, features: Features, seed: int, num_shards: int
) -> IterableDataset:
    """Streams the examples that `make_examples` makes of each block of a corpus.

    What is made of a block is drawn from (seed, epoch, block), so that shards, workers and processes decide who makes
    an example and when, but not which examples there are. The order is random: blocks are read in random order where
    the source can be read from the middle, else several sources at once, and the examples of eight blocks are
    shuffled together. `set_epoch` gives a new draw and a new order, `state_dict` and `load_state_dict` continue in the
    middle at the cost of remaking the examples of eight blocks (and of reading, not tokenizing, a compressed file or a
    stream up to there); `datasets.distributed.split_dataset_by_node` and the workers of a `DataLoader` share the work.

    Args:
        corpus (`Corpus`):
            The documents.
        make_examples (`Callable`):
            Takes a `Block` and a generator; returns the examples. Must be picklable.
        features (`datasets.Features`):
            Columns of the examples, and `"epoch_seed"` (int64), which is added here: 0 in epoch 0, in later epochs a
            number that depends on the epoch.
        seed (`int`):
            At least 0.
        num_shards (`int`):
            Parts that processes and workers may share; at most so many can work at once.

    Raises:
        ValueError: If an argument is out of range.
    """
    if num_shards < 1:
        raise ValueError(f"num_shards must be at least 1, got {num_shards}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    examples = _ShuffledExamples(corpus, make_examples, features, seed, num_shards, list(range(num_shards)))
    return IterableDataset(examples, info=DatasetInfo(features=features))


class BlockExamples(ExamplesIterable):
    """What `datasets` iterates over, with the hooks that it has for shuffling and sharding.

    Args:
        corpus (`Corpus`): The documents.
        make_examples (`Callable`): Makes the examples of a block.
        features (`datasets.Features`): Columns of the examples.
        seed (`int`): Of all draws.
        num_shards (`int`): Parts there are in all.
        shards (`list[int]`): Which of them these are.
        epoch_seed (`int`): 0 in epoch 0.
    """

    def __init__(
        self,
        corpus: Corpus,
        make_examples: ExampleMaker,
        features: Features,
        seed: int,
        num_shards: int,
        shards: list[int],
        epoch_seed: int = 0,
    ):
        super().__init__(make_examples, {"shards": shards})
        self.corpus = corpus
        self.make_examples = make_examples
        self.seed = seed
        self.total_shards = num_shards
        self.epoch_seed = epoch_seed
        self._features = features

    def _replaced(self, shards: list[int], epoch_seed: int) -> "BlockExamples":
        return type(self)(
            self.corpus, self.make_examples, self._features, self.seed, self.total_shards, shards, epoch_seed
        )

    @property
    def is_typed(self) -> bool:
        """As in `ExamplesIterable`."""
        return True

    @property
    def features(self) -> Features:
        """As in `ExamplesIterable`."""
        return self._features

    def shuffle_data_sources(self, generator: np.random.Generator) -> "BlockExamples":
        """As in `ExamplesIterable`."""
        # called with a generator made from the epoch if that is not 0, and by IterableDataset.shuffle
        drawn = int(deepcopy(generator).integers(1 << 63))
        return self._replaced(self.kwargs["shards"], _mixed(self.epoch_seed, drawn))

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> "BlockExamples":
        """As in `ExamplesIterable`."""
        chosen = self.split_shard_indices_by_worker(num_shards, index, contiguous=contiguous)
        return self._replaced([self.kwargs["shards"][shard] for shard in chosen], self.epoch_seed)

    def reshard_data_sources(self) -> "BlockExamples":
        """As in `ExamplesIterable`."""
        return self

    def block_generator(self, block: Block) -> np.random.Generator:
        """Draws what is made of a block, or of a piece of one."""
        return self._generator(_BLOCK, block.source, block.index, *([block.piece] if block.piece else []))

    def _generator(self, purpose: int, *identity: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.epoch_seed, purpose, *identity])

    def blocks(self) -> Iterator[Callable[[], Block]]:
        """The blocks of these shards in random order, each yet to be read."""
        order = self._generator(_ORDER, *self.kwargs["shards"][:1])
        waiting = self._sources_of_shards(order)
        order.shuffle(waiting)
        opened: list[tuple[float, Iterator[Callable[[], Block]]]] = []
        while waiting or opened:
            while waiting and len(opened) < _OPEN_SOURCES:
                opened.append(waiting.pop())
            sizes = np.array([size for size, _ in opened], dtype=float)
            place = int(order.choice(len(opened), p=sizes / sizes.sum()))
            read = next(opened[place][1], None)
            if read is None:
                del opened[place]
            else:
                yield read

    def _sources_of_shards(self, order: np.random.Generator) -> list[tuple[float, Iterator[Callable[[], Block]]]]:
        """The sources that these shards have a part in, with their sizes.

        Each shard takes every n-th block of a large source, and of the sources that are smaller than a shard each goes
        to one shard, which spares the others reading it.
        """
        sources: list[tuple[float, Iterator[Callable[[], Block]]]] = []
        total = self.total_shards
        shards = frozenset(self.kwargs["shards"])
        sizes = [source.size for source in self.corpus.sources]
        shard_size = sum(sizes) / total
        for number, (source, before) in enumerate(
            zip(self.corpus.sources, accumulate(sizes, initial=0), strict=False)
        ):
            first = int(
                before / self.corpus.block_size
            )  # each source goes on where the last ended, so shards are even
            if isinstance(source, IndexedSource):
                indices = np.arange(source.num_blocks)
                indices = indices[np.isin((first + indices) % total, list(shards))]
                blocks = _indexed_blocks(self.corpus, number, source, order.permutation(indices))
            elif source.size > shard_size:
                residues = frozenset((shard - first) % total for shard in shards)
                blocks = _sequential_blocks(self.corpus, number, source, residues, total)
            elif first % total in shards:
                blocks = _sequential_blocks(self.corpus, number, source, frozenset([0]), 1)
            else:
                continue
            sources.append((source.size, blocks))
        return sources


class _ShuffledExamples(BlockExamples):
    """The examples of eight blocks at a time, shuffled together."""

    def _init_state_dict(self) -> dict[str, Any]:
        self._state_dict = {"group": 0, "example": 0, "type": type(self).__name__}
        return self._state_dict

    def __iter__(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        # the caller's dictionary of the state is updated in place: it must say what comes after the last example given
        state: dict[str, Any] = self._state_dict or self._init_state_dict()
        for number, group in islice(enumerate(self._groups()), state["group"], None):
            examples = self._examples(group, number)
            for place in range(state["example"], len(examples)):
                is_last = place + 1 == len(examples)
                state["group"], state["example"] = (number + 1, 0) if is_last else (number, place + 1)
                yield (number, place), examples[place]

    def _examples(self, group: list[Callable[[], Block]], number: int) -> list[dict[str, Any]]:
        examples = []
        for read in group:
            block = read()
            examples += self.make_examples(block, self.block_generator(block))
        for example in examples:
            example["epoch_seed"] = self.epoch_seed
        order = self._generator(_EXAMPLES, *self.kwargs["shards"][:1], number).permutation(len(examples))
        return [examples[place] for place in order]

    def _groups(self) -> Iterator[list[Callable[[], Block]]]:
        blocks = self.blocks()
        while group := list(islice(blocks, _BLOCKS_PER_GROUP)):
            yield group


def _indexed_blocks(
    corpus: Corpus, number: int, source: IndexedSource, indices: np.ndarray
) -> Iterator[Callable[[], Block]]:
    for index in indices.tolist():
        yield partial(_read_indexed, corpus, number, source, index)


def _read_indexed(corpus: Corpus, number: int, source: IndexedSource, index: int) -> Block:
    documents = source.block(index)

    def neighbour() -> Document | None:
        for before in range(index - 1, -1, -1):
            if found := source.block(before):
                return found[-1]
        return corpus.other_document(number, documents)

    return Block(number, index, documents, neighbour)


def _sequential_blocks(
    corpus: Corpus, number: int, source: SequentialSource, residues: frozenset[int], modulus: int
) -> Iterator[Callable[[], Block]]:
    previous: Document | None = None
    for index, documents in enumerate(source.blocks()):
        if index % modulus in residues:

            def neighbour(previous=previous, documents=documents) -> Document | None:
                return previous or corpus.other_document(number, documents)

            yield partial(Block, number, index, documents, neighbour)
        previous = documents[-1] if documents else previous


def example_id(*place: int) -> int:
    """A number below 2**63 for the place that an example is from, as good as never the same for two places."""
    digest = blake2b(struct.pack(f"<{len(place)}Q", *place), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


__all__ = ["Block", "BlockExamples", "ExampleMaker", "block_stream", "example_id"]
