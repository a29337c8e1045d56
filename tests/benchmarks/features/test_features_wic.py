import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.features.language_model import LayerCache, load_model
from benchmarks.features.wic import WordPairs, best_threshold, cosine, load_word_pairs, measure, word_vectors
from hf_lineage import ElmoModel


def test_words_are_found_and_rows_without_them_dropped(wic_folder):
    train, validation = load_word_pairs(wic_folder)
    assert (len(train.labels), train.dropped, len(validation.labels)) == (59, 1, 11)
    assert train.lemmas[0] == "word1"
    assert train.sentences[:2] == [["the", "river", "word1", "."], ["a", "money", "word1", "."]]
    assert train.targets[:2] == [[2], [2]]
    assert train.labels[:4].tolist() == [False, True, False, True]


def test_wrong_data_is_refused(wic_folder, pos_folder, tmp_path):
    with pytest.raises(ValueError, match=r"must have train\.parquet and one of validation\.parquet"):
        load_word_pairs(tmp_path)
    with pytest.raises(ValueError, match="must have the columns label and"):
        load_word_pairs(pos_folder / "grammar")


def test_vectors_are_those_of_the_word(model_folder, wic_folder):
    train, _ = load_word_pairs(wic_folder)
    model, tokenizer = load_model(ElmoModel, model_folder, False, 1)
    cache = LayerCache.of(model, tokenizer, train.sentences)
    vectors = word_vectors(cache, train)
    assert list(vectors) == ["context-free", "layer 1", "layer 2", "mean of layers"]
    for place, name in enumerate(list(vectors)[:3]):
        expected = cache.sentence(3)[2, place].numpy()
        np.testing.assert_array_equal(vectors[name][1, 1], expected)
    np.testing.assert_allclose(
        vectors["mean of layers"], np.mean([vectors[name] for name in list(vectors)[:3]], axis=0), atol=1e-6
    )
    # the same word has the same vector without its context, and others within it
    np.testing.assert_allclose(cosine(vectors["context-free"]), 1, atol=1e-6)
    assert cosine(vectors["layer 2"]).min() < 0.9999
    several = WordPairs(train.lemmas[:1], train.sentences[:2], [[1, 2], [0]], train.labels[:1], 0)
    expected = cache.sentence(0)[1:3, 1].numpy().mean(0)
    np.testing.assert_allclose(word_vectors(cache, several)["layer 1"][0, 0], expected, atol=1e-6)


def test_what_vectors_tell_is_found_where_nothing_was_fitted():
    rng = np.random.default_rng(0)
    count = 400
    lemmas = np.array([f"word{number % 40}" for number in range(count)])
    labels = rng.random(count) < 0.5
    pairs = WordPairs(lemmas, [], [], labels, 0)
    first = rng.normal(size=(count, 8))
    second = np.where(labels[:, None], first, rng.normal(size=(count, 8)))
    noise = rng.normal(size=(count, 2, 8))
    vectors = {"telling": np.stack([first, second], 1), "noise": noise}
    fitted, others = {name: some[:200] for name, some in vectors.items()}, vectors
    train = WordPairs(lemmas[:200], [], [], labels[:200], 0)
    found = measure(train, fitted, pairs, others, seed=1)
    for classifier in ("cosine", "logistic_regression"):
        assert found["telling"][classifier]["validation"] > 0.9
        assert found["telling"][classifier]["held_out_words"] > 0.85
        assert found["noise"][classifier]["held_out_words"] < 0.75
    assert 0 < found["telling"]["cosine"]["threshold"] < 1
    assert found == measure(train, fitted, pairs, others, seed=1)
    assert found != measure(train, fitted, pairs, others, seed=2)


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=12))
def test_threshold_is_the_best_there_is(pairs):
    cosines = np.array([value / 4 for value, _ in pairs])
    labels = np.array([label for _, label in pairs])
    right = ((cosines >= best_threshold(cosines, labels)) == labels).sum()
    every = [-2.0, *cosines, 2.0]
    assert right == max(((cosines >= threshold) == labels).sum() for threshold in every)
