"""The softmax over words that the language model is trained with: full, sampled, adaptive, or shared with the input.

Sampled: Jean et al. 2015 (https://arxiv.org/abs/1412.2007), with TensorFlow's choices (`sampled_softmax_loss`,
`log_uniform_candidate_sampler`), which bilm-tf trained with. Adaptive: Grave et al. 2017
(https://arxiv.org/abs/1609.04309).
"""

import math

import torch
from torch import nn

from .configuration_elmo import ElmoConfig
from .packing_elmo import BEGIN_OF_SENTENCE, END_OF_SENTENCE, PADDING

_CHUNK = 1024  # positions whose logits over all words are held at once

_FIRST_WORD, _SECOND_PART = 2, 256  # behind the two boundaries; numbers from 257 on are special ones up to PADDING


def input_numbers(word_ids: torch.Tensor) -> torch.Tensor:
    """The number that a word of the softmax's vocabulary has in the input of a model that shares both.

    Words are counted from 1, around the special numbers; the boundaries are those themselves.

    Args:
        word_ids: int64, 0 for the begin of sentence and 1 for its end.
    """
    shift = torch.where(word_ids < _SECOND_PART, 1, PADDING + 1 - _SECOND_PART)
    return word_ids + torch.where(word_ids < _FIRST_WORD, BEGIN_OF_SENTENCE, shift)


class ElmoTiedSoftmax(nn.Module):
    """A softmax layer whose weights are those of the input's table of words (bilm-tf's `share_embedding_softmax`).

    `weight` is that table, `(word_vocab_size, projection_size)`, in the order of the input's numbers. The biases,
    `(vocab_size,)`, and what is returned are in the order of the vocabulary.

    Args:
        config: The configuration.
        vocab_size: Words of the softmax.
    """

    def __init__(self, config: ElmoConfig, vocab_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(config.word_vocab_size, config.projection_size))
        # not `bias`, which transformers would make as long as the table when it ties the weights
        self.word_bias = nn.Parameter(torch.zeros(vocab_size))

    @property
    def num_words(self) -> int:
        """Words of the softmax."""
        return len(self.word_bias)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Logits `(..., vocab_size)` of `(..., projection_size)` vectors."""
        boundaries = self.weight[BEGIN_OF_SENTENCE : END_OF_SENTENCE + 1]
        words = self.weight[_FIRST_WORD + 1 : _SECOND_PART + 1], self.weight[PADDING + 1 :]
        weight = torch.cat([boundaries, *words])[: self.num_words]
        return nn.functional.linear(hidden_states, weight, self.word_bias)

    def of_words(self, word_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights `(words, projection_size)` and biases `(words,)` of some words of the vocabulary."""
        return self.weight[input_numbers(word_ids)], self.word_bias[word_ids]


LinearSoftmax = nn.Linear | ElmoTiedSoftmax
WordSoftmax = LinearSoftmax | nn.AdaptiveLogSoftmaxWithLoss


def word_softmax(config: ElmoConfig, vocab_size: int) -> WordSoftmax:
    """Makes the layer that a configuration asks for."""
    # models of characters may be told so after their configuration was checked, and have nothing to share
    if config.tie_word_embeddings and config.word_embedding_size:
        return ElmoTiedSoftmax(config, vocab_size)
    if config.adaptive_softmax_cutoffs is None:
        return nn.Linear(config.projection_size, vocab_size)
    return nn.AdaptiveLogSoftmaxWithLoss(
        config.projection_size,
        vocab_size,
        config.adaptive_softmax_cutoffs,
        div_value=config.adaptive_softmax_div_value,
        head_bias=True,
    )


def word_logits(softmax: WordSoftmax, hidden_states: torch.Tensor) -> torch.Tensor:
    """Logits `(..., vocab_size)` of all words; those of an adaptive softmax are log-probabilities."""
    if not isinstance(softmax, nn.AdaptiveLogSoftmaxWithLoss):
        return softmax(hidden_states)
    with torch.autocast(hidden_states.device.type, enabled=False):
        rows = hidden_states.flatten(0, -2).to(softmax.head.weight.dtype)
        return softmax.log_prob(rows).unflatten(0, hidden_states.shape[:-1])


def word_losses(
    softmax: WordSoftmax, hidden_states: torch.Tensor, labels: torch.Tensor, num_negative_samples: int = 0
) -> torch.Tensor:
    """Cross-entropy of each position, without keeping the logits of all.

    Args:
        softmax: From `word_softmax`.
        hidden_states: `(positions, projection_size)`.
        labels: `(positions,)` int64 in `[0, vocab_size)`.
        num_negative_samples: Words that a linear softmax is estimated from; 0 for all words.

    Returns:
        `(positions,)` float32, nats.
    """
    if not len(labels):
        return hidden_states.float().sum(-1)  # zero, and still a part of the graph
    if num_negative_samples and not isinstance(softmax, nn.AdaptiveLogSoftmaxWithLoss):
        return sampled_softmax_losses(softmax, hidden_states, labels, num_negative_samples)
    losses = []
    for some, some_labels in zip(hidden_states.split(_CHUNK), labels.split(_CHUNK), strict=True):
        if isinstance(softmax, nn.AdaptiveLogSoftmaxWithLoss):
            # torch's puts what each cluster gives into one tensor, and autocast gives several dtypes
            with torch.autocast(some.device.type, enabled=False):
                losses.append(-softmax(some.to(softmax.head.weight.dtype), some_labels).output.float())
        else:
            losses.append(nn.functional.cross_entropy(softmax(some).float(), some_labels, reduction="none"))
    return torch.cat(losses)


def sampled_softmax_losses(
    softmax: LinearSoftmax, hidden_states: torch.Tensor, labels: torch.Tensor, num_samples: int
) -> torch.Tensor:
    """Estimates the cross-entropy from the label and a sample of words that all positions share.

    The logarithm of a word's expected count in the sample is taken off its logit, as TensorFlow does; where the sample
    has a position's own label, it does not count. Ids must be sorted by descending frequency.

    Args:
        softmax: Over all words.
        hidden_states: `(positions, projection_size)`.
        labels: `(positions,)` int64.
        num_samples: Different words in the sample.

    Returns:
        `(positions,)` float32, nats; not the loss of the full softmax, but lower.

    Raises:
        ValueError: If so many different words cannot be sampled.
    """
    vocab_size = softmax.num_words if isinstance(softmax, ElmoTiedSoftmax) else softmax.out_features
    sampled, tries = sample_log_uniform(num_samples, vocab_size, labels.device)
    words = torch.cat([labels, sampled])
    if isinstance(softmax, ElmoTiedSoftmax):
        weight, bias = softmax.of_words(words)
    else:
        weight, bias = softmax.weight[words], softmax.bias[words]
    positions = len(labels)
    correction = log_expected_counts(words, tries, vocab_size)
    offset = bias.float() - correction
    true_logits = (hidden_states * weight[:positions]).sum(-1).float() + offset[:positions]
    sampled_logits = (hidden_states @ weight[positions:].T).float() + offset[positions:]
    sampled_logits = sampled_logits.masked_fill(labels[:, None] == sampled, float("-inf"))
    return torch.cat([true_logits[:, None], sampled_logits], 1).logsumexp(1) - true_logits


def sample_log_uniform(num_samples: int, vocab_size: int, device: torch.device) -> tuple[torch.Tensor, int]:
    """Draws words of Zipf's distribution, `P(k) = log((k + 2) / (k + 1)) / log(vocab_size + 1)`, until all differ.

    Args:
        num_samples: How many different words to draw.
        vocab_size: Words there are.
        device: Where to draw.

    Returns:
        `(num_samples,)` int64, the words in the order of their first draw, and the number of draws that it took.

    Raises:
        ValueError: If there are not so many words.
    """
    if not 1 <= num_samples < vocab_size:
        raise ValueError(f"num_samples must be from 1 to vocab_size - 1 = {vocab_size - 1}, got {num_samples}")
    draws = torch.empty(0, dtype=torch.long, device=device)
    while True:
        # float64, or the last words of a large vocabulary would not be told apart
        uniform = torch.rand(2 * num_samples, dtype=torch.float64, device=device)
        new = (uniform * math.log(vocab_size + 1)).exp().long() - 1
        draws = torch.cat([draws, new.clamp(0, vocab_size - 1)])
        words, where = draws.unique(return_inverse=True)
        if len(words) >= num_samples:
            break
    places = torch.arange(len(draws), device=device)
    first = torch.full_like(words, len(draws)).scatter_reduce(0, where, places, "amin").sort().values
    return draws[first[:num_samples]], int(first[num_samples - 1]) + 1


def log_expected_counts(words: torch.Tensor, tries: int, vocab_size: int) -> torch.Tensor:
    """Logarithm of the probability that a word is among so many draws of `sample_log_uniform`, float32."""
    words = words.double()
    probability = ((words + 2) / (words + 1)).log() / math.log(vocab_size + 1)
    return (-torch.expm1(tries * torch.log1p(-probability))).log().float()


__all__ = [
    "ElmoTiedSoftmax",
    "WordSoftmax",
    "input_numbers",
    "log_expected_counts",
    "sample_log_uniform",
    "sampled_softmax_losses",
    "word_logits",
    "word_losses",
    "word_softmax",
]
