import json

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage import ElmoConfig, ElmoEmbedder, ElmoForSequenceClassification, ElmoModel, ElmoTokenizer
from hf_lineage.elmo.vocabulary_cache_elmo import write_vocabulary_cache
from hf_lineage.elmo.word_input_elmo import tokenizer_of_dictionaries

SENTENCES = [["A", "first", "sentence", "."], [], ["Ünïcödé", "x" * 80, "漢字"], ["a"], ["A", "sentence", "<S>", ""]]


@pytest.fixture
def model(tiny):
    model = ElmoModel(tiny()).eval()
    torch.nn.init.normal_(model.scalar_mixes[0].weights)
    return model


@pytest.fixture
def model_outputs(model, tokenizer):
    """What the model itself gives for a sentence."""

    def run(sentence):
        inputs = tokenizer([sentence], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            return model(**inputs, output_hidden_states=True)

    return run


@pytest.mark.parametrize("layers", ["all", "top", "average", "mix"])
@pytest.mark.parametrize("max_batch_tokens", [1, 12, 2048])
def test_vectors_are_those_of_the_model(model, model_outputs, layers, max_batch_tokens):
    embedder = ElmoEmbedder(model, layers=layers, max_batch_tokens=max_batch_tokens)
    found = embedder.embed_batch(SENTENCES)
    streamed = list(embedder.embed_sentences(iter(SENTENCES)))
    for sentence, vectors, again in zip(SENTENCES, found, streamed, strict=True):
        shape = (3, len(sentence), 16) if layers == "all" else (len(sentence), 16)
        assert (vectors.shape, vectors.dtype) == (shape, np.float32)
        assert np.array_equal(vectors, again)
        alone = embedder.embed_sentence(sentence)
        np.testing.assert_allclose(alone, vectors, atol=1e-6)
        if sentence:
            output = model_outputs(sentence)
            stacked = torch.cat(output.hidden_states)
            expected = {
                "all": stacked, "top": stacked[-1], "average": stacked.mean(0), "mix": output.last_hidden_state[0],
            }[layers]  # fmt: skip
            np.testing.assert_allclose(vectors, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("layers", ["all", "mix"])
def test_half_precision_is_near(model, tmp_path, layers):
    model.save_pretrained(tmp_path)
    ElmoTokenizer().save_pretrained(tmp_path)
    half = ElmoEmbedder.from_pretrained(tmp_path, dtype=torch.bfloat16, layers=layers)
    assert half.model.dtype == torch.bfloat16
    exact = ElmoEmbedder.from_pretrained(tmp_path, layers=layers)
    assert exact.model.dtype == torch.float32
    for vectors, expected in zip(half.embed_batch(SENTENCES), exact.embed_batch(SENTENCES), strict=True):
        assert vectors.dtype == np.float32
        assert not vectors.size or 0 < np.linalg.norm(vectors - expected) < 0.02 * np.linalg.norm(expected)


def test_a_sentence_alone_has_the_same_vectors_whatever_was_read_before(tiny):
    model = ElmoModel(tiny(stateful=True, keep_sentence_boundaries=True))
    embedder = ElmoEmbedder(model)
    before = embedder.embed_sentence(SENTENCES[0])
    embedder.embed_batch(SENTENCES[2:])
    assert np.array_equal(embedder.embed_sentence(SENTENCES[0]), before)


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.lists(st.sampled_from(["a", "bb", "the", "漢", "words" * 3]), max_size=5), min_size=1, max_size=4),
        min_size=1, max_size=5,
    ),
    cache_size=st.integers(0, 6),
)  # fmt: skip
def test_remembering_words_changes_no_bit(batches, cache_size):
    torch.manual_seed(0)
    config = ElmoConfig(hidden_size=16, lstm_hidden_size=12, char_cnn_filters=[[1, 30], [3, 70]], num_highway_layers=1)
    model = ElmoModel(config)
    plain, remembering = ElmoEmbedder(model, cache_size=0), ElmoEmbedder(model, cache_size=cache_size)
    seen = 0
    for batch in batches:
        for one, other in zip(plain.embed_batch(batch), remembering.embed_batch(batch), strict=True):
            assert np.array_equal(one, other)
        words = {word for sentence in batch for word in sentence}
        seen += len(words) + 2 if words else 0
        assert len(remembering.word_vectors) <= cache_size
    assert remembering.cache_statistics.lookups == seen
    assert plain.cache_statistics.hit_rate == 0


def test_the_hit_rate_counts_distinct_words_of_batches(model):
    embedder = ElmoEmbedder(model, cache_size=4)
    embedder.embed_batch([["a", "b", "a"]])  # a, b and the two boundaries
    statistics = embedder.cache_statistics
    assert (statistics.misses, statistics.cache_hits, statistics.hit_rate) == (4, 0, 0.0)
    embedder.embed_batch([["b", "c"]])  # c takes the place of a, which was needed least lately
    assert (statistics.misses, statistics.cache_hits) == (5, 3)
    embedder.embed_batch([["b", "a"]])
    assert (statistics.misses, statistics.cache_hits) == (6, 6)
    assert statistics.hit_rate == 0.5
    embedder.clear_cache()
    assert (embedder.cache_statistics.lookups, len(embedder.word_vectors)) == (0, 0)


def test_generators_are_read_window_by_window(model):
    read = []

    def stream():
        for number in range(1000):
            read.append(number)
            yield ["a", "b"]

    generator = ElmoEmbedder(model, max_batch_tokens=8).embed_sentences(stream())
    assert next(generator).shape == (3, 2, 16)
    assert len(read) < 100


def test_the_original_outputs(shared):
    """TensorFlow's vectors of the first batch, before it carries states on."""
    folder = shared / "fixtures" / "elmo" / "allennlp"
    embedder = ElmoEmbedder.from_original(folder / "options.json", folder / "lm_weights.hdf5", layers="top")
    texts = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    found = embedder.embed_batch([sentences[0].split() for sentences in texts])
    for number, vectors in enumerate(found):
        with h5py.File(folder / f"lm_embeddings_{number}.hdf5") as file:
            expected = np.concatenate(file["0"][...], -1)
        np.testing.assert_allclose(vectors, expected, atol=1e-6, rtol=1e-5)


def test_a_saved_model(model, tmp_path):
    model.save_pretrained(tmp_path)
    ElmoTokenizer().save_pretrained(tmp_path)
    found = ElmoEmbedder.from_pretrained(tmp_path, layers="mix").embed_sentence(SENTENCES[0])
    assert np.array_equal(found, ElmoEmbedder(model, layers="mix").embed_sentence(SENTENCES[0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": "both"}, "layers must be one of all, top, average, mix, got 'both'"),
        ({"max_batch_tokens": 0}, "max_batch_tokens must be at least 1, got 0"),
        ({"cache_size": -1}, "cache_size must be at least 0, got -1"),
        ({"vocab_file": "vocab.txt"}, "give that too"),
        ({"tokenizer": ElmoTokenizer(max_characters_per_token=20)}, "rows of 50 characters, got 20"),
    ],
)
def test_arguments_that_are_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        ElmoEmbedder(model, **arguments)


def test_models_and_sentences_that_are_refused(model, tiny):
    with pytest.raises(ValueError, match="must be an ElmoModel, got ElmoForSequenceClassification"):
        ElmoEmbedder(ElmoForSequenceClassification(tiny()))
    with pytest.raises(ValueError, match="scalar_mix_layer_norm='bilm' would make the vectors of a sentence depend"):
        ElmoEmbedder(ElmoModel(tiny(scalar_mix_layer_norm="bilm")), layers="mix")
    with pytest.raises(ValueError, match="with a scalar mix"):
        ElmoEmbedder(ElmoModel(tiny(), add_scalar_mix=False), layers="mix")
    for sentence in ("a string", [1], [["a"]]):
        with pytest.raises(ValueError, match="a sentence must be a list of words"):
            ElmoEmbedder(model).embed_sentence(sentence)


INPUTS = {
    "characters of a dictionary": {"char_vocab_size": 300, "char_vocabulary": "dictionary"},
    "words": {"char_embedding_size": 0, "word_vocab_size": 300, "word_embedding_size": 5},
    "words as they are projected": {"char_embedding_size": 0, "word_vocab_size": 300, "word_embedding_size": 8},
    "both": {
        "char_vocab_size": 300,
        "char_vocabulary": "dictionary",
        "word_vocab_size": 300,
        "word_embedding_size": 5,
    },
    "words for static vectors": {"word_vocab_size": 300, "static_embedding_size": 7},
}


@pytest.fixture
def dictionaries(tiny):
    """Makes a model that reads dictionaries, and its tokenizer."""

    def make(fields):
        config = tiny(**fields)
        characters = words = None
        if config.char_vocabulary == "dictionary":
            characters = {"<UNK>": 1, "a": 2, "漢": 262, "x": 299, "ü": 7}
        if config.word_vocab_size:
            words = {"<UNK>": 1, "A": 2, "a": 262, "sentence": 299}
        torch.manual_seed(0)
        return ElmoModel(config).eval(), tokenizer_of_dictionaries(config, characters, words)

    return make


@pytest.mark.parametrize("inputs", INPUTS)
def test_models_with_dictionaries(inputs, dictionaries):
    model, tokenizer = dictionaries(INPUTS[inputs])
    sentences = [sentence for sentence in SENTENCES if sentence]
    embedder = ElmoEmbedder(model, tokenizer, cache_size=4)
    for sentence, vectors in zip(sentences, embedder.embed_batch(sentences), strict=True):
        ids = tokenizer([sentence], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            expected = torch.cat(model(**ids, output_hidden_states=True).hidden_states)
        np.testing.assert_allclose(vectors, expected.numpy(), atol=1e-6)
        assert np.array_equal(
            embedder.embed_sentence(sentence), ElmoEmbedder(model, tokenizer).embed_sentence(sentence)
        )


@pytest.mark.parametrize("suffix", [".hdf5", ".safetensors"])
def test_a_vocabulary_cache_of_a_model_with_dictionaries(suffix, dictionaries, tmp_path):
    model, tokenizer = dictionaries(INPUTS["both"])
    path = tmp_path / f"cache{suffix}"
    write_vocabulary_cache(model, tokenizer, ["A", "sentence", "漢字"], path)
    cached = ElmoEmbedder(model, tokenizer, vocabulary_cache=path)
    for sentence in SENTENCES:
        assert np.array_equal(cached.embed_sentence(sentence), ElmoEmbedder(model, tokenizer).embed_sentence(sentence))
    assert cached.cache_statistics.vocabulary_hits > 0


@pytest.mark.parametrize(
    ("inputs", "others", "message"),
    [
        ("characters of a dictionary", None, "dictionary of characters, so give its own"),
        ("words", None, "dictionary of words, so give its own"),
        ("words for static vectors", None, "dictionary of words, so give its own"),
        ("both", "characters of a dictionary", "dictionary of words, so give its own"),
        ("characters of a dictionary", "both", "tokenizer has a dictionary of words, the model has none"),
        ("bytes", "characters of a dictionary", "tokenizer has a dictionary of characters, the model reads bytes"),
        ("fewer words", "words", "has 262 rows for its dictionary of words, that of the tokenizer needs 300"),
    ],
)
def test_a_tokenizer_of_other_dictionaries_is_refused(inputs, others, message, dictionaries):
    fields = {**INPUTS, "bytes": {}, "fewer words": {**INPUTS["words"], "word_vocab_size": 262}}
    model, _ = dictionaries(fields[inputs])
    tokenizer = None if others is None else dictionaries(fields[others])[1]
    with pytest.raises(ValueError, match=message):
        ElmoEmbedder(model, tokenizer)
