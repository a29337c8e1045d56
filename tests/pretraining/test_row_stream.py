import pickle
from itertools import islice, pairwise

import pytest
from datasets import Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.row_stream import row_stream

FEATURES = Features({name: Value("int64") for name in ("block", "number", "draw", "epoch_seed", "row", "segment")})
EMPTY = {"block": -1, "number": -1, "draw": -1}
DOCUMENTS = 40


def number_of_segments(documents) -> int:
    return sum(int(document.segments[0]) % 6 for document in documents)


def segments(block, generator):
    """As many segments as the documents say, with numbers that are drawn."""
    for number in range(number_of_segments(block.documents)):
        yield {"block": block.index, "number": number, "draw": int(generator.integers(1 << 40))}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("text")
    (folder / "a.txt").write_text("\n\n".join(f"{7 * number % 23 + 1}\n{'text ' * 20}" for number in range(DOCUMENTS)))
    return Corpus(folder, block_size=90)


def stream(corpus, num_rows=3, num_shards=4, seed=1):
    return row_stream(
        corpus, segments, empty=EMPTY, features=FEATURES, seed=seed, num_shards=num_shards, num_rows=num_rows
    )


def expected(corpus) -> set[tuple[int, int]]:
    return {
        (index, number)
        for index in range(corpus.sources[0].num_blocks)
        for number in range(number_of_segments(corpus.sources[0].block(index)))
    }


def places(examples):
    return sorted((example["block"], example["number"]) for example in examples if example["number"] >= 0)


@pytest.mark.parametrize("num_rows", [1, 2, 3, 7, 100])
def test_each_row_reads_block_after_block(corpus, num_rows):
    examples = list(stream(corpus, num_rows))
    assert len(examples) % num_rows == 0
    assert places(examples) == sorted(expected(corpus))
    for place in range(num_rows):
        read = examples[place::num_rows]
        assert len({example["row"] for example in read}) == 1
        texts = [example for example in read if example["number"] >= 0]
        assert read[: len(texts)] == texts  # empty ones come last
        for example, after in pairwise(texts):
            goes_on = (example["block"], example["number"] + 1) == (after["block"], after["number"])
            assert goes_on == (after["segment"] == example["segment"] + 1)
        assert all(example["segment"] == example["number"] for example in read)
    assert len({example["row"] for example in examples}) == num_rows


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(0, 130))
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
    taken = [(int(b), int(n)) for batch in loaded for b, n in zip(batch["block"], batch["number"], strict=True)]
    assert sorted(place for place in taken if place[0] >= 0) == sorted(expected(corpus))


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
