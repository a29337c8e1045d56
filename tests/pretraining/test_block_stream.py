import gzip
import pickle
from collections import Counter
from itertools import islice, pairwise

import pytest
from datasets import Dataset, Features, List, Value
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

from hf_lineage.pretraining.block_stream import block_stream
from hf_lineage.pretraining.corpus import Corpus

FEATURES = Features({"place": List(Value("int64")), "draw": Value("int64"), "epoch_seed": Value("int64")})
KINDS = ["plain", "gzip", "files", "dataset", "stream"]
DOCUMENTS = 150


def documents_with_draws(block, generator):
    """One example a document, with a number that is drawn for it."""
    draws = generator.integers(1 << 40, size=len(block.documents)).tolist()
    return [
        {"place": [int(document.segments[0])], "draw": draw}
        for document, draw in zip(block.documents, draws, strict=True)
    ]


@pytest.fixture(params=KINDS)
def corpus(request, tmp_path) -> Corpus:
    texts = [f"{number}\n{'text ' * (number % 7)}" for number in range(DOCUMENTS)]
    if request.param == "plain":
        (tmp_path / "a.txt").write_text("\n\n".join(texts[:100]))
        (tmp_path / "b.txt").write_text("\n\n".join(texts[100:]))
    if request.param == "gzip":
        (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n\n".join(texts[:100]).encode()))
        (tmp_path / "b.txt.gz").write_bytes(gzip.compress("\n\n".join(texts[100:]).encode()))
    if request.param == "files":  # one document each
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(text.encode()))
    if request.param in ("dataset", "stream"):
        dataset = Dataset.from_dict({"text": texts})
        return Corpus(dataset if request.param == "dataset" else dataset.to_iterable_dataset(3), block_size=60)
    return Corpus(tmp_path, block_size=60)


@pytest.fixture
def stream(corpus):
    return make_stream(corpus)


def make_stream(corpus, num_shards=6, seed=1):
    return block_stream(corpus, documents_with_draws, features=FEATURES, seed=seed, num_shards=num_shards)


def counted(examples) -> Counter:
    return Counter((*example["place"], example["draw"]) for example in examples)


def test_every_document_comes_once_however_the_work_is_shared(corpus):
    stream = make_stream(corpus)
    whole = list(stream)
    assert sorted(place for example in whole for place in example["place"]) == list(range(DOCUMENTS))
    for num_shards in (1, 2, 64):
        assert counted(make_stream(corpus, num_shards)) == counted(whole)
    for size in (2, 3, 4):  # six shards do not divide by four: there every process skips the others' examples
        parts = [split_dataset_by_node(stream, rank=rank, world_size=size) for rank in range(size)]
        assert sum((counted(part) for part in parts), Counter()) == counted(whole)
        assert all(counted(part) for part in parts)
    parts = [stream.shard(2, index) for index in range(2)]
    assert sum(map(counted, parts), Counter()) == counted(whole)


def test_workers_of_a_loader_share_the_work(corpus):
    stream = make_stream(corpus)
    expected = {}
    for epoch in range(2):
        stream.set_epoch(epoch)
        expected[epoch] = counted(stream)
    for options in ({"num_workers": 1}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}):
        loader = DataLoader(stream, batch_size=4, collate_fn=list, **options)
        for epoch in range(2):
            stream.set_epoch(epoch)
            assert counted(example for batch in loader for example in batch) == expected[epoch]


def test_processes_with_workers_share_the_work(corpus):
    stream = make_stream(corpus)
    total = Counter()
    for rank in range(2):
        part = split_dataset_by_node(stream, rank=rank, world_size=2)
        total += counted(example for batch in DataLoader(part, None, num_workers=2) for example in [batch])
    assert total == counted(stream)


def test_an_epoch_has_its_own_draws_and_order(stream):
    epochs = []
    for epoch in (0, 1, 2, 1, 0):
        stream.set_epoch(epoch)
        epochs.append(list(stream))
    assert epochs[0] == epochs[4]
    assert epochs[1] == epochs[3]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        places = [[example["place"] for example in epochs[epoch]] for epoch in (one, other)]
        assert places[0] != places[1]
        assert not counted(epochs[one]) & counted(epochs[other])
    assert {example["epoch_seed"] for example in epochs[0]} == {0}
    assert len({example["epoch_seed"] for epoch in epochs[:3] for example in epoch}) == 3


def test_the_epoch_reaches_through_what_datasets_wraps_around(stream):
    mapped = split_dataset_by_node(stream, rank=0, world_size=2).map(lambda example: {"more": 1})
    mapped.set_epoch(3)
    part = split_dataset_by_node(stream, rank=0, world_size=2)
    part.set_epoch(3)
    assert counted(mapped) == counted(part)
    assert not counted(part) & counted(stream)


def test_the_seed_changes_draws_and_order_alone(corpus):
    one, other = (list(make_stream(corpus, seed=seed)) for seed in (1, 2))
    assert [example["place"] for example in one] != [example["place"] for example in other]
    assert sorted(example["place"] for example in one) == sorted(example["place"] for example in other)
    assert not counted(one) & counted(other)


def test_documents_are_mixed(stream):
    places = [example["place"][0] for example in stream]
    neighbours = sum(abs(one - other) == 1 for one, other in pairwise(places))
    assert neighbours < DOCUMENTS / 3


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("process", [None, 0, 1])
def test_resuming_gives_the_rest_exactly(corpus, epoch, process):
    def fresh():
        stream = make_stream(corpus)
        if process is not None:
            stream = split_dataset_by_node(stream, rank=process, world_size=2)
        stream.set_epoch(epoch)
        return stream

    whole = list(fresh())
    for taken in range(0, len(whole) + 1, 7):
        stream = fresh()
        assert list(islice(stream, taken)) == whole[:taken]
        state = pickle.loads(pickle.dumps(stream.state_dict()))
        resumed = fresh()
        resumed.load_state_dict(state)
        assert list(resumed) == whole[taken:]


def test_resuming_makes_no_examples_of_blocks_before(corpus):
    made = []

    def recorded(block, generator):
        made.append((block.source, block.index))
        return documents_with_draws(block, generator)

    stream = block_stream(corpus, recorded, features=FEATURES, seed=1, num_shards=1)
    list(islice(stream, DOCUMENTS * 3 // 4))
    state, before = stream.state_dict(), len(made)
    made.clear()
    stream.load_state_dict(state)
    next(iter(stream))
    assert before > 16
    assert len(made) <= 8


def test_a_block_knows_a_document_outside(corpus):
    neighbours = {}

    def recorded(block, generator):
        if block.documents:
            neighbours[block.source, block.index] = (block.documents, block.neighbour())
        return []

    list(block_stream(corpus, recorded, features=FEATURES, seed=1, num_shards=3))
    assert len(neighbours) > 10
    for documents, neighbour in neighbours.values():
        assert neighbour.identity not in {document.identity for document in documents}
        if neighbour.file == documents[0].file and documents[0].position:
            assert neighbour.position < documents[0].position


def test_wrong_arguments(corpus):
    with pytest.raises(ValueError, match="num_shards must be at least 1"):
        make_stream(corpus, num_shards=0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        make_stream(corpus, seed=-1)
