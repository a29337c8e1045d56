import math
import re
import sys
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AlbertTokenizer, AutoTokenizer, XLNetTokenizer

from hf_lineage import LineageAlbertTokenizer, LineageXLNetTokenizer
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.unigram_families import ALBERT, XLNET, UnigramFamily
from tokenizer_training.unigram_text import normalization_table, prepared_sentences

sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
SYLLABLES = ["ka", "to", "mi", "ré", "su", "no", "한국"]
LINES = [" ".join(a + b + c for c in SYLLABLES) + ' Ok, in 2013, "x-y". 中文' for a in SYLLABLES for b in SYLLABLES]


def text_of(folder, lines, **options):
    file = folder / "text.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    return TextLines([file], **options)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return text_of(tmp_path_factory.mktemp("text"), LINES * 2)


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    train_albert_tokenizer(text, folder, 100)
    return folder


@pytest.fixture(scope="module")
def processor(folder):
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


def test_result_is_of_the_family(tokenizer):
    assert type(tokenizer) is LineageAlbertTokenizer
    assert len(tokenizer) == 100
    assert tokenizer.convert_ids_to_tokens(range(13)) == [*SPECIAL, *'()"-.–£€']
    assert sorted(tokenizer.get_added_vocab()) == sorted(SPECIAL)
    assert (tokenizer.padding_side, tokenizer.model_max_length) == ("right", 512)
    assert tokenizer("katomi", "in 2013")["token_type_ids"][-1] == 1
    assert not any(re.search(r"\d,$", piece) for piece in tokenizer.get_vocab())
    assert tokenizer.unk_token_id not in tokenizer(LINES[0])["input_ids"]


def test_both_files_give_the_same_ids(folder, tokenizer, tmp_path):
    (tmp_path / "spiece.model").write_bytes((folder / "spiece.model").read_bytes())
    others = LineageAlbertTokenizer.from_pretrained(tmp_path), AlbertTokenizer.from_pretrained(folder)
    for line in LINES:
        assert all(other(line)["input_ids"] == tokenizer(line)["input_ids"] for other in others)


def is_tie(processor, found, expected) -> bool:
    """Whether two cuts of a text have the same sum of scores, of which either may win."""
    sums = [sum(processor.get_score(number) for number in ids) for ids in (found, expected)]
    same_text = processor.decode(list(found)) == processor.decode(list(expected))
    return same_text and math.isclose(*sums, rel_tol=1e-6)


pieces = st.sampled_from([*SYLLABLES, *" .,-()12\t\x01\u200b\ufeff▁é中", "2013,", "KA", "``", "unknown", "ａ"])


@settings(max_examples=300, deadline=None)
@given(text=st.lists(pieces, max_size=12).map("".join))
def test_ids_are_those_of_sentencepiece(processor, tokenizer, text):
    normalizer = LineageAlbertTokenizer().backend_tokenizer.normalizer
    expected = processor.encode(normalizer.normalize_str(text))
    found = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert found == expected or is_tie(processor, found, expected)


@pytest.mark.parametrize("options", [{}, {"do_lower_case": False}, {"keep_accents": True}])
def test_options_are_kept(options, text, tmp_path):
    train_albert_tokenizer(text, tmp_path, 110, **options)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.do_lower_case == options.get("do_lower_case", True)
    assert tokenizer.keep_accents == options.get("keep_accents", False)
    pieces = "".join(tokenizer.get_vocab())
    assert ("O" in pieces) == (not tokenizer.do_lower_case)
    assert ("é" in pieces) == ("한" in pieces) == tokenizer.keep_accents
    # the table of the pieces: control characters are dropped, invisible ones are spaces
    assert tokenizer.tokenize("ka\x01to\u200bmi") == tokenizer.tokenize("kato mi")


def test_the_same_files_each_time(text, folder, tmp_path):
    train_albert_tokenizer(text, tmp_path / "out", 100)
    assert files(tmp_path / "out") == files(folder)
    assert sorted(files(folder)) == [
        "spiece.model",
        "tokenizer.json",
        "tokenizer_config.json",
        "tokenizer_report.json",
        "tokenizer_report.md",
    ]


def test_rare_characters_are_reported(tmp_path):
    text = text_of(tmp_path, ["kato mi"] * 300 + ["kato 中 mi", "kato 文 mi", "中"])
    tokenizer, report = train_albert_tokenizer(text, tmp_path / "a", 20, character_coverage=0.998)
    assert report.most_unknown == (("中", 2), ("文", 1))
    assert report.unknown == 3
    _, report = train_albert_tokenizer(text, tmp_path / "b", 22, character_coverage=1)
    assert report.unknown == 0
    assert "中" not in tokenizer.get_vocab()


def test_lines_without_spaces_may_be_long(tmp_path):
    # longer than what SentencePiece can take as one word; and with its own sign, for which it leaves lines out
    line = "".join(LINES).replace(" ", "") * 20
    assert len(line) > 50_000
    tokenizer, report = train_albert_tokenizer(text_of(tmp_path, [line, *["▅ 国"] * 20]), tmp_path / "out", 80)
    assert dict(report.most_unknown) == {"▅": 20}
    assert len(tokenizer) == 80


texts = st.text(st.sampled_from("aB0 1,,``''\"\"-(~\t\x01\x7f▅éÉ中"), max_size=30)


@pytest.mark.parametrize("family", [ALBERT, XLNET])
@pytest.mark.parametrize("options", [{}, {"do_lower_case": False}, {"do_lower_case": True, "keep_accents": True}])
@settings(max_examples=150, deadline=None)
@given(line=texts)
def test_sentences_are_what_the_tokenizer_makes_of_a_line(family, options, line):
    table = normalization_table(sentencepiece, options.get("keep_accents", False))
    tokenizer = family.tokenizer_class(**options, _spm_precompiled_charsmap=table)
    normalize = tokenizer.backend_tokenizer.normalizer.normalize_str
    expected = " ".join(normalize(line).replace("▅", " ").split())
    expected = "".join(
        f"\x1f{character}" if character == "," and before.isdigit() else character
        for before, character in zip(" " + expected, expected, strict=False)
    )
    found = list(prepared_sentences([line], normalize, tokenizer.do_lower_case))
    assert found == ([expected] if expected else [])


def test_sentences_are_cut_at_spaces():
    lines = ["a" * 2500, "bb " * 1000, "c" * 999 + " dd", "1,2", ""]
    sentences = list(prepared_sentences(lines, str, False))
    assert all(0 < len(sentence) <= 1000 for sentence in sentences)
    assert sentences[:3] == ["a" * 1000, "a" * 1000, "a" * 500]
    assert "".join(sentences[3:]).replace(" ", "") == "bb" * 1000 + "c" * 999 + "dd" + "1\x1f,2"
    assert all(sentence.strip().split(" ").count("bb") == len(sentence.split()) for sentence in sentences[3:6])
    assert sentences[-3:-1] == ["c" * 999, " dd"]


def test_vocabularies_that_the_text_cannot_give(text, tmp_path):
    with pytest.raises(ValueError, match=r"enough for a vocabulary of \d+, not of 50000") as error:
        train_albert_tokenizer(text, tmp_path / "out", 50_000)
    most = int(re.search(r"of (\d+), not", str(error.value))[1])
    with pytest.raises(ValueError, match=r"a vocabulary of at least \d+, not 20") as error:
        train_albert_tokenizer(text, tmp_path / "out", 20)
    least = int(re.search(r"at least (\d+), not", str(error.value))[1])
    assert not list(tmp_path.iterdir())
    for size in (least, most):
        tokenizer, _ = train_albert_tokenizer(text, tmp_path / "out", size, overwrite=True)
        assert len(tokenizer) == size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 13}, "vocab_size must be above 13"),
        ({"character_coverage": 0}, "character_coverage must be above 0"),
        ({"character_coverage": 1.5}, "at most 1, got 1.5"),
        ({"user_defined_symbols": ["(", "("]}, "has '\\(' more than once"),
        ({"user_defined_symbols": ["[CLS]"]}, r"has '\[CLS\]', which is a special token"),
        ({"user_defined_symbols": ["É"]}, "has 'É', which no text is after normalization"),
        ({"user_defined_symbols": ["a b"]}, "has 'a b', which no text is"),
    ],
)
def test_arguments_that_are_refused(options, message, text, tmp_path):
    with pytest.raises(ValueError, match=message):
        train_albert_tokenizer(text, tmp_path / "out", **{"vocab_size": 100, **options})
    assert not list(tmp_path.iterdir())


def test_text_that_is_refused(tmp_path):
    for data, message in ((b"ok\n\xff\n", "byte 3"), (b" \n", "no text"), (b"\x01\n", "nothing but white space")):
        (tmp_path / "text.txt").write_bytes(data)
        with pytest.raises(ValueError, match=message):
            train_albert_tokenizer(TextLines([tmp_path / "text.txt"]), tmp_path / "out", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_sentencepiece_is_needed_for_training_only(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ValueError, match="pip install 'sentencepiece"):
        train_albert_tokenizer(text, tmp_path / "out", 100)


def test_chinese_novels_have_few_unknown_characters(shared, tmp_path):
    novel = TextLines([shared / "data" / "text" / "zh" / "sanguo_yanyi.txt.gz"], held_out=0)
    text = text_of(tmp_path, islice(novel.read("read"), 600), held_out=0)
    tokenizer, report = train_albert_tokenizer(text, tmp_path / "out", 2200)
    assert report.unknown_rate < 2e-4
    assert report.characters_per_token > 1.1
    assert tokenizer.decode(tokenizer("却说曹操", add_special_tokens=False)["input_ids"]) == "却说曹操"


XLNET_SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]


@pytest.fixture(scope="module")
def xlnet_folder(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "xlnet"
    train_xlnet_tokenizer(text, folder, 110)
    return folder


def test_xlnets_ids_are_the_published_ones(xlnet_folder):
    tokenizer = AutoTokenizer.from_pretrained(xlnet_folder)
    assert type(tokenizer) is LineageXLNetTokenizer
    assert len(tokenizer) == 110
    assert tokenizer.convert_ids_to_tokens(range(17)) == [*XLNET_SPECIAL, *'.()"-–£€']
    assert (tokenizer.padding_side, tokenizer.cls_token_id, tokenizer.sep_token_id) == ("left", 3, 4)
    assert tokenizer("katomi", "in 2013")["token_type_ids"][-2:] == [1, 2]
    assert tokenizer("Katomi")["input_ids"] != tokenizer("katomi")["input_ids"]
    assert tokenizer.unk_token_id not in tokenizer(LINES[0])["input_ids"]


@settings(max_examples=300, deadline=None)
@given(text=st.lists(pieces, max_size=12).map("".join))
def test_xlnets_ids_are_those_of_sentencepiece(xlnet_folder, text):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(xlnet_folder / "spiece.model"))
    tokenizer = LineageXLNetTokenizer.from_pretrained(xlnet_folder)
    normalizer = LineageXLNetTokenizer().backend_tokenizer.normalizer
    expected = processor.encode(normalizer.normalize_str(text))
    found = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert found == expected or is_tie(processor, found, expected)


def test_both_files_of_xlnets_give_the_same_ids(xlnet_folder, tmp_path):
    (tmp_path / "spiece.model").write_bytes((xlnet_folder / "spiece.model").read_bytes())
    trained = LineageXLNetTokenizer.from_pretrained(xlnet_folder)
    others = LineageXLNetTokenizer.from_pretrained(tmp_path), XLNetTokenizer.from_pretrained(xlnet_folder)
    for line in LINES:
        assert all(other(line)["input_ids"] == trained(line)["input_ids"] for other in others)


def test_xlnets_special_tokens_are_no_symbols(text, tmp_path):
    with pytest.raises(ValueError, match="'<eod>', which is a special token"):
        train_xlnet_tokenizer(text, tmp_path / "out", 110, user_defined_symbols=["<eod>"])


def test_a_tokenizer_that_cannot_be_imported_is_an_error(tmp_path, text, monkeypatch):
    def fail(family):
        raise ImportError("no such tokenizer")

    monkeypatch.setattr(UnigramFamily, "tokenizer_class", property(fail))
    with pytest.raises(ImportError, match="no such tokenizer"):
        train_albert_tokenizer(text, tmp_path / "out", 100)
    assert not list(tmp_path.iterdir())
