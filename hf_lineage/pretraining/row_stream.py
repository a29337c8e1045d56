"""Examples in the rows of batches, where each row of a batch goes on where that row of the batch before ended."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from datasets import DatasetInfo, Features, IterableDataset

from .block_stream import Block, BlockExamples
from .corpus import Corpus, Document

SegmentMaker = Callable[[Block, np.random.Generator], Iterator[dict[str, Any]]]


def row_stream(
    corpus: Corpus,
    make_segments: SegmentMaker,
    *,
    empty: dict[str, Any],
    features: Features,
    seed: int,
    num_shards: int,
    num_rows: int,
) -> IterableDataset:
    """Streams segments for models that remember the one before.

    A row reads a block of the corpus segment by segment, then another block. Blocks hold whole documents; one that is
    longer than `corpus.block_size`, such as a novel, is cut into pieces of about that size, or a single row would be
    left reading it long after the others are through. Examples come row by row: batches of `num_rows` have row r at
    place r. A row that finds no block any more, while others still read, gives empty examples, so that the others stay
    at their places. All is drawn from (seed, epoch, block), as in `block_stream`, and `set_epoch`, `shard`,
    `state_dict` and `load_state_dict` do the same; resuming makes anew the segments of the blocks that rows are in.

    Args:
        corpus (`Corpus`):
            The documents. It should have several blocks for each row.
        make_segments (`Callable`):
            Takes a `Block` and a generator; iterates over the segments, in order. Must be picklable.
        empty (`dict`):
            An example of no text.
        features (`datasets.Features`):
            Columns of the examples, and those that are added here: `"epoch_seed"` as in `block_stream`; `"row"`,
            int64, a number that no other row of the dataset has; and `"segment"`, int64, the number of the segment in
            its block, 0 where what was before is to be forgotten, -1 for an empty example.
        seed (`int`):
            At least 0.
        num_shards (`int`):
            Parts that processes and workers may share, each of `num_rows` rows.
        num_rows (`int`):
            Rows of a batch.

    Raises:
        ValueError: If an argument is out of range.
    """
    for name, value, smallest in (("num_shards", num_shards, 1), ("num_rows", num_rows, 1), ("seed", seed, 0)):
        if value < smallest:
            raise ValueError(f"{name} must be at least {smallest}, got {value}")
    shards = list(range(num_shards))
    examples = _RowExamples(corpus, make_segments, features, seed, num_shards, shards, num_rows=num_rows, empty=empty)
    return IterableDataset(examples, info=DatasetInfo(features=features))


Place = tuple[int, int]  # number of a block in the order of reading, and of a piece of it


class _Row:
    """A piece of a block in reading: how many segments were given, and the next."""

    def __init__(self, place: Place, segments: Iterator[dict[str, Any]], given: int = 0):
        self.place, self.given = place, given
        self._segments = islice(segments, given, None)
        self.next = next(self._segments, None)

    def give(self) -> dict[str, Any]:
        segment, self.next = self.next, next(self._segments, None)
        assert segment is not None
        self.given += 1
        return segment

    def state(self) -> list[int]:
        return [*self.place, self.given]


class _Pieces:
    """The pieces of blocks, one after the other."""

    def __init__(self, blocks: Iterator[Callable[[], Block]], size: int):
        self._blocks, self._size = enumerate(blocks), size
        self._waiting: deque[tuple[Place, Block]] = deque()
        self.position = [0, 0]  # blocks that were begun, and pieces of the last of them that were taken

    def take(self) -> tuple[Place, Block] | None:
        """The next piece; `None` if there is no other."""
        while not self._waiting:
            number, read = next(self._blocks, (0, None))
            if read is None:
                return None
            self._waiting.extend(self._cut(number, read))
            self.position = [number + 1, 0]
        self.position[1] += 1
        return self._waiting.popleft()

    def go_to(self, position: Sequence[int], places: set[Place]) -> Iterator[tuple[Place, Block]]:
        """Goes to where another stood, and gives those of these pieces that are before."""
        num_blocks, num_pieces = position
        wanted = {number for number, _ in places}
        for number, read in islice(self._blocks, num_blocks):
            is_last = number + 1 == num_blocks
            if is_last or number in wanted:
                pieces = self._cut(number, read)
                yield from (piece for piece in pieces if piece[0] in places)
                if is_last:
                    self._waiting.extend(pieces[num_pieces:])
        self.position = list(position)

    def _cut(self, number: int, read: Callable[[], Block]) -> list[tuple[Place, Block]]:
        return [((number, block.piece), block) for block in cut(read(), self._size)]


def cut(block: Block, size: int) -> list[Block]:
    """Cuts a block between segments into pieces of about the same length, as close to `size` characters as that goes.

    Args:
        block: The block.
        size: Characters of a piece; a block of less than one and a half times that is left whole.
    """
    length = sum(len(segment) for document in block.documents for segment in document.segments)
    number = max(1, round(length / size))
    pieces: list[list[Document]] = [[] for _ in range(number)]
    before = 0
    for document in block.documents:
        parts: dict[int, list[str]] = {}
        for segment in document.segments:
            parts.setdefault(before * number // max(length, 1), []).append(segment)
            before += len(segment)
        for piece, segments in parts.items():
            pieces[piece].append(document._replace(segments=segments))
    return [replace(block, documents=documents, piece=piece) for piece, documents in enumerate(pieces)]


class _RowExamples(BlockExamples):
    def __init__(self, *args: Any, num_rows: int, empty: dict[str, Any]):
        super().__init__(*args)
        self.num_rows, self.empty = num_rows, empty

    def _replaced(self, shards: list[int], epoch_seed: int) -> "BlockExamples":
        return _RowExamples(
            self.corpus, self.make_examples, self._features, self.seed, self.total_shards, shards, epoch_seed,
            num_rows=self.num_rows, empty=self.empty,
        )  # fmt: skip

    def _init_state_dict(self) -> dict[str, Any]:
        rows: list[list[int] | None] = [None] * self.num_rows
        self._state_dict = {"row": 0, "step": 0, "position": [0, 0], "rows": rows, "type": type(self).__name__}
        return self._state_dict

    def __iter__(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        # the caller's dictionary of the state is updated in place: it must say what comes after the last example given
        state: dict[str, Any] = self._state_dict or self._init_state_dict()
        pieces = _Pieces(self.blocks(), self.corpus.block_size)
        rows = self._resumed(state, pieces)
        while True:
            if state["row"] == 0 and not self._fill(rows, pieces, state):
                return
            for place in range(state["row"], self.num_rows):
                row = rows[place]
                segment = -1 if row is None else row.given
                example = dict(self.empty) if row is None else row.give()
                is_last = place + 1 == self.num_rows
                state["step"], state["row"] = (state["step"] + 1, 0) if is_last else (state["step"], place + 1)
                state["rows"][place] = None if row is None else row.state()
                identity = self.kwargs["shards"][0] * self.num_rows + place
                added = {"epoch_seed": self.epoch_seed, "row": identity, "segment": segment}
                yield (state["step"], place), {**example, **added}

    def _fill(self, rows: list[_Row | None], pieces: _Pieces, state: dict[str, Any]) -> bool:
        """Gives rows that are through the next pieces that have a segment; returns whether any row has one."""
        for place, row in enumerate(rows):
            while row is None or row.next is None:
                row = None
                piece = pieces.take()
                if piece is None:
                    break
                row = self._row(*piece)
            rows[place] = row
            state["rows"][place] = None if row is None else row.state()
        state["position"] = list(pieces.position)
        return any(row is not None for row in rows)

    def _row(self, place: Place, block: Block, given: int = 0) -> _Row:
        return _Row(place, iter(self.make_examples(block, self.block_generator(block))), given)

    def _resumed(self, state: dict[str, Any], pieces: _Pieces) -> list[_Row | None]:
        rows: list[_Row | None] = [None] * self.num_rows
        places = {(row[0], row[1]): (place, row[2]) for place, row in enumerate(state["rows"]) if row is not None}
        for where, block in pieces.go_to(state["position"], set(places)):
            place, given = places[where]
            rows[place] = self._row(where, block, given)
        return rows


__all__ = ["SegmentMaker", "cut", "row_stream"]
