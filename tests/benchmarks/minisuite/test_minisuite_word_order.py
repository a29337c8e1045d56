import calendar
import random
import re
from collections import Counter

import pytest

from benchmarks.minisuite.word_order import SEQUENCES, TEMPLATES, generate

RANKS = {
    name: rank
    for names in (
        calendar.day_name,
        calendar.month_name[1:],
        ("one", "two", "three", "four"),
        ("sunrise", "midday", "sunset"),
        ("boarding", "takeoff", "landing"),
    )
    for rank, name in enumerate(names)
}

# Statements that name the earlier thing first, and those that name it last.
EARLIER_FIRST = re.compile(r"(\w+) comes before (\w+)|after (\w+) comes (\w+)|first comes (\w+) and then comes (\w+)")
LATER_FIRST = re.compile(r"(\w+) comes after (\w+)|before (\w+) comes (\w+)")


def truth(text):
    """Judge a statement about things in `RANKS`, else return `None`."""
    for pattern, sign in ((EARLIER_FIRST, 1), (LATER_FIRST, -1)):
        match = pattern.search(text)
        if match:
            first, second = (RANKS.get(word) for word in match.groups() if word is not None)
            return None if first is None or second is None else sign * (second - first) > 0
    return None


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_the_truth(seed):
    judged: Counter = Counter()
    for groups in generate(random.Random(seed)).values():
        for example in (example for group in groups for example in group):
            expected = truth(example.texts[0])
            if expected is not None:
                judged[expected] += 1
                assert example.label == str(expected).lower(), example
    assert min(judged.values()) > 200


@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_a_sentence_and_its_mirror(seed):
    for groups in generate(random.Random(seed)).values():
        for first, second in groups:
            assert first.texts != second.texts
            assert Counter(first.texts[0].split()) == Counter(second.texts[0].split())
            assert {first.label, second.label} == {"false", "true"}


def test_each_kind_of_phrasing_has_its_share():
    assert Counter(TEMPLATES.values()) == {True: 9, False: 2}
    items = [item for sequence in SEQUENCES for item in sequence.items]
    assert len(set(items)) == len(items)
