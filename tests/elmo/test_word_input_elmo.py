import h5py
import numpy as np
import pytest
import torch
from reference_elmo import layers as reference_layers
from reference_elmo import random_arrays, token_vector
from transformers import AutoModel, AutoTokenizer

from hf_lineage import ElmoConfig, ElmoModel, convert_elmo_checkpoint, export_elmo_checkpoint
from hf_lineage.elmo.convert_elmo import TOKEN_CACHE, convert_elmo_files, convert_elmo_source
from hf_lineage.elmo.word_input_elmo import convert_token_embeddings

# in no particular order, more than the numbers below the reserved ones
WORDS = ["the", "</S>", "北京", "<UNK>", *(f"w{number}" for number in range(300)), "<S>", "<pad>", "a" * 60, "a" * 70]


@pytest.fixture
def cached(options, write_checkpoint, tmp_path):
    """Files of a model with the token embeddings of `WORDS`, and its arrays."""
    arrays = random_arrays(options)
    options_file, weight_file = write_checkpoint(options, arrays)
    with h5py.File(tmp_path / "cache.hdf5", "w") as file:
        file["embedding"] = np.array([token_vector(arrays, options, word) for word in WORDS], dtype=np.float32)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    return options_file, weight_file, tmp_path / "cache.hdf5", tmp_path / "vocab.txt", arrays


@torch.no_grad()
def layers_of(model, tokenizer, sentence):
    inputs = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
    return torch.cat(model(**inputs, output_hidden_states=True).hidden_states).numpy()


def test_cached_vectors_give_what_characters_give(cached, options, tmp_path):
    *files, arrays = cached
    model, tokenizer = convert_token_embeddings(*files)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model, tokenizer = AutoModel.from_pretrained(tmp_path / "model"), AutoTokenizer.from_pretrained(tmp_path / "model")
    sentence = ["the", "北京", "w299", "<pad>", "w7", "a" * 60, "a" * 70]
    found = layers_of(model, tokenizer, sentence)
    np.testing.assert_allclose(found, reference_layers(arrays, options, sentence)[:, 1:-1], atol=1e-5, rtol=1e-4)
    # a word that is not in the vocabulary is <UNK>, as in bilm-tf
    assert np.array_equal(layers_of(model, tokenizer, ["unheard"]), layers_of(model, tokenizer, ["<UNK>"]))
    ids = tokenizer([["北京", "unheard"]], is_split_into_words=True).input_ids[0]
    assert tokenizer.convert_ids_to_tokens(ids) == ["北京", "unheard"]


def test_the_cache_that_tensorflow_wrote(shared):
    folder = shared / "fixtures/elmo/allennlp"
    converted = convert_elmo_source(
        folder, folder / "vocab_test.txt", token_embeddings=folder / "elmo_token_embeddings.hdf5"
    )
    assert converted.format == TOKEN_CACHE
    whole = convert_elmo_source(folder)
    assert any("elmo_token_embeddings.hdf5 holds token embeddings" in note for note in whole.notes)
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    sentence = [word for word in words if not word.startswith("<")][:40]
    found = layers_of(converted.model, converted.tokenizer, sentence)
    np.testing.assert_allclose(found, layers_of(whole.model, whole.tokenizer, sentence), atol=5e-6, rtol=1e-5)
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        table = file["embedding"][...]
    assert np.array_equal(found[0, :, :16], table[[words.index(word) for word in sentence]])


def test_a_model_that_was_trained_on_words(options, write_checkpoint, tmp_path):
    arrays = {name: array for name, array in random_arrays(options).items() if name.startswith("RNN_")}
    del options["char_cnn"]
    words = ["<S>", "</S>", "<UNK>", "one", "two"]
    arrays["embedding"] = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    options_file, weight_file = write_checkpoint(options, arrays)
    with pytest.raises(ValueError, match="no 'char_cnn': the model reads words, so give its vocabulary"):
        convert_elmo_checkpoint(options_file, weight_file)
    (tmp_path / "words.txt").write_text("\n".join(words))
    converted = convert_elmo_files(options_file, weight_file, tmp_path / "words.txt", weight_file)
    found = layers_of(converted.model, converted.tokenizer, ["two", "one"])
    assert np.array_equal(found[0, :, :6], arrays["embedding"][[4, 3]])
    with pytest.raises(ValueError, match="dictionary of characters or words"):
        export_elmo_checkpoint(converted.model, tmp_path / "o.json", tmp_path / "w.hdf5")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<S>\n</S>\nx", "no line <UNK>"),
        ("<S>\n</S>\n<UNK>\nx\nx", "the word 'x' more than once"),
        ("<S>\n</S>\n<UNK>\nx", r"shape \(308, 6\), but .*vocab.txt has 4 words and the options say .*: 6"),
    ],
)
def test_a_vocabulary_that_does_not_belong_is_refused(content, message, cached):
    options_file, weight_file, cache, vocabulary, _ = cached
    vocabulary.write_text(content)
    with pytest.raises(ValueError, match=message):
        convert_token_embeddings(options_file, weight_file, cache, vocabulary)


def test_other_files_for_the_cache_are_refused(cached):
    options_file, weight_file, _, vocabulary, _ = cached
    with pytest.raises(ValueError, match="has no dataset 'embedding', it has CNN/W_cnn_0"):
        convert_token_embeddings(options_file, weight_file, weight_file, vocabulary)
    with pytest.raises(ValueError, match="not a complete HDF5 file"):
        convert_token_embeddings(options_file, weight_file, vocabulary, vocabulary)
    with pytest.raises(ValueError, match=r"needs the vocabulary whose words it has vectors of"):
        convert_elmo_files(options_file, weight_file, token_embeddings=weight_file)


@pytest.mark.parametrize("fields", [{"char_embedding_size": 0}, {}, {"char_vocabulary": "dictionary"}])
def test_distinct_tokens_are_encoded_as_each_by_itself(fields, tiny):
    config = tiny(word_embedding_size=5, word_vocab_size=300, max_characters_per_token=9, **fields)
    encoder = ElmoModel(config).eval().character_encoder
    ids = torch.cat([torch.randint(0, 262, (4, 6, 9)), torch.randint(0, 300, (4, 6, 1))], -1)
    ids[2:] = ids[:2]
    ids[..., 4:9] = 261
    torch.testing.assert_close(encoder(ids), encoder.encode(ids), atol=1e-6, rtol=0)
    other = ids.clone()
    other[0, 0, -1] = (ids[0, 0, -1] + 1) % 300  # the same characters, another word
    assert not torch.equal(encoder(ids)[0, 0], encoder(other)[0, 0])


def test_pairs_and_padding_change_no_vector(cached):
    *files, _ = cached
    model, tokenizer = convert_token_embeddings(*files, pair_encoding="separate")
    single = layers_of(model, tokenizer, ["w1", "the"])[-1]
    inputs = tokenizer(
        [(["w1", "the"], ["w5", "w6", "w7"]), (["w9"], ["w1", "the"])],
        is_split_into_words=True,
        padding=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        top = model(**inputs, output_hidden_states=True).hidden_states[-1].numpy()
    np.testing.assert_allclose(top[0, :2], single, atol=1e-6)
    np.testing.assert_allclose(top[1, 1:3], single, atol=1e-6)


def test_inputs_out_of_range_are_refused(cached):
    *files, _ = cached
    model, tokenizer = convert_token_embeddings(*files)
    ids = tokenizer([["w1"]], is_split_into_words=True, return_tensors="pt").input_ids
    for wrong, message in (
        (ids[..., :-1], "50 characters and a word a token, got 50"),
        (ids.masked_fill(ids == ids[0, 0, -1], 10_000), "char_vocab_size=262|word_vocab_size=[0-9]+.*10000"),
    ):
        with pytest.raises(ValueError, match=message):
            model(wrong)
    assert isinstance(model.get_input_embeddings(), torch.nn.Embedding)
    with pytest.raises(ValueError, match="both 0"):
        ElmoConfig(char_embedding_size=0)
