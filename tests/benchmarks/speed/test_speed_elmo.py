import pytest
import torch

from benchmarks.speed import elmo
from benchmarks.speed.cases import run_case

TINY = elmo.Sizes(
    char_cnn_filters=((1, 4), (2, 8)), lstm_hidden_size=12, hidden_size=16, batch_size=3, num_words=5, num_batches=2,
    vocabulary=50,
)  # fmt: skip


def test_both_sides_compute_the_same():
    case, _ = elmo.cases(TINY)
    result = run_case(case, num_pairs=2)
    assert case.wanted == 2.6
    assert result.differences["layers"] <= case.tolerance
    assert result.facts["distinct_words"] < result.facts["words"] == 15


def test_half_precision_is_near_and_not_the_same():
    _, case = elmo.cases(TINY)
    result = run_case(case, num_pairs=2)
    assert 1e-5 < result.differences["layers"] <= case.tolerance


def test_another_computation_is_noticed(monkeypatch):
    monkeypatch.setattr(elmo, "naive_layers", lambda *arguments: torch.zeros(3, 3, 7, 16))
    case, _ = elmo.cases(TINY)
    with pytest.raises(ValueError, match="embedding"):
        run_case(case, num_pairs=1)


def test_frequent_words_are_short_and_repeat():
    batches = elmo._texts(elmo.Sizes())
    words = [word for batch in batches for sentence in batch for word in sentence]
    assert len(words) == 2 * 32 * 25
    assert 0.4 < len({*words}) / len(words) < 0.7
    assert 3 < sum(map(len, words)) / len(words) < 7
