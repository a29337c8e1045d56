"""Examples in the rows of batches, where each row of a batch goes on where that row of the batch before ended."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from datasets import DatasetInfo, Features, IterableDataset

from .block_stream import Block, BlockExamples
from .corpus import Corpus

SegmentMaker = Callable[[Block, np.random.Generator], Iterator[dict[str, Any]]]
_Numbered = Iterator[tuple[int, Callable[[], Block]]]


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

    A row reads a block of the corpus segment by segment, then another block. Examples come row by row: batches of
    `num_rows` have row r at place r. A row that finds no block any more, while others still read, gives empty
    examples, so that the others stay at their places. All is drawn from (seed, epoch, block), as in `block_stream`,
    and `set_epoch`, `shard`, `state_dict` and `load_state_dict` do the same; resuming makes anew the segments of the
    blocks that rows are in.

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


class _Row:
    """A block in reading: how many segments were given, and the next."""

    def __init__(self, number: int, segments: Iterator[dict[str, Any]], given: int = 0):
        self.number, self.given = number, given
        self._segments = islice(segments, given, None)
        self.next = next(self._segments, None)

    def give(self) -> dict[str, Any]:
        segment, self.next = self.next, next(self._segments, None)
        assert segment is not None
        self.given += 1
        return segment


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
        self._state_dict = {"row": 0, "step": 0, "blocks": 0, "rows": rows, "type": type(self).__name__}
        return self._state_dict

    def __iter__(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        # the caller's dictionary of the state is updated in place: it must say what comes after the last example given
        state: dict[str, Any] = self._state_dict or self._init_state_dict()
        numbered = enumerate(self.blocks())
        rows = self._resumed(state, numbered)
        while True:
            if state["row"] == 0 and not self._fill(rows, numbered, state):
                return
            for place in range(state["row"], self.num_rows):
                row = rows[place]
                segment = -1 if row is None else row.given
                example = dict(self.empty) if row is None else row.give()
                is_last = place + 1 == self.num_rows
                state["step"], state["row"] = (state["step"] + 1, 0) if is_last else (state["step"], place + 1)
                state["rows"][place] = None if row is None else [row.number, row.given]
                identity = self.kwargs["shards"][0] * self.num_rows + place
                added = {"epoch_seed": self.epoch_seed, "row": identity, "segment": segment}
                yield (state["step"], place), {**example, **added}

    def _fill(self, rows: list[_Row | None], numbered: _Numbered, state: dict[str, Any]) -> bool:
        """Gives rows that are through the next blocks that have a segment; returns whether any row has one."""
        for place, row in enumerate(rows):
            while row is None or row.next is None:
                row = None
                number, read = next(numbered, (None, None))
                if number is None or read is None:
                    break
                row = self._row(number, read)
                state["blocks"] = number + 1
            rows[place] = row
            state["rows"][place] = None if row is None else [row.number, row.given]
        return any(row is not None for row in rows)

    def _row(self, number: int, read: Callable[[], Block], given: int = 0) -> _Row:
        block = read()
        return _Row(number, iter(self.make_examples(block, self.block_generator(block))), given)

    def _resumed(self, state: dict[str, Any], numbered: _Numbered) -> list[_Row | None]:
        rows: list[_Row | None] = [None] * self.num_rows
        places = {where[0]: (place, where[1]) for place, where in enumerate(state["rows"]) if where is not None}
        for number, read in islice(numbered, state["blocks"]):
            if number in places:
                place, given = places[number]
                rows[place] = self._row(number, read, given)
        return rows


__all__ = ["SegmentMaker", "row_stream"]
