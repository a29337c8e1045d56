import tempfile
import unittest
from typing import Any, ClassVar

import pytest
from transformers import AddedToken

from hf_lineage import ElmoTokenizer

from .harness import upstream_module

pytestmark = pytest.mark.upstream

common = upstream_module("test_tokenization_common")

CHARACTERS = 50
PADDING_ROW = (0,) * CHARACTERS

# the words of TokenizerTesterMixin.integration_test_input_string
WORDS = (
    "This is a test 😊 I was born in 92000 , and this is falsé . 生 活 的 真 谛 是 Hi Hello Hi Hello Hello "
    "< s > hi < s > there The following string should be properly encoded : Hello . But ird and ปี ird ด "
    "Hey how are you doing"
)


def row(word: str) -> tuple[int, ...]:
    ids = (259, *(byte + 1 for byte in word.encode()), 260)
    return ids + (261,) * (CHARACTERS - len(ids))


class ElmoTokenizationTest(common.TokenizerTesterMixin, unittest.TestCase):
    """The mixin takes an id for an integer, and an id of ELMo is a row of bytes: what rests on that is redone here."""

    tokenizer_class = ElmoTokenizer
    # the mixin's extractor reads a tokenizer.json, which a tokenizer written in Python has not
    test_tokenizer_from_extractor = False

    integration_expected_tokens = WORDS.split()
    integration_expected_token_ids: ClassVar[list[tuple[int, ...]]] = [row(word) for word in WORDS.split()]
    integration_expected_decoded_text = WORDS

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        ElmoTokenizer().save_pretrained(folder.name)
        # many checks go through the names given here, and would check nothing if there were none
        cls.from_pretrained_id = folder.name
        super().setUpClass()

    def check_padding(self, tokenizer: ElmoTokenizer, side: str, **options: Any) -> None:
        plain = tokenizer("A sequence", return_special_tokens_mask=True)
        options |= {"padding": "max_length", "max_length": len(plain["input_ids"]) + 10}
        padded = tokenizer("A sequence", return_special_tokens_mask=True, **options)
        assert tokenizer.encode("A sequence", **options) == padded["input_ids"]
        padding = {"input_ids": PADDING_ROW, "attention_mask": 0, "token_type_ids": 0, "special_tokens_mask": 1}
        assert set(padded) == set(padding)
        for name, value in padding.items():
            missing = [value] * 10
            assert padded[name] == (plain[name] + missing if side == "right" else missing + plain[name]), name

    # the mixin expects pad_token_id itself as padding, where ELMo has a row of it

    def test_encode_basic_padding(self) -> None:
        for side in ("right", "left"):
            tokenizer = self.get_tokenizer()
            tokenizer.padding_side = side
            self.check_padding(tokenizer, side)

    def test_encode_plus_with_padding_0(self) -> None:
        for side in ("right", "left"):
            self.check_padding(self.get_tokenizer(), side, padding_side=side)

    @unittest.skip("padding_side as an attribute is checked in test_encode_basic_padding")
    def test_encode_plus_with_padding_1(self) -> None:
        pass

    def test_padding_with_attention_mask(self) -> None:
        # the mixin pads lists of integers
        word = row("word")
        features = [
            {"input_ids": [word, word, word, word], "attention_mask": [1, 1, 1, 0]},
            {"input_ids": [word, word], "attention_mask": [1, 0]},
        ]
        padded = self.get_tokenizer().pad(features)
        assert padded["attention_mask"] == [[1, 1, 1, 0], [1, 0, 0, 0]]
        assert padded["input_ids"] == [[word] * 4, [word, word, PADDING_ROW, PADDING_ROW]]

    def test_batch_encode_dynamic_overflowing(self) -> None:
        # the mixin expects ids of two dimensions
        long, short = "one word after another goes by", "only three words, or maybe more"
        for text, sentences in ((long, 1), ([long], 1), ([long, short], 2)):
            encoded = self.get_tokenizer()(
                text,
                max_length=4,
                padding=True,
                truncation="only_first",
                return_tensors="pt",
                return_overflowing_tokens=True,
            )
            assert encoded.pop("input_ids").shape == (sentences, 4, CHARACTERS)
            assert {tuple(values.shape) for values in encoded.values()} == {(sentences, 4)}

    def test_get_vocab(self) -> None:
        # the mixin counts the ids from 0
        tokenizer = self.get_tokenizer()
        tokenizer.add_tokens(["asdfasdfasdfasdf"])
        vocabulary = tokenizer.get_vocab()
        assert "asdfasdfasdfasdf" in vocabulary
        assert len(tokenizer) >= len(vocabulary)
        for token, token_id in vocabulary.items():
            assert tokenizer.convert_ids_to_tokens(token_id) == token
            assert tokenizer.convert_tokens_to_ids(token) == token_id

    def test_added_tokens_serialization(self) -> None:
        # the mixin looks the new token up by eos_token_id, which is a place in the word vocabulary
        new_eos = AddedToken("[NEW_EOS]", rstrip=False, lstrip=True, normalized=False, special=True)
        tokenizer = self.get_tokenizer(eos_token=new_eos)
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            reloaded = ElmoTokenizer.from_pretrained(folder)
        assert reloaded.eos_token == "[NEW_EOS]"
        assert reloaded.extra_special_tokens == []
        assert {*map(str, reloaded.added_tokens_decoder.values())} == {
            *map(str, tokenizer.added_tokens_decoder.values())
        }

    @unittest.skip("the ids of the special tokens are their places in the word vocabulary, which are fixed")
    def test_tokenizers_common_ids_setters(self) -> None:
        pass
