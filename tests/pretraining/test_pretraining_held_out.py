import gzip
import pickle
from pathlib import Path

import pytest
from pretraining_runs import write_corpus, write_tokenizer
from transformers import AutoTokenizer

from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.held_out import HeldOutSplit
from hf_lineage.pretraining.sentence_pairs import sentence_pair_dataset

NUM_DOCUMENTS = 300


@pytest.fixture(scope="module", params=["plain", "gzip"])
def path(request, tmp_path_factory) -> Path:
    path = write_corpus(tmp_path_factory.mktemp("text") / "text.txt", NUM_DOCUMENTS, seed=3)
    if request.param == "gzip":
        packed = path.with_name("text.txt.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        return packed
    return path


def documents(corpus: Corpus) -> list[tuple[int, int]]:
    return [document.identity for document in corpus]


@pytest.mark.parametrize("block_size", [500, 10**6])
def test_each_document_is_on_one_side(path: Path, block_size: int):
    corpus = Corpus(path, block_size=block_size)
    split = HeldOutSplit(0.2, seed=1)
    train, held_out = documents(split.train(corpus)), documents(split.held_out(corpus))
    assert sorted(train + held_out) == documents(corpus)
    assert len(corpus.files) == 1
    assert NUM_DOCUMENTS * 0.12 < len(held_out) < NUM_DOCUMENTS * 0.28


@pytest.mark.parametrize("block_size", [500, 10**6])
def test_blocks_hold_the_documents_of_their_side(path: Path, block_size: int):
    split = HeldOutSplit(0.1, seed=1)
    whole = Corpus(path, block_size=block_size)
    for corpus in (split.train(whole), split.held_out(whole)):
        found = []
        for source in corpus.sources:
            blocks = source.blocks() if hasattr(source, "blocks") else map(source.block, range(source.num_blocks))
            for block in blocks:
                assert block or hasattr(source, "block")
                found += [document.identity for document in block]
        assert sorted(found) == documents(corpus)


def test_the_choice_depends_on_the_seed_alone(path: Path):
    def held_out(seed: int, block_size: int) -> list:
        return documents(HeldOutSplit(0.2, seed).held_out(Corpus(path, block_size=block_size)))

    assert held_out(1, 500) == held_out(1, 10**6) != held_out(2, 500)


def test_a_larger_share_holds_out_more_and_the_same(path: Path):
    few, many = (documents(HeldOutSplit(share, 1).held_out(Corpus(path))) for share in (0.1, 0.3))
    assert {*few} < {*many}


@pytest.mark.parametrize("objective", ["sop", "nsp", "none"])
def test_pairs_can_be_made_of_both_sides_in_workers(path: Path, tmp_path: Path, objective: str):
    tokenizer = AutoTokenizer.from_pretrained(write_tokenizer(tmp_path / "tokenizer"))
    split = HeldOutSplit(0.1, seed=1)
    seen = []
    for corpus in (split.train(Corpus(path)), split.held_out(Corpus(path))):
        dataset = sentence_pair_dataset(
            pickle.loads(pickle.dumps(corpus)), tokenizer, objective=objective, max_length=32, num_shards=2
        )
        seen.append({example["example_id"] for example in dataset})
    assert seen[1]
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_a_share_out_of_range_is_refused(share: float):
    with pytest.raises(ValueError, match=f"above 0 and below 1, got {share}"):
        HeldOutSplit(share, 0)
