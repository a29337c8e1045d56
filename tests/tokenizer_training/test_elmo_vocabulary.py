import gzip
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

import hf_lineage  # noqa: F401  registers the families
from tokenizer_training.elmo import train_elmo_tokenizer
from tokenizer_training.text import TextLines

SPECIAL = ["<S>", "</S>", "<UNK>"]
words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(lines=st.lists(st.lists(words, min_size=1), min_size=1), room=st.integers(1, 10))
def test_the_most_frequent_words_in_order(tmp_path_factory, lines, room):
    folder = tmp_path_factory.mktemp("text")
    (folder / "text.txt").write_text("\n".join(map(" ".join, lines)), encoding="utf-8", newline="\n")
    text = TextLines([folder / "text.txt"], held_out=0)
    counts = Counter(word for line in lines for word in line if word not in SPECIAL)
    if room > len(counts):
        with pytest.raises(ValueError, match=f"enough for a vocabulary of {3 + len(counts)}, not of {3 + room}"):
            train_elmo_tokenizer(text, folder / "out", 3 + room, "whitespace")
        room = None
    size = None if room is None else 3 + room
    tokenizer, report = train_elmo_tokenizer(text, folder / "out", size, "whitespace")
    vocabulary = list(tokenizer.word_vocabulary)
    assert vocabulary[:3] == SPECIAL
    found = vocabulary[3:]
    assert [counts[word] for word in found] == sorted(counts.values(), reverse=True)[:room]
    assert report.vocab_size == len(vocabulary)
    assert report.tokens == sum(map(len, lines))
    assert report.unknown == counts.total() - sum(counts[word] for word in found)


def test_result_loads_and_gives_labels(tmp_path):
    with gzip.open(tmp_path / "text.txt.gz", "wt", encoding="utf-8") as file:
        file.write("the cat sat\n\nthe cat\nthe 和 cats\n")
    train_elmo_tokenizer(TextLines([tmp_path / "text.txt.gz"]), tmp_path / "out", 5)
    assert (tmp_path / "out" / "tokenizer_report.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert list(tokenizer.word_vocabulary) == [*SPECIAL, "the", "cat"]
    assert tokenizer.convert_tokens_to_word_ids(["the", "dog", "cat"]) == [3, 2, 4]


def test_words_of_the_input_are_those_of_the_softmax(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat\nthe cat\nthe 和 cats\n", encoding="utf-8")
    train_elmo_tokenizer(TextLines([tmp_path / "text.txt"]), tmp_path / "out", 5, word_input=True)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.input_words == {word: number + 1 for word, number in tokenizer.word_vocabulary.items()}
    assert [row[-1] for row in tokenizer(["the dog cat"])["input_ids"][0]] == [4, 3, 5]


def test_bad_input_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "special.txt").write_text("<S>\n</S> <UNK>\n")
    (tmp_path / "latin.txt").write_bytes(b"fine\nna\xefve\n")
    for file, size, message in (
        ("special.txt", 10, r"no words in .*special\.txt"),
        ("latin.txt", 10, r"latin\.txt: byte 7"),
        ("latin.txt", 3, "vocab_size"),
    ):
        with pytest.raises(ValueError, match=message):
            train_elmo_tokenizer(TextLines([tmp_path / file]), tmp_path / "out", size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latin.txt", "special.txt"]
