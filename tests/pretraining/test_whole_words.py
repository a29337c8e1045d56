import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_tokenizers import byte_level, unigram, word_level, wordpiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_lineage.pretraining.whole_words import WholeWords


def words_of(tokenizer, text: str) -> list[str]:
    input_ids = np.array(tokenizer(text, add_special_tokens=False)["input_ids"])
    starts = WholeWords(tokenizer).starts(input_ids, np.ones(len(input_ids), dtype=bool))
    words: list[str] = []
    for piece, start in zip(tokenizer.convert_ids_to_tokens(input_ids.tolist()), starts, strict=True):
        words += [piece] if start else []
        if not start:
            words[-1] += "+" + piece
    return words


def tokenizer_of(model, pre_tokenizer=None, normalizer=None, decoder=None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(model)
    for name, part in (("pre_tokenizer", pre_tokenizer), ("normalizer", normalizer), ("decoder", decoder)):
        if part is not None:
            setattr(tokenizer, name, part)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def byte_pairs(pieces, **options):
    return models.BPE({piece: number for number, piece in enumerate(pieces)}, [], **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the quick fox", ["▁the", "▁quick", "▁fox"]),
        ("unbelievably", ["▁un+believ+ably"]),
        ("reenter re-enter", ["▁re+enter", "▁re", "-", "enter"]),
        ("1984", ["▁19", "84"]),
        ("the.", ["▁the", "."]),
        ("(the)", ["▁+(", "t+h+e", ")"]),
        ("don's", ["▁don", "'s"]),
        ("中国人", ["▁+中", "国", "人"]),
        ("the中re", ["▁the", "中", "r+e"]),
        ("ไทยไทย", ["▁+ไทย", "ไทย"]),
        ("3d", ["▁+3", "d"]),
    ],
)
def test_sentencepiece(text, words):
    assert words_of(unigram(), text) == words


def test_letters_of_other_alphabets_continue_a_word():
    vocabulary = [("<unk>", -9.0), ("▁стра", -1.0), ("ße", -1.0), ("на", -1.0), ("▁Stra", -1.0), ("́", -1.0)]
    tokenizer = tokenizer_of(models.Unigram(vocabulary, unk_id=0), pre_tokenizers.Metaspace())
    assert words_of(tokenizer, "страна́ Straße") == ["▁стра+на+́", "▁Stra+ße"]


def test_wordpiece():
    words = words_of(wordpiece(), "Unbelievably quick, re-entered 1984 中国人!")
    assert [word.replace("+##", "") for word in words] == "unbelievably quick , re - entered 1984 中 国 人 !".split()
    assert any("+##" in word for word in words)


def test_wordpiece_of_a_script_without_spaces():
    pieces = ["[UNK]", "中", "##国", "##人", "a", "##b", "##1"]
    model = models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer = tokenizer_of(model, pre_tokenizers.WhitespaceSplit())
    assert words_of(tokenizer, "中国人 ab1") == ["中", "##国", "##人", "a+##b+##1"]


def test_byte_level():
    tokenizer = byte_level()
    words = words_of(tokenizer, "the foxes re-entered, didn't they? caféé 1 привет 中国x")
    decoded = [tokenizer.convert_tokens_to_string(word.split("+")) for word in words]
    assert decoded == "the| foxes| re|-|entered|,| didn|'t| they|?| caféé| 1| привет| 中|国x".split("|")


def test_byte_fallback_keeps_characters_together():
    pieces = ["<unk>", "▁a", "b", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocabulary = [(piece, -1.0) for piece in pieces]
    tokenizer = tokenizer_of(models.Unigram(vocabulary, unk_id=0, byte_fallback=True), pre_tokenizers.Metaspace())
    assert words_of(tokenizer, "ab中中") == ["▁a+b", "<0xE4>+<0xB8>+<0xAD>", "<0xE4>+<0xB8>+<0xAD>"]


def test_mark_at_the_end_of_words():
    tokenizer = tokenizer_of(byte_pairs(["a", "b", "a</w>", "b</w>"], end_of_word_suffix="</w>"))
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert words_of(tokenizer, "ab b aab") == ["a+b</w>", "b</w>", "a+a+b</w>"]


def test_mark_set_by_a_normalizer():
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer = tokenizer_of(byte_pairs(["▁", "a", "b", "c"]), normalizer=normalizer)
    assert words_of(tokenizer, "ab c") == ["▁+a+b", "▁+c"]
    tokenizer = tokenizer_of(
        byte_pairs(["_", "a", "b"]), pre_tokenizers.Metaspace("_"), decoder=decoders.Metaspace("_")
    )
    assert words_of(tokenizer, "ab b") == ["_+a+b", "_+b"]


def test_words_without_marks():
    assert words_of(word_level(5), "w1 w2 w4") == ["w1", "w2", "w4"]


class Vocabulary:
    """A tokenizer that knows nothing of its pieces but their names."""

    def __init__(self, pieces):
        self.pieces, self.added_tokens_decoder, self.all_special_ids = pieces, {}, []

    def get_vocab(self):
        return {piece: number for number, piece in enumerate(self.pieces)}


@pytest.mark.parametrize(
    ("pieces", "starts"),
    [
        (["▁a", "b", "▁c", "d"], [1, 0, 1, 0]),
        (["a", "##b", "##c", "d"], [1, 0, 0, 1]),
        (["Ġa", "b", "Ġc", "d"], [1, 0, 1, 0]),
        (["a", "b</w>", "c", "d</w>"], [1, 0, 1, 0]),
        (["a", "b", "c", "d"], [1, 1, 1, 1]),
    ],
)
def test_a_tokenizer_without_a_pipeline_is_judged_by_its_vocabulary(pieces, starts):
    words = WholeWords(Vocabulary(pieces))
    assert words.starts(np.arange(4), np.ones(4, dtype=bool)).tolist() == [bool(start) for start in starts]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_word_never_reaches_over_a_gap(data):
    tokenizer = data.draw(st.sampled_from([unigram(), wordpiece(), byte_level()]))
    words = WholeWords(tokenizer)
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 12)))
    size = shape[0] * shape[1]
    input_ids = np.array(data.draw(st.lists(st.integers(0, len(words) - 1), min_size=size, max_size=size))).reshape(
        shape
    )
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(shape)
    starts = words.starts(input_ids, inside)
    assert not (starts & ~inside).any()
    after_gap = inside.copy()
    after_gap[:, 1:] &= ~inside[:, :-1]
    assert starts[after_gap].all()
    for row in range(shape[0]):  # rows do not know of each other
        assert (words.starts(input_ids[row], inside[row]) == starts[row]).all()
