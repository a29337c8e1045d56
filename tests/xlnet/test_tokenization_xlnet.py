import json
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, XLNetTokenizer

import hf_lineage
from hf_lineage import LineageXLNetTokenizer

SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
WORDS = "▁the ▁The ▁cat ▁sat ▁2013 ▁2013, 2013 ing 13, 中国".split()
CHARACTERS = ["▁", *string.ascii_letters, *string.digits, *",;:'`/().-é中国文"]
VOCAB = [
    *((piece, 0.0) for piece in SPECIAL),
    *((piece, -3.0 - number / 8) for number, piece in enumerate(WORDS)),
    *((piece, -9.0 - number / 64) for number, piece in enumerate(CHARACTERS)),
]
AWKWARD = [*" \t\u3000\x1c\u2028\u200b(-.", "2013,", "the", "``", "''", "é", "e\u0301", "\ufdfa", "ﬁ", "한", "▁"]
texts = st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(max_size=5)), max_size=8).map("".join)


@pytest.fixture(scope="module")
def pieces():
    return LineageXLNetTokenizer(vocab=VOCAB)


@pytest.fixture(scope="module")
def published(shared, tmp_path_factory):
    """A folder as people have it: the published pieces beside the configuration of a model."""
    folder = tmp_path_factory.mktemp("xlnet")
    (folder / "config.json").write_text('{"model_type": "lineage_xlnet"}')
    (folder / "spiece.model").write_bytes((shared / "fixtures/tokenizers/xlnet-en-cased/spiece.model").read_bytes())
    return folder


def test_published_ids(shared, published, tmp_path):
    cases = json.loads((shared / "fixtures/tokenizers/expected_ids.json").read_text())
    cases = [case for case in cases if case["tokenizer"] == "xlnet-en-cased"]
    assert cases
    tokenizer = AutoTokenizer.from_pretrained(published)
    assert type(tokenizer) is LineageXLNetTokenizer
    tokenizer.save_pretrained(tmp_path / "again")
    tokenizer.to_transformers().save_pretrained(tmp_path / "theirs")
    again = AutoTokenizer.from_pretrained(tmp_path / "again")
    theirs = XLNetTokenizer.from_pretrained(tmp_path / "theirs")
    for case in cases:
        for each in (tokenizer, again, theirs):
            assert each(case["text"])["input_ids"] == case["input_ids"]


def test_special_tokens_have_the_published_ids(published):
    tokenizer = AutoTokenizer.from_pretrained(published)
    assert tokenizer.convert_tokens_to_ids(SPECIAL) == list(range(9))
    assert tokenizer.mask_token_id == 6
    assert tokenizer.pad_token_id == 5


def test_pairs_have_three_segments_and_padding_is_on_the_left(pieces):
    encoded = pieces(["the cat", "cat"], ["sat", "the sat"], padding=True)
    tokens = [pieces.convert_ids_to_tokens(row) for row in encoded["input_ids"]]
    assert tokens[0] == ["▁the", "▁cat", "<sep>", "▁sat", "<sep>", "<cls>"]
    assert encoded["token_type_ids"][0] == [0, 0, 0, 1, 1, 2]
    longer = pieces(["cat", "the cat sat"], padding=True)
    assert pieces.convert_ids_to_tokens(longer["input_ids"][0]) == ["<pad>", "<pad>", "▁cat", "<sep>", "<cls>"]
    assert longer["token_type_ids"] == [[3, 3, 0, 0, 2], [0, 0, 0, 0, 2]]
    assert longer["attention_mask"][0] == [0, 0, 1, 1, 1]


def test_case_accents_and_space_are_as_asked_for_also_after_loading(tmp_path):
    text = "The\u00a0caf\u00e9"
    cased = LineageXLNetTokenizer(vocab=VOCAB)
    assert cased.tokenize(text)[0] == "▁The"
    assert "é" not in "".join(cased.tokenize(text))
    cased.save_pretrained(tmp_path)
    for flags, first, accent in (
        ({}, "▁The", False),
        ({"do_lower_case": True}, "▁the", False),
        ({"keep_accents": True}, "▁The", True),
    ):
        loaded = AutoTokenizer.from_pretrained(tmp_path, **flags)
        assert loaded.tokenize(text)[0] == first
        assert ("é" in "".join(loaded.tokenize(text))) == accent
        assert loaded.padding_side == "left"


def test_a_digit_and_a_comma_are_apart(pieces):
    assert pieces.tokenize("In 2013, the")[-3:] == ["▁2013", ",", "▁the"]


def test_the_export_refuses_what_transformers_cannot_do():
    with pytest.raises(ValueError, match="keep_accents"):
        LineageXLNetTokenizer(vocab=VOCAB, keep_accents=True).to_transformers()


@settings(max_examples=150, deadline=None)
@given(texts, texts)
def test_any_text_is_encoded_within_its_bounds(pieces, text, pair):
    encoded = pieces(text, pair, return_offsets_mapping=True)
    rows = zip(encoded["input_ids"], encoded["offset_mapping"], encoded.sequence_ids(), strict=True)
    for number, (start, end), sequence in rows:
        assert 0 <= number < len(pieces)
        assert 0 <= start <= end <= len((text, pair)[sequence or 0])
    assert encoded["token_type_ids"][-1] == 2
    assert pieces(text, pair)["input_ids"] == encoded["input_ids"]


@pytest.mark.parametrize("part", ["sentencepiece", "normalization"])
def test_what_families_have_in_common_is_alike(part):
    """Families travel alone, so each has its own."""
    folder = Path(hf_lineage.__file__).parent
    one = (folder / "xlnet" / f"{part}_xlnet.py").read_text(encoding="utf-8")
    other = (folder / "albert" / f"{part}_albert.py").read_text(encoding="utf-8")
    assert one == other.replace("ALBERT", "XLNet")
