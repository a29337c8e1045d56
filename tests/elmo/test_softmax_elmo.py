"""The softmaxes over words: what is sampled, with which corrections, and that gradients are right on average."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from hf_lineage import ElmoConfig, ElmoForPreTraining
from hf_lineage.elmo.softmax_elmo import log_expected_counts, sample_log_uniform, sampled_softmax_losses, word_losses

CPU = torch.device("cpu")


def linear(words: int, size: int = 8) -> nn.Linear:
    softmax = nn.Linear(size, words)
    nn.init.normal_(softmax.weight, std=size**-0.5)
    nn.init.normal_(softmax.bias, std=0.3)
    return softmax


def standard_scores(num_samples: int, draws: int) -> torch.Tensor:
    """The mean sampled gradient, in standard errors, where the expected gradient of the full softmax is 0.

    That is so where labels are drawn from the model's own distribution: what is a solution for one must be for both.
    """
    softmax, hidden_states = linear(60), torch.randn(12, 8)
    probabilities = softmax(hidden_states).softmax(-1).detach()
    total, squares = (torch.zeros(60, 8, dtype=torch.float64) for _ in range(2))
    for _ in range(draws):
        labels = torch.multinomial(probabilities, 1).squeeze(1)
        loss = word_losses(softmax, hidden_states, labels, num_samples).mean()
        gradient = torch.autograd.grad(loss, softmax.weight)[0].double()
        total += gradient
        squares += gradient**2
    mean = total / draws
    return mean / ((squares / draws - mean**2) / draws).sqrt()


@pytest.mark.parametrize("num_samples", [0, 10, 30])
def test_the_expected_gradient_is_that_of_the_full_softmax(num_samples):
    scores = standard_scores(num_samples, draws=1500)
    # of 480 standard normal numbers, not all independent
    assert scores.abs().max() < 4.5
    assert scores.square().mean().sqrt() < 1.3


def test_without_the_expected_counts_it_would_not_be(monkeypatch):
    monkeypatch.setattr(
        "hf_lineage.elmo.softmax_elmo.log_expected_counts", lambda words, tries, size: torch.zeros(len(words))
    )
    assert standard_scores(10, draws=1500).square().mean().sqrt() > 3


def test_the_bias_for_given_labels_goes_away_with_more_samples():
    softmax, hidden_states, labels = linear(60), torch.randn(12, 8), torch.randint(0, 60, (12,))

    def gradient(number: int, draws: int = 400) -> torch.Tensor:
        losses = sum(word_losses(softmax, hidden_states, labels, number).mean() for _ in range(draws)) / draws
        return torch.autograd.grad(losses, softmax.weight)[0]

    full = gradient(0, 1)
    errors = [float((gradient(number) - full).norm() / full.norm()) for number in (5, 20, 59)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_the_sampled_loss_by_hand(monkeypatch):
    softmax, hidden_states, labels = linear(20), torch.randn(3, 8), torch.tensor([4, 0, 11])
    monkeypatch.setattr("hf_lineage.elmo.softmax_elmo.sample_log_uniform", lambda *_: (torch.tensor([7, 4, 1]), 5))
    logits = softmax(hidden_states).detach().double().numpy()

    def corrected(row: int, word: int) -> float:
        probability = math.log((word + 2) / (word + 1)) / math.log(21)
        return logits[row, word] - math.log(1 - (1 - probability) ** 5)

    expected = []
    for row, label in enumerate(labels.tolist()):
        others = [corrected(row, word) for word in (7, 4, 1) if word != label]  # an accidental hit does not count
        expected.append(np.logaddexp.reduce([corrected(row, label), *others]) - corrected(row, label))
    found = sampled_softmax_losses(softmax, hidden_states, labels, 3)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5)


@given(words=st.integers(2, 300), share=st.floats(0, 1), seed=st.integers(0, 2**20))
@settings(max_examples=50, deadline=None)
def test_samples_are_different_words_of_the_vocabulary(words, share, seed):
    torch.manual_seed(seed)
    number = max(1, min(words - 1, round(share * (words - 1))))
    sampled, tries = sample_log_uniform(number, words, CPU)
    assert len({*sampled.tolist()}) == number
    assert 0 <= int(sampled.min()) <= int(sampled.max()) < words
    assert tries >= number


def test_words_are_drawn_as_often_as_expected():
    draws, words = 4000, 30
    counts, expected = torch.zeros(words), torch.zeros(words)
    for _ in range(draws):
        sampled, tries = sample_log_uniform(8, words, CPU)
        counts[sampled] += 1
        expected += log_expected_counts(torch.arange(words), tries, words).exp()
    # the expectation takes the number of tries for given, as TensorFlow does, so it is not exact
    torch.testing.assert_close(counts / draws, expected / draws, atol=0.03, rtol=0.05)
    first = torch.stack([sample_log_uniform(1, words, CPU)[0][0] for _ in range(draws)])
    share = math.log(2) / math.log(words + 1)
    assert abs(float((first == 0).float().mean()) - share) < 4 * math.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("number", [0, 20, 21])
def test_no_more_samples_than_other_words(number):
    with pytest.raises(ValueError, match=f"num_samples must be from 1 to vocab_size - 1 = 19, got {number}"):
        sample_log_uniform(number, 20, CPU)


def test_the_adaptive_softmax_has_probabilities(tiny, tokenizer):
    model = ElmoForPreTraining(tiny(vocab_size=40, adaptive_softmax_cutoffs=[5, 20], adaptive_softmax_div_value=2.0))
    inputs = tokenizer(["a b c", "d"], padding=True, return_tensors="pt", return_token_type_ids=False)
    labels = torch.tensor([[3, 14, 35], [21, -100, -100]])
    output = model(**inputs, labels=labels)
    torch.testing.assert_close(output.forward_logits.exp().sum(-1), torch.ones(2, 4))
    terms = [output.forward_logits[row, i, word] for row, i, word in [(0, 0, 3), (0, 1, 14), (0, 2, 35), (0, 3, 1)]]
    terms += [output.forward_logits[1, 0, 21], output.forward_logits[1, 1, 1]]
    torch.testing.assert_close(output.forward_loss, -torch.stack(terms).mean())
    lean = model(**inputs, labels=labels, return_logits=False)
    torch.testing.assert_close(lean.loss, output.loss)
    assert lean.forward_logits is None
    assert model.get_output_embeddings() is None


def test_training_samples_and_evaluation_does_not(tiny, tokenizer):
    model = ElmoForPreTraining(tiny(vocab_size=40, num_negative_samples=6))
    full = ElmoForPreTraining(tiny(vocab_size=40))
    full.load_state_dict(model.state_dict())
    inputs = tokenizer(["a b c"], return_tensors="pt", return_token_type_ids=False)
    labels = torch.tensor([[3, 14, 35]])
    assert torch.equal(model.eval()(**inputs, labels=labels).loss, full.eval()(**inputs, labels=labels).loss)
    trained = model.train()(**inputs, labels=labels)
    assert trained.forward_logits is None
    assert trained.loss < full.train()(**inputs, labels=labels).loss
    assert model(**inputs).forward_logits.shape == (1, 4, 40)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_negative_samples": 50}, "num_negative_samples must be below vocab_size=50, got 50"),
        ({"num_negative_samples": -1}, "num_negative_samples must be an integer of at least 0, got -1"),
        ({"adaptive_softmax_cutoffs": []}, r"ascending integers between 0 and vocab_size=50, got \[\]"),
        ({"adaptive_softmax_cutoffs": [5, 5]}, r"ascending integers between 0 and vocab_size=50, got \[5, 5\]"),
        ({"adaptive_softmax_cutoffs": [5, 50]}, r"ascending integers between 0 and vocab_size=50, got \[5, 50\]"),
        ({"adaptive_softmax_cutoffs": [5], "num_negative_samples": 2}, "an adaptive softmax is not sampled"),
        ({"adaptive_softmax_cutoffs": [5, 9], "adaptive_softmax_div_value": 3.0}, "would have no width"),
        ({"adaptive_softmax_div_value": 0.5}, "adaptive_softmax_div_value must be a number of at least 1, got 0.5"),
    ],
)
def test_softmaxes_that_cannot_be(fields, message):
    with pytest.raises(ValueError, match=message):
        ElmoConfig(vocab_size=50, hidden_size=16, **fields)


@pytest.mark.parametrize(
    "softmax",
    [{}, {"num_negative_samples": 10}, {"adaptive_softmax_cutoffs": [5, 20]}],
    ids=["full", "sampled", "adaptive"],
)
def test_every_softmax_trains_in_bfloat16(softmax):
    config = ElmoConfig(
        vocab_size=60,
        hidden_size=32,
        lstm_hidden_size=24,
        char_cnn_filters=[[1, 8], [2, 8]],
        num_highway_layers=1,
        **softmax,
    )
    model = ElmoForPreTraining(config).train()
    ids = torch.randint(1, 250, (3, 7, config.max_characters_per_token))
    labels = torch.randint(3, 60, (3, 7))

    def loss_and_logits(enabled: bool):
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            return model(ids, labels=labels).loss, model.eval()(ids).forward_logits

    (loss, logits), (expected, expected_logits) = loss_and_logits(True), loss_and_logits(False)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    if "num_negative_samples" not in softmax:  # in training mode, only the first loss is estimated
        torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    torch.testing.assert_close(logits.float(), expected_logits, rtol=0.05, atol=0.1)
