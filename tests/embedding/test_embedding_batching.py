from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_lineage.embedding.batching import batches_by_length, windows
from hf_lineage.embedding.reading import Sentence

lengths = st.lists(st.integers(0, 30), max_size=60)


@given(lengths=lengths, max_tokens=st.integers(1, 80))
def test_batches_hold_each_sentence_once_and_keep_to_the_budget(lengths, max_tokens):
    batches = batches_by_length(lengths, max_tokens)
    places = [place for batch in batches for place in batch]
    assert sorted(places) == [place for place, length in enumerate(lengths) if length]
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= max_tokens
    in_order = [lengths[place] for place in places]
    assert in_order == sorted(in_order, reverse=True)
    for earlier, later in pairwise(batches):  # no batch could have taken one more
        assert (len(earlier) + 1) * lengths[earlier[0]] > max_tokens
        assert later


@given(lengths=lengths, max_tokens=st.integers(1, 80))
def test_windows_hold_every_sentence_in_order_and_are_bounded(lengths, max_tokens):
    sentences = [Sentence(str(number), ["a"] * length) for number, length in enumerate(lengths)]
    found = list(windows(iter(sentences), max_tokens))
    assert [sentence for window in found for sentence in window] == sentences
    counts = [[len(sentence.tokens) for sentence in window] for window in found]
    assert all(sum(count[:-1]) < max_tokens for count in counts)
    assert all(sum(count) >= max_tokens for count in counts[:-1])


def test_blank_lines_fill_windows_too():
    held = [len(window) for window in windows((Sentence("", []) for _ in range(100_000)), 10)]
    assert sum(held) == 100_000
    assert max(held) < 50_000


def test_a_stream_is_read_no_further_than_the_window():
    read = []

    def stream():
        for number in range(100):
            read.append(number)
            yield Sentence("", ["a"])

    next(windows(stream(), 7))
    assert len(read) == 7


def test_a_budget_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1 token, got 0"):
        batches_by_length([1], 0)
