import gzip
import json

import h5py
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from hf_lineage import ElmoEmbedder, ElmoModel, ElmoTokenizer
from hf_lineage.elmo.conversion_elmo import convert_elmo_checkpoint
from hf_lineage.elmo.vocabulary_cache_elmo import VocabularyCache, read_words, write_vocabulary_cache
from hf_lineage.elmo.word_vectors_elmo import WordEncoder

WORDS = ["<S>", "</S>", "<UNK>", "the", "of", "Ünïcödé", "x" * 70, "漢字", *(f"word{number}" for number in range(60))]


@pytest.fixture
def model(tiny):
    return ElmoModel(tiny()).eval()


@pytest.mark.parametrize("suffix", [".hdf5", ".safetensors"])
def test_vectors_from_the_file_are_those_from_characters_to_the_bit(model, tokenizer, suffix, tmp_path):
    path = tmp_path / f"cache{suffix}"
    write_vocabulary_cache(model, tokenizer, WORDS, path)
    plain, cached = ElmoEmbedder(model, cache_size=0), ElmoEmbedder(model, cache_size=0, vocabulary_cache=path)
    for sentence in (["the", "unseen", "of"], ["漢字"], WORDS, ["unseen"]):
        assert np.array_equal(plain.embed_sentence(sentence), cached.embed_sentence(sentence))
    statistics = cached.cache_statistics
    assert (statistics.misses, statistics.vocabulary_hits) == (2, 4 + 3 + len(WORDS) + 2)


def test_the_file_is_what_bilm_tf_reads(model, tokenizer, tmp_path):
    path, done = tmp_path / "cache.hdf5", []
    write_vocabulary_cache(model, tokenizer, WORDS, path, done.append)
    assert sum(done) == len(WORDS)
    with h5py.File(path) as file:
        assert (file["embedding"].shape, file["embedding"].dtype) == ((len(WORDS), 8), np.float32)
        rows = file["embedding"][...]
    ids = tokenizer([WORDS], is_split_into_words=True, return_tensors="pt").input_ids[0]
    with torch.no_grad():
        np.testing.assert_allclose(rows, model.character_encoder(ids).numpy(), atol=1e-6)


def test_the_original_word_vectors(shared):
    folder = shared / "fixtures" / "elmo" / "allennlp"
    model = convert_elmo_checkpoint(folder / "options.json", folder / "lm_weights.hdf5")
    words = read_words(folder / "vocab_test.txt")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    computed = WordEncoder(model.character_encoder, ElmoTokenizer())(words)
    np.testing.assert_allclose(computed.numpy(), expected, atol=1e-6, rtol=1e-5)
    # bilm-tf's file has no words
    arguments = {"vocabulary_cache": folder / "elmo_token_embeddings.hdf5", "vocab_file": folder / "vocab_test.txt"}
    embedder = ElmoEmbedder(model, **arguments)
    np.testing.assert_allclose(embedder.embed_sentence(words[:3])[0, :, :16], expected[:3], atol=1e-6, rtol=1e-5)
    assert embedder.cache_statistics.vocabulary_hits >= 3
    with pytest.raises(ValueError, match="does not hold its words"):
        VocabularyCache(folder / "elmo_token_embeddings.hdf5")


@pytest.mark.parametrize(
    "fields",
    [
        {},  # its small projection rounds a row by its place, on some machines
        {"char_cnn_filters": [[1, 32], [3, 64]], "hidden_size": 128},
        {"char_cnn_filters": [[1, 32], [7, 224]], "num_highway_layers": 2, "hidden_size": 512},
    ],
)
def test_a_word_has_the_same_vector_in_every_company(fields, tiny, tokenizer):
    encode = WordEncoder(ElmoModel(tiny(**fields)).character_encoder, tokenizer)
    alone = torch.cat([encode([word]) for word in WORDS])
    for number in (1, 31, 32, 33, 64, 68):
        for _ in range(3):
            order = torch.randperm(len(WORDS))[:number]
            assert torch.equal(encode([WORDS[place] for place in order]), alone[order])


def test_compressed_tables_and_vocabularies(model, tokenizer, tmp_path):
    write_vocabulary_cache(model, tokenizer, WORDS, tmp_path / "cache.hdf5")
    with h5py.File(tmp_path / "cache.hdf5") as file:
        rows = file["embedding"][...]
    with h5py.File(tmp_path / "packed.h5", "w") as file:
        file.create_dataset("embedding", data=rows, compression="gzip")
    (tmp_path / "vocab.txt.gz").write_bytes(gzip.compress("\n".join(WORDS).encode()))
    cache = VocabularyCache(tmp_path / "packed.h5", tmp_path / "vocab.txt.gz")
    assert len(cache) == len(WORDS)
    assert "the" in cache
    assert "unseen" not in cache
    np.testing.assert_array_equal(cache.vectors(["漢字", "the"]).numpy(), rows[[7, 3]])


def test_caches_that_are_refused(model, tiny, tokenizer, tmp_path):
    path = tmp_path / "cache.safetensors"
    write_vocabulary_cache(model, tokenizer, WORDS, path)
    with pytest.raises(ValueError, match="computed with other weights"):
        ElmoEmbedder(ElmoModel(tiny()), vocabulary_cache=path)
    with pytest.raises(ValueError, match="has vectors of 8, the model's have 4"):
        ElmoEmbedder(ElmoModel(tiny(hidden_size=8)), vocabulary_cache=path)
    save_file({"embedding": load_file(path)["embedding"][:-1]}, path, {"words": json.dumps(WORDS)})
    with pytest.raises(ValueError, match=f"has {len(WORDS) - 1} vectors, its vocabulary {len(WORDS)} words"):
        VocabularyCache(path)
    save_file({"other": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="no tensor 'embedding'"):
        VocabularyCache(path)
    (tmp_path / "a.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="is not a complete HDF5 file"):
        VocabularyCache(tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["embedding"] = np.zeros(3)
    with pytest.raises(ValueError, match="no dataset 'embedding' with a vector for each word"):
        VocabularyCache(tmp_path / "a.hdf5")
    with pytest.raises(ValueError, match=r"no file .*absent"):
        VocabularyCache(tmp_path / "absent.hdf5")
    with pytest.raises(ValueError, match=r"must end in \.hdf5, \.h5, \.safetensors, got .*a\.txt"):
        VocabularyCache(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "has no words"), ("a\n\nb", "line 2 is blank"), ("a\nb\na\n", "'a' in line 1 and again in line 3")],
)
def test_vocabularies_that_are_refused(text, message, tmp_path):
    (tmp_path / "vocab.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_words(tmp_path / "vocab.txt")
