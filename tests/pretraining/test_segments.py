from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from hf_lineage.pretraining.block_stream import Block
from hf_lineage.pretraining.corpus import Corpus, Document
from hf_lineage.pretraining.segments import ContinuousSegments, TwoPartSegments, segment_dataset

SPECIAL = {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"}
WORDS = 600
DOCUMENTS = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=8), min_size=1, max_size=5)


def make_tokenizer(with_end=True):
    names = [*SPECIAL.values(), *(["<eod>"] if with_end else []), *map(str, range(WORDS))]
    backend = Tokenizer(WordLevel({name: number for number, name in enumerate(names)}, "<unk>"))
    backend.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, **{f"{name}_token": token for name, token in SPECIAL.items()}
    )


TOKENIZER = make_tokenizer()
SEP, CLS, END = (TOKENIZER.convert_tokens_to_ids(name) for name in ("<sep>", "<cls>", "<eod>"))


def make_block(lengths) -> Block:
    """Documents of sentences of so many words; no word comes twice."""
    words = map(str, count())
    documents = [
        Document(0, number, [" ".join(next(words) for _ in range(length)) for length in sentences])
        for number, sentences in enumerate(lengths)
    ]
    return Block(0, 3, documents, lambda: None)


def text_of(block, direction):
    tokens = []
    for document in block.documents:
        for sentence in document.segments:
            tokens += TOKENIZER(sentence, add_special_tokens=False)["input_ids"]
        tokens.append(END)
    return tokens[::direction]


def parts_of(example):
    """The reused tokens, a and b."""
    ids = example["input_ids"]
    first_sep = ids.index(SEP)
    assert ids[-2:] == [SEP, CLS]
    reused, first, second = ids[: example["reused"]], ids[example["reused"] : first_sep], ids[first_sep + 1 : -2]
    types = [0] * (len(reused) + len(first) + 1) + [1] * (len(second) + 1) + [2]
    assert example["token_type_ids"] == types
    return reused, first, second


def sublist(part, text):
    """Where a part stands in a text in which no word comes twice."""
    anchor = next((number for number, token in enumerate(part) if token != END), None)
    if anchor is None:
        return None
    begin = text.index(part[anchor]) - anchor
    assert text[begin : begin + len(part)] == part
    return begin


@settings(deadline=None, max_examples=200)
@given(DOCUMENTS, st.integers(1, 20), st.integers(5, 20), st.integers(0, 30), st.booleans(), st.integers(0, 2**31))
def test_the_layout(lengths, reuse_len, rest, mem_len, bidirectional, seed):
    block = make_block(lengths)
    maker = TwoPartSegments(TOKENIZER, reuse_len + rest, reuse_len, mem_len, bidirectional)
    examples = list(maker(block, np.random.default_rng(seed)))
    text = text_of(block, examples[0]["direction"] if examples else 1)
    assert bool(examples) == (len(text) >= 3)
    begin = 0
    for example in examples:
        assert len(example["input_ids"]) <= reuse_len + rest
        assert 0 <= example["reused"] <= reuse_len
        reused, first, second = parts_of(example)
        assert reused == text[begin : begin + len(reused)]
        middle = begin + len(reused)
        assert first == text[middle : middle + len(first)]
        assert first
        assert second
        place = sublist(second, text)
        if example["next_sentence_label"] == 0:
            assert place in (None, middle + len(first)) or len(first) + len(second) == rest - 3
        elif place is not None:
            assert place >= middle + len(first) or place + len(second) <= begin - mem_len
        begin = middle
    # what is left is in the last segment, or not enough for another
    assert len(text) < 3 or len(text) - begin <= reuse_len + 1
    directions = {example["direction"] for example in examples}
    assert directions <= ({1, -1} if bidirectional else {1})
    assert len({example["example_id"] for example in examples}) == len(examples)


@settings(deadline=None, max_examples=100)
@given(DOCUMENTS, st.integers(1, 30), st.integers(0, 2**31))
def test_continuous_segments_are_the_text(lengths, max_length, seed):
    block = make_block(lengths)
    examples = list(ContinuousSegments(TOKENIZER, max_length, True)(block, np.random.default_rng(seed)))
    text = text_of(block, examples[0]["direction"])
    assert [token for example in examples for token in example["input_ids"][:-1]] == text[:-1]
    assert [token for example in examples for token in example["input_ids"][1:]] == text[1:]
    assert all(len(example["input_ids"]) == max_length + 1 for example in examples[:-1])


def test_labels_and_directions_are_balanced():
    labels, directions = [], []
    for seed in range(300):
        block = make_block([[7, 4, 9, 3, 8, 12, 6]] * 4)
        examples = list(TwoPartSegments(TOKENIZER, 40, 16, 0, True)(block, np.random.default_rng(seed)))
        labels += [example["next_sentence_label"] for example in examples]
        directions.append(examples[0]["direction"] > 0)
    assert abs(np.mean(labels) - 0.5) < 3 * 0.5 / len(labels) ** 0.5
    assert abs(np.mean(directions) - 0.5) < 3 * 0.5 / len(directions) ** 0.5


def test_sentences_end_where_passages_do_if_they_can():
    """Unless tokens are dropped, a ends where a sentence does, and so does b where it follows."""
    block = make_block([[5] * 30])
    text = text_of(block, 1)
    for seed in range(20):
        for example in TwoPartSegments(TOKENIZER, 64, 16, 24, False)(block, np.random.default_rng(seed)):
            _, first, second = parts_of(example)
            if len(first) + len(second) < 64 - 16 - 3:
                for part in (first, *([] if example["next_sentence_label"] else [second])):
                    end = text.index(part[-1]) + 1 if part[-1] != END else len(text)
                    assert end % 5 == 0 or end >= len(text) - 1


def test_a_tokenizer_without_an_end_of_documents():
    tokenizer = make_tokenizer(with_end=False)
    examples = list(ContinuousSegments(tokenizer, 8, False)(make_block([[3, 4], [5]]), np.random.default_rng(0)))
    assert [token for example in examples for token in example["input_ids"][:-1]] == list(range(5, 16))


def test_the_dataset_and_its_epochs(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(f"{n} {n + 1} {n + 2}\n{n + 3} {n + 4}" for n in range(0, 590, 5)))
    dataset = segment_dataset(
        Corpus(tmp_path, block_size=300), TOKENIZER, max_length=20, reuse_len=8, mem_len=8, num_rows=2, num_shards=2
    )
    first = list(dataset)
    dataset.set_epoch(1)
    second = list(dataset)
    assert {example["direction"] for example in first} == {1, -1}
    assert first != second
    assert set(first[0]) == {*dataset.features}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reuse_len": 16}, "reuse_len must be from 1 to max_length - 5 = 15, got 16"),
        ({"reuse_len": 0}, "reuse_len must be from 1"),
        ({"reuse_len": 8, "mem_len": -1}, "mem_len must be at least 0, got -1"),
        ({"reuse_len": None, "max_length": 0}, "max_length must be at least 1, got 0"),
    ],
)
def test_bad_lengths_are_refused(tmp_path, arguments, message):
    (tmp_path / "a.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match=message):
        segment_dataset(Corpus(tmp_path), TOKENIZER, **{"max_length": 20, "num_rows": 1, **arguments})


def test_a_tokenizer_without_a_separator_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 3")
    tokenizer = make_tokenizer()
    tokenizer.sep_token = None
    with pytest.raises(ValueError, match="must have a sep_token"):
        segment_dataset(Corpus(tmp_path), tokenizer, num_rows=1)
