import io

import pytest
import torch
from datasets import IterableDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.pretraining.batches import BatchStream

NUM_SHARDS, PER_SHARD = 12, 7


def numbers(shards: list[int]):
    for shard in shards:
        for index in range(PER_SHARD):
            yield {"number": shard * PER_SHARD + index}


def make_stream(num_workers: int = 0, process: int = 0, num_processes: int = 1, batch_size: int = 3, dataset=None):
    if dataset is None:
        dataset = IterableDataset.from_generator(numbers, gen_kwargs={"shards": list(range(NUM_SHARDS))})
    return BatchStream(dataset, collate, batch_size, num_workers, process, num_processes)


def collate(features: list[dict]) -> dict[str, torch.Tensor]:
    return {"number": torch.tensor([feature["number"] for feature in features])}


def plain(batch) -> tuple[list[int], int, bool]:
    return batch.inputs["number"].tolist(), batch.part, batch.starts


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("num_processes", [1, 2])
def test_each_example_is_seen_once_in_a_pass(num_workers: int, num_processes: int):
    seen = []
    for process in range(num_processes):
        for batch in make_stream(num_workers, process, num_processes).one_pass():
            seen += batch.inputs["number"].tolist()
    assert sorted(seen) == list(range(NUM_SHARDS * PER_SHARD))


def test_passes_follow_each_other_and_differ():
    stream = make_stream(batch_size=84)
    batches = iter(stream)
    first, second = (plain(next(batches))[0] for _ in range(2))
    assert stream.epoch == 1
    assert sorted(first) == sorted(second)
    assert first != second
    batches.close()


def test_parts_take_turns_and_say_where_they_start():
    batches = [plain(batch) for batch in make_stream(num_workers=3).one_pass()]
    assert [part for _, part, _ in batches[:6]] == [0, 1, 2, 0, 1, 2]
    assert [index for index, (_, _, starts) in enumerate(batches) if starts] == [0, 1, 2]
    for part in range(3):
        (smaller,) = [len(row) for row, number, _ in batches if number == part and len(row) != 3]
        assert smaller == 4 * PER_SHARD % 3


def saved(state: dict) -> dict:
    """Through a file as in a checkpoint, which may hold no classes."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@settings(deadline=None, max_examples=40)
@given(position=st.integers(0, 70), num_processes=st.integers(1, 3), batch_size=st.integers(1, 9))
def test_it_goes_on_from_any_position(position: int, num_processes: int, batch_size: int):
    stream = make_stream(0, num_processes - 1, num_processes, batch_size)
    check_goes_on(stream, lambda: make_stream(0, num_processes - 1, num_processes, batch_size), position)


@pytest.mark.parametrize("position", [0, 1, 2, 13, 15, 28, 29, 31, 40])
def test_it_goes_on_from_any_position_with_workers(position: int):
    """A pass has 30 batches in 3 parts."""
    check_goes_on(make_stream(num_workers=3), lambda: make_stream(num_workers=3), position)


def check_goes_on(stream: BatchStream, make_another, position: int) -> None:
    batches = iter(stream)
    for _ in range(position):
        next(batches)
    state = saved(stream.state_dict())
    expected = [plain(next(batches)) for _ in range(7)]
    batches.close()
    other = make_another()
    other.load_state_dict(state)
    resumed = iter(other)
    assert [plain(next(resumed)) for _ in range(7)] == expected
    resumed.close()
    assert other.state_dict() == stream.state_dict()


def test_a_state_is_not_moved_by_what_comes_after():
    stream = make_stream()
    batches = iter(stream)
    next(batches)
    state = stream.state_dict()
    before = saved(state)
    next(batches)
    assert state == before != stream.state_dict()


def test_rewinding_gives_the_first_pass_again():
    stream = make_stream()
    first = [plain(batch) for batch in stream.one_pass()]
    batches = iter(make_stream())
    next(batches)
    stream.rewind()
    assert [plain(batch) for batch in stream.one_pass()] == first


def test_iterating_draws_nothing_from_the_generator_of_dropout():
    for num_workers in (0, 2):
        before = torch.get_rng_state()
        assert sum(1 for _ in make_stream(num_workers).one_pass()) > 20
        assert torch.equal(torch.get_rng_state(), before)


def test_a_collator_that_wants_to_know_the_pass_is_told():
    epochs = []

    class Collator:
        def set_epoch(self, epoch: int) -> None:
            epochs.append(epoch)

        def __call__(self, features: list[dict]) -> dict[str, torch.Tensor]:
            return collate(features)

    dataset = IterableDataset.from_generator(numbers, gen_kwargs={"shards": [0, 1]})
    batches = iter(BatchStream(dataset, Collator(), 7))
    for _ in range(5):
        next(batches)
    assert epochs == [0, 1, 2]


def test_too_few_shards_are_refused():
    with pytest.raises(ValueError, match="12 shards, too few for 4 processes with 4 parts each"):
        make_stream(num_workers=4, num_processes=4)


def test_no_examples_are_refused_instead_of_looked_for_forever():
    empty = IterableDataset.from_generator(numbers, gen_kwargs={"shards": []})
    empty = empty if empty.num_shards else IterableDataset.from_generator(nothing)
    with pytest.raises(ValueError, match="no example for process 0 of 1"):
        next(iter(make_stream(dataset=empty)))


def nothing():
    yield from ()


def test_a_state_of_another_number_of_parts_is_refused():
    with pytest.raises(ValueError, match="stream of 1 parts, this one has 2"):
        make_stream(num_workers=2).load_state_dict(make_stream().state_dict())
