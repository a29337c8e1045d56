"""What holds for the tokenizers of all families, on any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from tokenizer_training.byte_bpe import train_gpt_tokenizer
from tokenizer_training.elmo import train_elmo_tokenizer
from tokenizer_training.text import TextLines
from tokenizer_training.unigram import train_albert_tokenizer, train_xlnet_tokenizer
from tokenizer_training.wordpiece import train_bert_tokenizer
from tokenizer_training.words import train_word_tokenizer

FAMILIES = {
    "elmo": (train_elmo_tokenizer, None),
    "albert": (train_albert_tokenizer, 48),
    "xlnet": (train_xlnet_tokenizer, 55),
    "bert": (train_bert_tokenizer, 80),
    "gpt": (train_gpt_tokenizer, 290),
    "words": (train_word_tokenizer, None),
}
LINES = [f"Do n't {a}{b}, in 2013: {b}{a} 却说曹操 (Été)." for a in ("ka", "to", "mi") for b in ("su", "no", "re")]
# letters, marks, signs and everything else, what the training text has among it
texts = st.lists(
    st.one_of(st.text(st.characters(codec="utf-8"), max_size=4), st.sampled_from([*LINES[0].split(), *"曹 ,`'\t"])),
    max_size=10,
).map("".join)


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory):
    train, size = FAMILIES[request.param]
    if request.param in ("albert", "xlnet"):
        pytest.importorskip("sentencepiece", reason="needs the extra tokenizers")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text.txt").write_text("\n".join(LINES * 3), encoding="utf-8")
    options = {} if size is None else {"vocab_size": size}
    tokenizer, _ = train(TextLines([folder / "text.txt"], held_out=0), folder / "out", **options)
    return tokenizer, AutoTokenizer.from_pretrained(folder / "out")


@settings(max_examples=150, deadline=None)
@given(text=texts)
def test_any_text_has_ids_and_places_within_bounds(trained, text):
    tokenizer, loaded = trained
    encoded = loaded(text, return_offsets_mapping=True, add_special_tokens=False)
    assert encoded["input_ids"] == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(encoded["offset_mapping"]) == len(encoded["input_ids"])
    assert all(0 <= start <= end <= len(text) for start, end in encoded["offset_mapping"])
    assert isinstance(loaded.decode(encoded["input_ids"]), str)


def test_places_of_the_training_text(trained):
    _, loaded = trained
    for line in LINES:
        offsets = loaded(line, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        assert "".join(line[start:end] for start, end in dict.fromkeys(offsets)).replace(" ", "") in (
            line.replace(" ", ""),
            line,
        )
