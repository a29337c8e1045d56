from itertools import islice

import pytest
from transformers import AutoTokenizer, BertTokenizer

import hf_lineage  # noqa: F401  registers the families
from hf_lineage import LineageAlbertConfig
from tokenizer_training.text import TextLines
from tokenizer_training.wordpiece import train_bert_tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SYLLABLES = ["ka", "to", "mi", "ré", "su", "no"]
# every word equally often, so that many pairs of pieces are equally frequent
LINES = [" ".join(a + b + c for c in SYLLABLES) + " 中文 Ok." for a in SYLLABLES for b in SYLLABLES]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(LINES * 2), encoding="utf-8")
    return TextLines([file])


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_result_works_with_the_family(text, tmp_path):
    trained, report = train_bert_tokenizer(text, tmp_path, 60)
    LineageAlbertConfig(vocab_size=60).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert type(tokenizer) is BertTokenizer
    assert tokenizer.get_vocab() == trained.get_vocab()
    assert tokenizer.convert_ids_to_tokens(range(5)) == SPECIAL
    assert sorted(tokenizer.get_added_vocab()) == sorted(SPECIAL)
    assert len(tokenizer) == report.vocab_size == 60
    assert (tokenizer.mask_token, tokenizer.padding_side, tokenizer.model_max_length) == ("[MASK]", "right", 512)
    pair = tokenizer("Katomi 中文", "OK")
    first = pair["token_type_ids"].index(1)
    assert pair.tokens()[first - 1] == "[SEP]"
    assert set(pair["token_type_ids"][first:]) == {1}
    assert tokenizer.unk_token_id not in tokenizer(LINES[0])["input_ids"]
    assert report.unknown == 0
    assert report.lines == len(LINES) * 2


def test_the_same_files_each_time(text, tmp_path):
    for name in "abcd":
        train_bert_tokenizer(text, tmp_path / name, 70)
    first = files(tmp_path / "a")
    assert all(files(tmp_path / name) == first for name in "bcd")


def test_letters_and_accents(text, tmp_path):
    default, _ = train_bert_tokenizer(text, tmp_path / "a", 60)
    assert default.tokenize("RÉ") == default.tokenize("re")
    cased, _ = train_bert_tokenizer(text, tmp_path / "b", 60, do_lower_case=False, keep_accents=True)
    reloaded = AutoTokenizer.from_pretrained(tmp_path / "b")
    assert "é" in "".join(reloaded.tokenize("ré"))
    assert reloaded.tokenize("RÉ") == cased.tokenize("RÉ") == ["[UNK]"]


def test_coverage_leaves_the_rarest_characters_out(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("abab " * 495 + "中" * 20, encoding="utf-8")
    known, report = train_bert_tokenizer(TextLines([file]), tmp_path / "a", 13, character_coverage=1)
    assert "中" in known.get_vocab()
    assert report.unknown == 0
    known, report = train_bert_tokenizer(TextLines([file]), tmp_path / "b", 11, character_coverage=0.98)
    assert "中" not in known.get_vocab()
    assert report.most_unknown == (("中", 20),)


def test_vocabularies_that_the_text_cannot_give(text, tmp_path):
    with pytest.raises(ValueError, match=r"at least \d+, not 20: choose a larger vocab_size") as error:
        train_bert_tokenizer(text, tmp_path / "out", 20)
    least = int(next(word for word in str(error.value).replace(",", "").split() if word.isdigit()))
    with pytest.raises(ValueError, match=r"a vocabulary of \d+, not of 5000") as error:
        train_bert_tokenizer(text, tmp_path / "out", 5000)
    most = int(next(word for word in str(error.value).replace(",", "").split() if word.isdigit()))
    assert not list(tmp_path.iterdir())
    for size in (least, most):
        tokenizer, _ = train_bert_tokenizer(text, tmp_path / "out", size, overwrite=True)
        assert len(tokenizer) == size
    with pytest.raises(ValueError, match="character_coverage must be above 0 and at most 1, got 0"):
        train_bert_tokenizer(text, tmp_path / "out", 60, character_coverage=0)


def test_extra_special_tokens(text, tmp_path):
    train_bert_tokenizer(text, tmp_path / "out", 60, extra_special_tokens=["[E1]", "[/E1]"])
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.convert_ids_to_tokens(range(7)) == [*SPECIAL, "[E1]", "[/E1]"]
    assert "[E1]" in tokenizer.tokenize("ka [E1] to")
    assert len(tokenizer) == 60
    for tokens, message in (
        (["[E1]", "[E1]"], "has '\\[E1\\]' more than once"),
        (["[SEP]"], "has '\\[SEP\\]', which is a special token"),
        (["k"], "has 'k', which the vocabulary needs for text"),
        ([""], "must not be empty"),
        ([" [E1]"], "white space must not begin"),
    ):
        with pytest.raises(ValueError, match=message):
            train_bert_tokenizer(text, tmp_path / "other", 60, extra_special_tokens=tokens)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_text_without_a_character(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\x01\x02\n")
    with pytest.raises(ValueError, match="nothing but white space and control characters"):
        train_bert_tokenizer(TextLines([tmp_path / "text.txt"]), tmp_path / "out", 60)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_chinese_novels_have_few_unknown_characters(shared, tmp_path):
    novel = TextLines([shared / "data" / "text" / "zh" / "sanguo_yanyi.txt.gz"], held_out=0)
    (tmp_path / "text.txt").write_text("\n".join(islice(novel.read("read"), 2000)), encoding="utf-8")
    # every Chinese character is a word, so there is nothing to join
    text = TextLines([tmp_path / "text.txt"], held_out=0)
    tokenizer, report = train_bert_tokenizer(text, tmp_path / "out", 2237)
    assert report.unknown_rate < 1e-4
    assert tokenizer.tokenize("中国") == ["中", "国"]
