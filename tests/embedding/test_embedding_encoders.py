import numpy as np
import pytest
import torch
from transformers import BertModel, GPT2Config, GPT2Model, T5Config, T5Model, XLMRobertaConfig, XLMRobertaModel

from hf_lineage import ElmoEmbedder, LineageXLNetConfig, LineageXLNetModel
from hf_lineage.embedding.encoders import TransformersEncoder, load_encoder
from hf_lineage.embedding.subwords import SubwordReader

SENTENCES = [["abc", "d", "jj"], ["a"], ["fghi", "b"]]


@pytest.fixture
def hidden(bert, word_pieces):
    """The model's layers for one sentence, `(layers, pieces, hidden_size)`, without special tokens."""

    def run(words):
        inputs = word_pieces([words], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            return torch.cat(bert(**inputs, output_hidden_states=True).hidden_states)[:, 1:-1].numpy()

    return run


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("layers", ["all", "top", "average"])
def test_words_are_made_of_their_pieces(bert, word_pieces, hidden, layers, pooling):
    encoder = TransformersEncoder(bert, word_pieces, layers, pooling)
    assert encoder.shape.of(5) == ((4, 5, 12) if layers == "all" else (5, 12))
    for words, found in zip(SENTENCES, encoder.encode(SENTENCES), strict=True):
        pieces = hidden(words)
        ends = np.cumsum([len(word) for word in words])
        starts = ends - [len(word) for word in words]
        expected = np.stack(
            [
                pieces[:, start:end].mean(1) if pooling == "mean" else pieces[:, start]
                for start, end in zip(starts, ends, strict=True)
            ],
            1,
        )
        expected = {"all": expected, "top": expected[-1], "average": expected.mean(0)}[layers]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_left_padding_changes_nothing(bert, word_pieces):
    expected = TransformersEncoder(bert, word_pieces).encode(SENTENCES)
    word_pieces.padding_side = "left"
    try:
        # the places of BERT's words would move with the padding: XLNet's are relative
        config = LineageXLNetConfig(vocab_size=24, d_model=12, n_layer=2, n_head=2, d_inner=16)
        model = LineageXLNetModel(config).eval()
        left = TransformersEncoder(model, word_pieces).encode(SENTENCES)
    finally:
        word_pieces.padding_side = "right"
    right = TransformersEncoder(model, word_pieces).encode(SENTENCES)
    for one, other, shape in zip(left, right, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert one.shape[1:] == shape.shape[1:]


def test_long_sentences_are_read_in_pieces(bert, word_pieces, hidden):
    encoder = TransformersEncoder(bert, word_pieces, "top")  # reads 12 pieces, 2 of them special
    words = ["abcd", "efgh", "ab", "c", "abcdefghijab", "jj"]
    (found,) = encoder.encode([words])
    assert found.shape == (6, 12)
    first, second = hidden(words[:3])[-1], hidden([words[3]])[-1]
    np.testing.assert_allclose(found[0], first[:4].mean(0), atol=1e-6)
    np.testing.assert_allclose(found[2], first[8:].mean(0), atol=1e-6)
    np.testing.assert_allclose(found[3], second[0], atol=1e-6)
    # a word that is too long itself loses its end
    np.testing.assert_allclose(found[4], hidden(["abcdefghij"])[-1].mean(0), atol=1e-6)


def test_words_of_no_pieces_are_unknown(word_pieces):
    (pieces,) = SubwordReader(word_pieces).read([["a", "\u200b", "", "b"]])
    assert pieces[0].inputs["input_ids"] == [2, 4, 1, 1, 5, 3]
    assert pieces[0].words == [None, 0, 1, 2, 3, None]


@pytest.mark.parametrize("model_class", [GPT2Model, T5Model, XLMRobertaModel])
def test_other_kinds_of_models(model_class, word_pieces):
    sizes = {"vocab_size": 24, "d_model": 8, "num_layers": 2, "num_heads": 2, "d_kv": 4, "d_ff": 8}
    config = {
        GPT2Model: lambda: GPT2Config(vocab_size=24, n_embd=8, n_layer=2, n_head=2, n_positions=16),
        T5Model: lambda: T5Config(**sizes),
        XLMRobertaModel: lambda: XLMRobertaConfig(
            vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8,
            max_position_embeddings=16, pad_token_id=0,
        ),
    }[model_class]()  # fmt: skip
    encoder = TransformersEncoder(model_class(config), word_pieces)
    long = ["a"] * 40
    found = encoder.encode([long, ["ab"]])
    assert [array.shape for array in found] == [(3, 40, 8), (3, 1, 8)]
    assert all(np.isfinite(array).all() for array in found)
    assert encoder.subwords.max_length == {GPT2Model: 16, T5Model: None, XLMRobertaModel: 15}[model_class]


def test_slow_tokenizers_give_the_same_pieces(word_pieces, monkeypatch):
    class Slow:
        """The methods that a tokenizer in Python has."""

        is_fast, pad_token, unk_token = False, "[PAD]", "[UNK]"
        tokenize, pad = word_pieces.tokenize, word_pieces.pad
        convert_tokens_to_ids = word_pieces.convert_tokens_to_ids
        num_special_tokens_to_add = word_pieces.num_special_tokens_to_add

        def prepare_for_model(self, ids, verbose):
            return {"input_ids": [2, *ids, 3], "attention_mask": [1] * (len(ids) + 2)}

        def get_special_tokens_mask(self, ids):
            return [1, *[0] * len(ids), 1]

    sentences = [*SENTENCES, ["a", ""], ["abc"] * 5]
    for max_length in (None, 7, 4):
        expected = SubwordReader(word_pieces, max_length).read(sentences)
        assert SubwordReader(Slow(), max_length).read(sentences) == expected


def test_models_are_loaded_by_their_type(elmo_folder, bert_folder, bert, word_pieces):
    found = load_encoder(str(elmo_folder), "mix").encode([["a", "b"]])
    assert np.array_equal(found[0], ElmoEmbedder.from_pretrained(elmo_folder, layers="mix").embed_sentence(["a", "b"]))
    found = load_encoder(str(bert_folder), pooling="first").encode(SENTENCES)
    for one, other in zip(
        found, TransformersEncoder(bert, word_pieces, pooling="first").encode(SENTENCES), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_what_is_refused(bert_folder, bert, word_pieces, tmp_path):
    for arguments, message in (
        ({"layers": "mix"}, "layers='mix' is ELMo's; this is a model of the type 'bert'"),
        ({"layers": "x"}, "layers must be one of"),
        ({"pooling": "last"}, "pooling must be one of mean, first, got 'last'"),
        ({"vocabulary_cache": "a.hdf5"}, "only ELMo has a vocabulary cache"),
    ):
        with pytest.raises(ValueError, match=message):
            load_encoder(str(bert_folder), **arguments)
    with pytest.raises(ValueError, match="reads only 2 tokens"):
        SubwordReader(word_pieces, 2)
    kept = {name: value for name, value in bert.state_dict().items() if "layer.1" not in name}
    BertModel(bert.config).save_pretrained(tmp_path, state_dict=kept)
    word_pieces.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"lacks weights, so its vectors would be random: encoder\.layer\.1"):
        load_encoder(str(tmp_path))
