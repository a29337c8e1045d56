"""Windows of continuous streams, and sentences by themselves."""

import pickle
from collections import Counter

import pytest
import torch

from hf_lineage import ElmoTokenizer
from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.word_streams import (
    DataCollatorForWordSentences,
    DataCollatorForWordStreams,
    word_sentence_dataset,
    word_stream_dataset,
)

KNOWN = ["<S>", "</S>", "<UNK>", *(f"w{number}" for number in range(40))]
SENTENCES = [[f"w{(7 * number + place) % 50}" for place in range(1 + number % 9)] for number in range(60)]


@pytest.fixture
def tokenizer(tmp_path) -> ElmoTokenizer:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{word}\n" for word in KNOWN))
    return ElmoTokenizer(path, max_characters_per_token=8)


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{' '.join(sentence)}\n" for sentence in SENTENCES))
    return Corpus(path, text_unit="line", block_size=200)


def read_streams(examples, direction: str) -> dict[int, list[tuple[str, int]]]:
    """What each row reads and predicts, window after window."""
    rows: dict[int, list[tuple[str, int]]] = {}
    for example in examples:
        pairs = zip(example[f"{direction}_words"], example[f"{direction}_targets"], strict=True)
        rows.setdefault(example["row"], []).extend(pairs)
    return rows


def sentences_of(stream: list[tuple[str, int]], first: str, last: int) -> list[list[str]]:
    """Cuts a stream into its sentences, and checks that each token is predicted from the one before."""
    found: list[list[str]] = []
    for place, (word, label) in enumerate(stream):
        if word == first:
            found.append([])
        else:
            found[-1].append(word)
        following = stream[place + 1][0] if place + 1 < len(stream) else first
        if label == last:
            assert following == first
        else:
            assert label == (KNOWN.index(following) if following in KNOWN else 2)
    return found


@pytest.mark.parametrize("shuffle", [True, False])
def test_both_directions_read_every_sentence_once(corpus, tokenizer, shuffle):
    dataset = word_stream_dataset(
        corpus, tokenizer, unroll_steps=5, shuffle_sentences=shuffle, num_rows=3, num_shards=1
    )
    examples = list(dataset)
    ahead = [s for row in read_streams(examples, "forward").values() for s in sentences_of(row, "<S>", 1)]
    back = [s for row in read_streams(examples, "backward").values() for s in sentences_of(row, "</S>", 0)]
    expected = Counter(map(tuple, SENTENCES))
    assert Counter(map(tuple, ahead)) == expected
    assert Counter(tuple(sentence[::-1]) for sentence in back) == expected
    sizes = Counter(len(example["forward_words"]) for example in examples)
    assert sizes[5] > 0.6 * sum(sizes.values())  # but for the ends of blocks, which are small here
    if shuffle:
        assert ahead != [sentence[::-1] for sentence in back]
    # rows of a batch one after the other
    assert [example["row"] for example in examples] == [0, 1, 2] * (len(examples) // 3)


def test_sentences_in_order_are_continuous(corpus, tokenizer):
    (source,) = corpus.sources
    block = [document.segments[0].split() for document in source.block(1)]
    dataset = word_stream_dataset(corpus, tokenizer, unroll_steps=5, shuffle_sentences=False, num_rows=1, num_shards=1)
    ahead, back = (
        sentences_of(read_streams(dataset, direction)[0], *boundaries)
        for direction, boundaries in (("forward", ("<S>", 1)), ("backward", ("</S>", 0)))
    )
    place = ahead.index(block[0])
    assert ahead[place : place + len(block)] == block
    place = back.index(block[-1][::-1])
    assert back[place : place + len(block)] == [sentence[::-1] for sentence in reversed(block)]


def test_streams_go_on_where_they_were_and_can_be_pickled(corpus, tokenizer):
    def make():
        return word_stream_dataset(corpus, tokenizer, unroll_steps=4, num_rows=2, num_shards=2, seed=3)

    whole = list(make())
    for stop in (1, 7, len(whole) - 2):
        dataset = make()
        iterator = iter(dataset)
        begin = [next(iterator) for _ in range(stop)]
        resumed = pickle.loads(pickle.dumps(make()))
        resumed.load_state_dict(dataset.state_dict())
        assert begin + list(resumed) == whole
    dataset = make()
    dataset.set_epoch(1)
    assert list(dataset) != whole


def test_collated_windows(tokenizer):
    examples = [
        {
            "forward_words": ["<S>", "w1", "w99"],
            "forward_targets": [4, 2, 1],
            "backward_words": ["</S>", "w99"],
            "backward_targets": [2, 4],
        },
        {"forward_words": [], "forward_targets": [], "backward_words": [], "backward_targets": []},
    ]
    inputs = DataCollatorForWordStreams(tokenizer)(examples)
    expected = tokenizer(["<S> w1 w99"], return_tensors="pt").input_ids
    assert torch.equal(inputs["input_ids"][:1], expected)
    assert not inputs["input_ids"][1].any()
    assert inputs["labels"].tolist() == [[4, 2, 1], [-100] * 3]
    assert torch.equal(inputs["backward_input_ids"][:1], tokenizer(["</S> w99"], return_tensors="pt").input_ids)
    assert inputs["backward_targets"].tolist() == [[2, 4], [-100] * 2]


def test_rows_with_the_number_of_the_word(tokenizer, tmp_path):
    (tmp_path / "words.json").write_text('{"<UNK>": 1, "w1": 300}')
    tokenizer = ElmoTokenizer(
        tmp_path / "vocab.txt", word_vocab_file=tmp_path / "words.json", max_characters_per_token=8
    )
    batch = DataCollatorForWordSentences(tokenizer)([{"words": ["w1", "w2"], "labels": [4, 5]}])
    assert batch["input_ids"].shape == (1, 2, 9)
    assert batch["input_ids"][0, :, -1].tolist() == [300, 1]


def test_sentences_by_themselves(corpus, tokenizer):
    examples = list(word_sentence_dataset(corpus, tokenizer, max_length=8, num_shards=2))
    pieces = [tuple(sentence[start : start + 6]) for sentence in SENTENCES for start in range(0, len(sentence), 6)]
    assert Counter(tuple(example["words"]) for example in examples) == Counter(pieces)
    inputs = DataCollatorForWordSentences(tokenizer)(examples[:5])
    expected = tokenizer(
        [e["words"] for e in examples[:5]], is_split_into_words=True, padding=True, return_tensors="pt"
    )
    assert torch.equal(inputs["input_ids"], expected.input_ids)
    known = [[KNOWN.index(word) if word in KNOWN else 2 for word in example["words"]] for example in examples[:5]]
    assert [[label for label in row if label != -100] for row in inputs["labels"].tolist()] == known


def test_names_of_boundaries_in_the_text_do_not_count(tmp_path, tokenizer):
    (tmp_path / "text.txt").write_text("w1 </S> w2\n<S>\n<pad> w3\n")
    corpus = Corpus(tmp_path / "text.txt", text_unit="line")
    examples = word_sentence_dataset(corpus, tokenizer, num_shards=1)
    assert sorted(example["words"] for example in examples) == [["<pad>", "w3"], ["w1", "w2"]]
    ids = DataCollatorForWordSentences(tokenizer)([{"words": ["<pad>"], "labels": [2]}])["input_ids"]
    assert ids[0, 0, 0] == 259  # a word like any other


@pytest.mark.parametrize("name", ["stream", "sentence"])
def test_a_tokenizer_without_words_is_refused(corpus, name):
    make = {"stream": word_stream_dataset, "sentence": word_sentence_dataset}[name]
    with pytest.raises(ValueError, match="must be an ElmoTokenizer with a word vocabulary"):
        make(corpus, ElmoTokenizer(), **({"num_rows": 1} if name == "stream" else {}))


def test_lines_are_documents(tmp_path):
    lines = [f"line {number} {'x' * (1 + number % 13)}" for number in range(40)]
    (tmp_path / "a.txt").write_text("\n".join(lines[:25]) + "\n\n\n")
    (tmp_path / "b.txt").write_text("\n".join(lines[25:]))
    corpus = Corpus(tmp_path, text_unit="line", block_size=37)
    assert [document.segments for document in corpus] == [[line] for line in lines]
    (source,) = corpus.sources
    blocks = [document for index in range(source.num_blocks) for document in source.block(index)]
    assert blocks == list(corpus)
    with pytest.raises(ValueError, match="text_unit must be 'document' or 'line', got 'page'"):
        Corpus(tmp_path, text_unit="page")
