from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tokenizer_training.text import TextLines
from tokenizer_training.words import train_word_tokenizer

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
words = st.text("abcdé中文", min_size=1, max_size=3)


def text_of(folder, lines, **options):
    file = folder / "text.txt"
    file.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return TextLines([file], **options)


@settings(max_examples=30, deadline=None)
@given(lines=st.lists(st.lists(words, min_size=1), min_size=1), min_count=st.integers(1, 3))
def test_words_of_a_minimum_count_in_order(tmp_path_factory, lines, min_count):
    folder = tmp_path_factory.mktemp("text")
    text = text_of(folder, map(" ".join, lines), held_out=0)
    spaced = (word.replace("中", " 中 ").replace("文", " 文 ") for line in lines for word in line)
    counts = Counter(part for word in spaced for part in word.split())
    expected = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
    if not expected:
        with pytest.raises(ValueError, match=f"no word occurs min_count={min_count} times"):
            train_word_tokenizer(text, folder / "out", min_count=min_count)
        return
    _, report = train_word_tokenizer(text, folder / "out", min_count=min_count)
    tokenizer = AutoTokenizer.from_pretrained(folder / "out")
    assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == SPECIAL + expected
    assert report.tokens == counts.total()
    assert report.unknown == sum(counts[word] for word in counts if word not in expected)


def test_result_works_with_models_of_any_family(tmp_path):
    train_word_tokenizer(text_of(tmp_path, ["the cat sat, OK", "the dog"]), tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert type(tokenizer) is PreTrainedTokenizerFast
    assert tokenizer.convert_ids_to_tokens(range(5)) == SPECIAL
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (4, 0, 1)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.model_max_length) == ("<s>", "</s>", 512)
    pair = tokenizer("the cat", "bird")
    assert pair.tokens() == ["<s>", "the", "cat", "</s>", "<unk>", "</s>"]
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1]
    assert tokenizer.tokenize("OK,ok") == ["OK", ",", "<unk>"]
    assert tokenizer.decode(tokenizer("the cat")["input_ids"], skip_special_tokens=True) == "the cat"


def test_options(tmp_path):
    text = text_of(tmp_path, ["Été OK ok", "OK <e>"])
    tokenizer, _ = train_word_tokenizer(
        text, tmp_path / "a", 8, do_lower_case=True, keep_accents=False, extra_special_tokens=["<e>"]
    )
    assert tokenizer.convert_ids_to_tokens(range(5, 8)) == ["<e>", "ok", "<"]
    tokenizer, _ = train_word_tokenizer(text, tmp_path / "b", 9)
    assert tokenizer.convert_ids_to_tokens(range(5, 9)) == ["OK", "<", ">", "e"]
    train_word_tokenizer(text, tmp_path / "c", 9)
    assert [path.read_bytes() for path in sorted((tmp_path / "b").iterdir())] == [
        path.read_bytes() for path in sorted((tmp_path / "c").iterdir())
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count must be at least 1, got 0"),
        ({"vocab_size": 5}, "vocab_size must be at least 6, the special tokens and a word; got 5"),
        ({"vocab_size": 9}, "the text is enough for a vocabulary of 8, not of 9"),
        ({"extra_special_tokens": ["<e>", "<e>"]}, "has '<e>' more than once"),
        ({"extra_special_tokens": ["<s>"]}, "which is a special token"),
    ],
)
def test_what_is_refused(tmp_path, options, message):
    text = text_of(tmp_path, ["a b c"])
    with pytest.raises(ValueError, match=message):
        train_word_tokenizer(text, tmp_path / "out", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
