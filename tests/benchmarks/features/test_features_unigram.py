"""The unigram that a biLM is compared with, against scikit-learn's and the pretraining's own figures."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB
from typer.testing import CliRunner

from benchmarks.features.__main__ import app
from benchmarks.features.unigram import compare_with_unigram, unigram_perplexity
from hf_lineage import ElmoTokenizer
from hf_lineage.pretraining.__main__ import main as pretrain

words_of = st.lists(st.integers(0, 9), min_size=1, max_size=60)


@given(words_of, words_of)
def test_perplexity_is_that_of_smoothed_frequencies(train, held_out):
    counts = np.bincount(train, minlength=10)
    fitted = MultinomialNB(alpha=1.0).fit(counts[None], [0])
    expected = math.exp(-np.mean(fitted.feature_log_prob_[0][held_out]))
    assert unigram_perplexity(Counter(train), Counter(held_out), 10) == pytest.approx(expected)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The settings of a finished run."""
    folder = tmp_path_factory.mktemp("run")
    sentences = ["the cat sat", "a dog sat on the mat", "the mat lay there"]
    text = "\n\n".join(sentences[number % 3] for number in range(60))
    (folder / "text.txt").write_text(text)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["<S>", "</S>", "<UNK>", "the", "sat", "mat", "cat", "a", "on", "dog"]) + "\n")
    ElmoTokenizer(vocabulary).save_pretrained(folder / "tokenizer")
    settings = {
        "family": "elmo",
        "train_files": [str(folder / "text.txt")],
        "tokenizer_name_or_path": str(folder / "tokenizer"),
        "output_dir": str(folder / "out"),
        "validation_share": 0.3,
        "model_config": {
            "char_cnn_filters": [[1, 4]],
            "num_highway_layers": 1,
            "hidden_size": 8,
            "lstm_hidden_size": 8,
        },
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 2,
    }
    path = folder / "elmo.yaml"
    path.write_text(yaml.safe_dump(settings))
    assert pretrain(["--config", str(path)])
    return path


def test_a_run_is_compared_with_the_unigram_of_its_training_text(config):
    table = compare_with_unigram(config)
    row = next(line for line in table.splitlines() if line.startswith("| streams"))
    forward, backward, held_out, train, ratio = (float(cell) for cell in row.strip("| ").split("|")[1:])
    results = json.loads((config.parent / "out" / "results.json").read_text())
    measured = results["validation"]["last"]["validation"]["streams"]
    assert (forward, backward) == pytest.approx(
        (measured["forward_perplexity"], measured["backward_perplexity"]), abs=0.06
    )
    # no unigram does better than that of the held-out text, and here both texts have nearly the same words
    assert held_out == pytest.approx(measured["unigram_perplexity"], abs=0.06)
    assert held_out <= train < 1.2 * held_out
    assert ratio == pytest.approx(train / max(forward, backward), abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output_dir": "elsewhere"}, "results.json is missing, the run is not finished"),
        ({"validation_share": 0}, "nothing is held out"),
        ({"family": "albert", "model_config": {}}, "family must be elmo, got albert"),
    ],
)
def test_what_cannot_be_compared_is_one_line(config, tmp_path, change, message):
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        compare_with_unigram(other)


def test_the_command(config):
    done = CliRunner().invoke(app, ["unigram", "--config", str(config)])
    assert done.exit_code == 0
    assert done.stdout.strip() == compare_with_unigram(config).strip()
