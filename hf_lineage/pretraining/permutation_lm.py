"""What a permutation language model predicts of a segment, and in which order.

Yang et al. 2019, "XLNet" (https://arxiv.org/abs/1906.08237), section 3.1, and the original's `data_utils.py`
(`_sample_mask`, `_local_perm`).
"""

import numpy as np


def sample_targets(
    word_starts: np.ndarray,
    can_be_target: np.ndarray,
    num_predict: int,
    generator: np.random.Generator,
    max_ngram: int = 5,
    context_factor: int = 6,
) -> np.ndarray:
    """Draws spans of whole words to predict.

    A span of n words, with probability proportional to 1/n (the paper says uniform, the original does this), stands
    somewhere in a context of `context_factor * n` words; where that does not give `num_predict` tokens, single tokens
    make up the rest, and the last span is cut where it would give more. The original counts pieces where it means
    words, as its test for the end of a span reads the beginning; here words are counted, in spans and contexts.

    Args:
        word_starts: `(tokens,)` bool, true where a word starts.
        can_be_target: `(tokens,)` bool, false for special tokens, which also end a span.
        num_predict: Number of targets; fewer if there are not so many tokens.
        generator: Source of the draw.
        max_ngram: Longest span, in words.
        context_factor: Words of context for each word of a span.

    Returns:
        `(tokens,)` bool, true at the targets.
    """
    goal = min(num_predict, int(can_be_target.sum()))
    targets = np.zeros(len(word_starts), dtype=bool)
    lengths = np.arange(1, max_ngram + 1)
    probabilities = (1 / lengths) / (1 / lengths).sum()
    words = np.flatnonzero(word_starts & can_be_target)
    number = 0  # of the word that the next context begins with
    while targets.sum() < goal:
        span = int(generator.choice(lengths, p=probabilities))
        before = int(generator.integers(context_factor * span))
        if number + before >= len(words):
            break
        start = int(words[number + before])
        end = _end_of_words(word_starts, can_be_target, start, span)
        targets[start : min(end, start + goal - int(targets.sum()))] = True
        number = int(np.searchsorted(words, end)) + context_factor * span - before
    missing = goal - int(targets.sum())
    rest = np.flatnonzero(can_be_target & ~targets)
    targets[generator.choice(rest, size=missing, replace=False)] = True
    return targets


def _next(marks: np.ndarray, place: int) -> int:
    """The first mark at a place or behind it, the length if there is none."""
    found = np.flatnonzero(marks[place:])
    return place + int(found[0]) if len(found) else len(marks)


def _end_of_words(word_starts: np.ndarray, can_be_target: np.ndarray, start: int, words: int) -> int:
    """Where so many words from a place end: before the next word, a special token or the end."""
    ends = np.flatnonzero(word_starts[start + 1 :])
    end = start + 1 + int(ends[words - 1]) if len(ends) >= words else len(word_starts)
    return min(end, _next(~can_be_target, start))


def permutation_mask(
    targets: np.ndarray, functional: np.ndarray, window: int, generator: np.random.Generator
) -> np.ndarray:
    """Draws an order and makes the `perm_mask` of it.

    Tokens that are neither targets nor functional are context: everybody sees them, and they see each other alone.
    Targets see the context, and the targets and functional tokens before them in the order. Functional tokens (`<sep>`
    and `<cls>`) have a place in the order too, see what comes before it, and themselves, and are seen from behind it:
    so they cannot tell a target of itself.

    Args:
        targets: `(tokens,)` bool.
        functional: `(tokens,)` bool; a token is not both.
        window: Tokens that are ordered among each other; every window has the same order, as in the original.
        generator: Source of the order.

    Returns:
        `(tokens, tokens)` bool, true at `[i, j]` if `i` cannot see `j`.

    Raises:
        ValueError: If the tokens are not a multiple of the window.
    """
    if len(targets) % window:
        raise ValueError(f"the number of tokens must be a multiple of window={window}, got {len(targets)}")
    ranks = np.tile(generator.permutation(window), len(targets) // window)
    ordered = targets | functional
    ranks = np.where(ordered, ranks, -1)
    own_ranks = np.where(targets, ranks, ranks + 1)
    return (own_ranks[:, None] <= ranks[None]) & ordered[None]


def segment_mask(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The mask of a segment whose first part, which the next segment remembers, is blind to the second.

    Args:
        first: `(n, n)` bool, of the part that is reused.
        second: `(m, m)` bool, of the rest, which sees all of the first part.

    Returns:
        `(n + m, n + m)` bool.
    """
    reused, rest = len(first), len(second)
    return np.block([[first, np.ones((reused, rest), dtype=bool)], [np.zeros((rest, reused), dtype=bool), second]])


__all__ = ["permutation_mask", "sample_targets", "segment_mask"]
