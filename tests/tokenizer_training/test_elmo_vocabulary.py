import gzip
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

import hf_lineage  # noqa: F401  registers the families
from tokenizer_training.elmo import train_elmo_tokenizer

SPECIAL = ["<S>", "</S>", "<UNK>"]
words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(lines=st.lists(st.lists(words, min_size=1), min_size=1), room=st.integers(1, 10))
def test_the_most_frequent_words_in_order(tmp_path_factory, lines, room):
    folder = tmp_path_factory.mktemp("text")
    (folder / "text.txt").write_text("\n".join(map(" ".join, lines)), encoding="utf-8", newline="\n")
    tokenizer, report = train_elmo_tokenizer([folder / "text.txt"], folder / "out", 3 + room, "whitespace")
    counts = Counter(word for line in lines for word in line if word not in SPECIAL)
    vocabulary = list(tokenizer.word_vocabulary)
    assert vocabulary[:3] == SPECIAL
    found = vocabulary[3:]
    assert len(found) == min(room, len(counts))
    assert [counts[word] for word in found] == sorted(counts.values(), reverse=True)[:room]
    assert report.words == sum(counts.values())
    assert report.known == sum(counts[word] for word in found)


def test_result_loads_and_gives_labels(tmp_path):
    with gzip.open(tmp_path / "text.txt.gz", "wt", encoding="utf-8") as file:
        file.write("the cat sat\n\nthe cat\nthe 和 cats\n")
    train_elmo_tokenizer([tmp_path / "text.txt.gz"], tmp_path / "out", 5)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert list(tokenizer.word_vocabulary) == [*SPECIAL, "the", "cat"]
    assert tokenizer.convert_tokens_to_word_ids(["the", "dog", "cat"]) == [3, 2, 4]


def test_bad_input_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "latin.txt").write_bytes(b"fine\nna\xefve\n")
    for files, size, message in (
        (["empty.txt"], 10, "no words"),
        (["latin.txt"], 10, "latin.txt, line 2: not UTF-8 at byte 2"),
        (["absent.txt"], 10, "no text file"),
        (["latin.txt"], 3, "vocab_size"),
    ):
        with pytest.raises(ValueError, match=message):
            train_elmo_tokenizer([tmp_path / name for name in files], tmp_path / "out", size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "latin.txt"]
