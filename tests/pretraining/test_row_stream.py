import pickle
from itertools import islice, pairwise

import pytest
from datasets import Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from hf_lineage.pretraining.block_stream import Block
from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.corpus_sources import Document
from hf_lineage.pretraining.row_stream import cut, row_stream

FEATURES = Features(
    {name: Value("int64") for name in ("block", "piece", "number", "draw", "epoch_seed", "row", "segment")}
)
EMPTY = {"block": -1, "piece": -1, "number": -1, "draw": -1}
DOCUMENTS = 40


def number_of_segments(documents) -> int:
    return sum(int(segment.split()[0]) % 6 for document in documents for segment in document.segments)


def segments(block, generator):
    """As many segments as the documents say, with numbers that are drawn."""
    for number in range(number_of_segments(block.documents)):
        yield {"block": block.index, "piece": block.piece, "number": number, "draw": int(generator.integers(1 << 40))}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("text")
    documents = (
        "\n".join(f"{(7 * number + line) % 23 + 1} {'text ' * 20}" for line in range(12 if number % 9 == 4 else 1))
        for number in range(DOCUMENTS)
    )
    (folder / "a.txt").write_text("\n\n".join(documents))
    return Corpus(folder, block_size=90)


def stream(corpus, num_rows=3, num_shards=4, seed=1):
    return row_stream(
        corpus, segments, empty=EMPTY, features=FEATURES, seed=seed, num_shards=num_shards, num_rows=num_rows
    )


def expected(corpus) -> set[tuple[int, int, int]]:
    source = corpus.sources[0]
    blocks = (Block(0, index, source.block(index), lambda: None) for index in range(source.num_blocks))
    return {
        (piece.index, piece.piece, number)
        for block in blocks
        for piece in cut(block, corpus.block_size)
        for number in range(number_of_segments(piece.documents))
    }


def place(example) -> tuple[int, int, int]:
    return int(example["block"]), int(example["piece"]), int(example["number"])


def places(examples):
    return sorted(place(example) for example in examples if example["number"] >= 0)


@pytest.mark.parametrize("num_rows", [1, 2, 3, 7, 100])
def test_each_row_reads_block_after_block(corpus, num_rows):
    examples = list(stream(corpus, num_rows))
    assert len(examples) % num_rows == 0
    assert places(examples) == sorted(expected(corpus))
    for row in range(num_rows):
        read = examples[row::num_rows]
        assert len({example["row"] for example in read}) == 1
        texts = [example for example in read if example["number"] >= 0]
        assert read[: len(texts)] == texts  # empty ones come last
        for example, after in pairwise(texts):
            goes_on = place(example)[:2] == place(after)[:2] and example["number"] + 1 == after["number"]
            assert goes_on == (after["segment"] == example["segment"] + 1)
        assert all(example["segment"] == example["number"] for example in read)
    assert len({example["row"] for example in examples}) == num_rows


def test_no_row_is_left_alone_with_a_long_document(corpus):
    num_rows = 5
    examples = list(stream(corpus, num_rows, num_shards=1))
    steps = [examples[start : start + num_rows] for start in range(0, len(examples), num_rows)]
    alone = [step for step in steps if sum(example["number"] >= 0 for example in step) == 1]
    source = corpus.sources[0]
    longest = max(number_of_segments(source.block(index)) for index in range(source.num_blocks))
    assert len(alone) <= 6 < longest / 3  # a piece of a document has one or two lines, of at most five segments


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=12), min_size=1), max_size=8), st.integers(1, 40))
def test_pieces_have_all_text_in_order_and_are_about_even(documents, size):
    block = Block(0, 3, [Document(0, number, segments) for number, segments in enumerate(documents)], lambda: None)
    pieces = cut(block, size)
    assert [piece.piece for piece in pieces] == list(range(len(pieces)))
    read = [
        (document.position, text) for piece in pieces for document in piece.documents for text in document.segments
    ]
    assert read == [(number, text) for number, segments in enumerate(documents) for text in segments]
    lengths = [sum(len(text) for document in piece.documents for text in document.segments) for piece in pieces]
    assert max(lengths) <= sum(lengths) / len(lengths) + 12
    assert sum(lengths) < 1.5 * size or len(pieces) > 1


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(0, 300))
def test_it_goes_on_where_it_was(corpus, num_rows, taken):
    whole = list(stream(corpus, num_rows))
    dataset = stream(corpus, num_rows)
    begun = list(islice(dataset, taken))
    resumed = stream(corpus, num_rows)
    resumed.load_state_dict(pickle.loads(pickle.dumps(dataset.state_dict())))
    assert begun + list(resumed) == whole


def test_workers_and_processes_share_the_text(corpus):
    parts = [list(stream(corpus).shard(2, index, contiguous=False)) for index in range(2)]
    assert places(parts[0] + parts[1]) == sorted(expected(corpus))
    rows = [{example["row"] for example in part} for part in parts]
    assert not rows[0] & rows[1]
    loaded = DataLoader(stream(corpus), batch_size=3, num_workers=2)
    taken = [dict(zip(batch, row, strict=True)) for batch in loaded for row in zip(*batch.values(), strict=True)]
    assert places(taken) == sorted(expected(corpus))


def test_epochs_draw_anew_and_repeat(corpus):
    dataset = stream(corpus)
    first = list(dataset)
    dataset.set_epoch(1)
    second = list(dataset)
    assert places(first) == places(second)
    assert first[0]["epoch_seed"] == 0 != second[0]["epoch_seed"]
    assert {example["draw"] for example in first} & {example["draw"] for example in second} <= {-1}
    again = stream(corpus)
    again.set_epoch(1)
    assert list(again) == second
    assert list(stream(corpus, seed=2)) != first


@pytest.mark.parametrize(("name", "value"), [("num_rows", 0), ("num_shards", 0), ("seed", -1)])
def test_bad_numbers_are_refused(corpus, name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        stream(corpus, **{name: value})
