import random
from itertools import product

import pytest

from benchmarks.minisuite.sentiment import ADJECTIVES, SLOTS, TEMPLATES, THINGS, VERBS, generate

OPINIONS = {label: {*ADJECTIVES[label], *VERBS[label]} for label in ADJECTIVES}


def words_of(example):
    return set(example.texts[0].replace(".", "").split())


def opinions_on_things(groups):
    return {
        combination
        for group in groups
        for example in group
        for combination in product(words_of(example) & set(THINGS), words_of(example) & OPINIONS[example.label])
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_opinions_of_a_sentence_are_those_of_its_label(seed):
    for groups in generate(random.Random(seed)).values():
        for group in groups:
            assert [example.label for example in group] == ["negative", "positive"]
            negative, positive = (words_of(example) for example in group)
            assert negative & OPINIONS["negative"]
            assert positive & OPINIONS["positive"]
            assert not negative & OPINIONS["positive"]
            assert not positive & OPINIONS["negative"]
            assert negative - OPINIONS["negative"] == positive - OPINIONS["positive"]


@pytest.mark.parametrize("seed", range(3))
def test_validation_combines_things_and_opinions_anew(seed):
    train, validation = (opinions_on_things(groups) for groups in generate(random.Random(seed)).values())
    assert train
    assert validation
    assert not train & validation


def test_word_lists_do_not_overlap():
    neutral = {word for fillers in SLOTS.values() for filler in fillers for word in filler.split()}
    lists = [neutral, set(THINGS), *OPINIONS.values()]
    assert sum(map(len, lists)) == len(set.union(*lists))
    assert len(set(TEMPLATES)) == len(TEMPLATES)
