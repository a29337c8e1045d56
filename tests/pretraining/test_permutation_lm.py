import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_lineage.pretraining.permutation_lm import permutation_mask, sample_targets, segment_mask


def words(lengths):
    """Word starts of words of so many tokens each."""
    starts = np.zeros(sum(lengths), dtype=bool)
    starts[np.cumsum([0, *lengths[:-1]])] = True
    return starts


@settings(max_examples=200)
@given(st.lists(st.integers(1, 4), min_size=3, max_size=60), st.integers(0, 40), st.integers(0, 2**31), st.data())
def test_the_number_of_targets_is_exact(lengths, num_predict, seed, data):
    starts = words(lengths)
    special = data.draw(st.sets(st.integers(0, len(starts) - 1), max_size=3))
    allowed = np.ones(len(starts), dtype=bool)
    allowed[list(special)] = False
    targets = sample_targets(starts, allowed, num_predict, np.random.default_rng(seed))
    assert targets.sum() == min(num_predict, allowed.sum())
    assert not (targets & ~allowed).any()
    again = sample_targets(starts, allowed, num_predict, np.random.default_rng(seed))
    assert (targets == again).all()


def runs(targets):
    edges = np.flatnonzero(np.diff(np.r_[0, targets.astype(int), 0]))
    return list(zip(edges[::2], edges[1::2], strict=True))


def test_spans_are_whole_words_of_the_lengths_that_the_paper_has():
    """Far more is asked for than a pass over the text gives, so that nothing is cut or made up."""
    starts = words([2] * 60_000)
    allowed = np.ones(len(starts), dtype=bool)
    generator = np.random.default_rng(1)
    # 10,000 spans of 2.19 words of two tokens, of which the text has room for more
    targets = sample_targets(starts, allowed, 17_000, generator)
    counts = Counter()
    for start, end in runs(targets)[:-1]:
        assert start % 2 == 0
        assert end % 2 == 0
        counts[(end - start) // 2] += 1
    total = sum(counts[n] for n in range(1, 6))
    assert total > 3_000
    harmonic = sum(1 / n for n in range(1, 6))
    for n in range(1, 6):
        expected = total / n / harmonic
        # neighbouring spans may touch and count as one longer span
        assert abs(counts[n] - expected) < 3 * math.sqrt(expected) + 0.02 * total, (n, counts[n], expected)


@pytest.mark.parametrize("pieces", [(1,), (1, 2), (1, 2, 3), (3,)])
def test_every_place_is_predicted_as_often(pieces):
    """Whatever the words, the end of a text is a target as often as its beginning."""
    generator = np.random.default_rng(0)
    draws, tokens = 1500, 128
    counts = np.zeros(tokens)
    for _ in range(draws):
        starts = words(generator.choice(pieces, size=tokens).tolist())[:tokens]
        counts += sample_targets(starts, np.ones(tokens, dtype=bool), tokens // 6, generator)
    by_eighth = counts.reshape(8, -1).mean(1) / draws
    # the first tokens have no context before them from which a span could reach them; the others are within 15 %
    assert (abs(by_eighth / (tokens // 6 / tokens) - 1) < 0.15).all(), by_eighth


def test_a_span_does_not_reach_over_a_special_token():
    starts, allowed = np.ones(9, dtype=bool), np.ones(9, dtype=bool)
    allowed[4] = False
    for seed in range(100):
        targets = sample_targets(starts, allowed, 3, np.random.default_rng(seed))
        assert not targets[4]


def kinds(seed, tokens=12):
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, size=tokens)
    return kind == 1, kind == 2, generator


@pytest.mark.parametrize("seed", range(30))
def test_who_sees_whom(seed):
    targets, functional, generator = kinds(seed)
    hidden = permutation_mask(targets, functional, 12, generator)
    context = ~(targets | functional)
    assert not hidden[:, context].any()  # all see the context
    assert hidden[np.ix_(context, ~context)].all()  # which sees only itself
    assert hidden[targets, targets.nonzero()[0]].all()  # a target does not see itself
    assert not hidden[functional, functional.nonzero()[0]].any()
    ordered = np.flatnonzero(~context)
    for one in ordered:
        for other in ordered:
            if one != other:
                assert hidden[one, other] != hidden[other, one]  # one of the two is first


@settings(max_examples=100)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 5))
def test_no_path_leads_back_to_a_target(seed, halves, layers):
    targets, functional, generator = kinds(seed, 8 * halves)
    hidden = permutation_mask(targets, functional, 8, generator) if halves == 1 else segment_mask(
        permutation_mask(targets[:8], functional[:8], 8, generator),
        permutation_mask(targets[8:], functional[8:], 8, generator),
    )  # fmt: skip
    seen = ~hidden
    reached = np.linalg.matrix_power((seen | np.eye(len(seen), dtype=bool)).astype(float), layers) > 0
    for target in np.flatnonzero(targets):
        assert not reached[seen[target], target].any()


def test_the_first_half_is_blind_to_the_second():
    targets, functional, generator = kinds(3, 8)
    part = permutation_mask(targets, functional, 8, generator)
    whole = segment_mask(part, part)
    assert whole[:8, 8:].all()
    assert not whole[8:, :8].any()


def test_all_orders_come_alike():
    every = np.ones(4, dtype=bool)
    generator = np.random.default_rng(0)
    counts = Counter()
    for _ in range(4_800):
        hidden = permutation_mask(every, ~every, 4, generator)
        counts[tuple((~hidden).sum(1))] += 1  # how many each sees is its place in the order
    assert len(counts) == 24
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 50


def test_windows_must_fill_the_text():
    with pytest.raises(ValueError, match="multiple"):
        permutation_mask(np.ones(5, dtype=bool), np.zeros(5, dtype=bool), 4, np.random.default_rng(0))
