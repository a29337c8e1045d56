import tempfile
import unittest
from typing import ClassVar

import pytest

from hf_lineage import LineageXLNetTokenizer

from .harness import upstream_module

pytestmark = pytest.mark.upstream

common = upstream_module("test_tokenization_common")

SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
UNKNOWN = "😊ปด"
# the pieces of TokenizerTesterMixin.integration_test_input_string
TOKENS = """
▁This ▁is ▁a ▁test ▁ 😊 ▁I ▁was ▁born ▁in ▁9 2 000 , ▁and ▁this ▁is ▁fals e . ▁生活 的 真谛 是
▁Hi ▁Hello ▁Hi ▁Hello ▁Hello <s> ▁hi <s> ▁there
▁The ▁following ▁string ▁should ▁be ▁proper ly ▁en code d : ▁Hello . ▁But ▁i rd ▁and ▁ ป ▁i rd ▁ ด
▁Hey ▁how ▁are ▁you ▁do ing
""".split()
CHARACTERS = [*"▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789()!?'-_\\<>"]
PIECES = [piece for piece in dict.fromkeys(TOKENS + CHARACTERS) if piece not in UNKNOWN and piece not in SPECIAL]
VOCAB = [(piece, 0.0) for piece in SPECIAL] + [(piece, -9.0 if len(piece) == 1 else -4.0) for piece in PIECES]
IDS = {piece: number for number, (piece, _) in enumerate(VOCAB)}


class LineageXLNetTokenizationTest(common.TokenizerTesterMixin, unittest.TestCase):
    tokenizer_class = LineageXLNetTokenizer

    integration_expected_tokens = TOKENS
    integration_expected_token_ids: ClassVar[list[int]] = [IDS.get(token, IDS["<unk>"]) for token in TOKENS]
    integration_expected_decoded_text = (
        "This is a test <unk> I was born in 92000, and this is false. 生活的真谛是 "
        "Hi Hello Hi Hello Hello<s> hi<s> there "
        "The following string should be properly encoded: Hello. But ird and <unk> ird <unk> Hey how are you doing"
    )

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        LineageXLNetTokenizer(vocab=VOCAB).save_pretrained(folder.name)
        # many checks go through the names given here, and would check nothing if there were none
        cls.from_pretrained_id = folder.name
        super().setUpClass()
