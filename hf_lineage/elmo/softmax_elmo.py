"""The softmax over words that the language model is trained with: full, sampled or adaptive.

Sampled: Jean et al. 2015 (https://arxiv.org/abs/1412.2007), with TensorFlow's choices (`sampled_softmax_loss`,
`log_uniform_candidate_sampler`), which bilm-tf trained with. Adaptive: Grave et al. 2017
(https://arxiv.org/abs/1609.04309).
"""

import math

import torch
from torch import nn

from .configuration_elmo import ElmoConfig

_CHUNK = 1024  # positions whose logits over all words are held at once

WordSoftmax = nn.Linear | nn.AdaptiveLogSoftmaxWithLoss


def word_softmax(config: ElmoConfig, vocab_size: int) -> WordSoftmax:
    """Makes the layer that a configuration asks for."""
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
    if isinstance(softmax, nn.Linear):
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
    if num_negative_samples and isinstance(softmax, nn.Linear):
        return sampled_softmax_losses(softmax, hidden_states, labels, num_negative_samples)
    losses = []
    for some, some_labels in zip(hidden_states.split(_CHUNK), labels.split(_CHUNK), strict=True):
        if isinstance(softmax, nn.Linear):
            losses.append(nn.functional.cross_entropy(softmax(some).float(), some_labels, reduction="none"))
        else:
            # torch's adaptive softmax puts what each cluster gives into one tensor, and autocast gives several dtypes
            with torch.autocast(some.device.type, enabled=False):
                losses.append(-softmax(some.to(softmax.head.weight.dtype), some_labels).output.float())
    return torch.cat(losses)


def sampled_softmax_losses(
    softmax: nn.Linear, hidden_states: torch.Tensor, labels: torch.Tensor, num_samples: int
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
    sampled, tries = sample_log_uniform(num_samples, softmax.out_features, labels.device)
    words = torch.cat([labels, sampled])
    weight, bias = softmax.weight[words], softmax.bias[words]
    positions = len(labels)
    correction = log_expected_counts(words, tries, softmax.out_features)
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
    "WordSoftmax",
    "log_expected_counts",
    "sample_log_uniform",
    "sampled_softmax_losses",
    "word_logits",
    "word_losses",
    "word_softmax",
]
