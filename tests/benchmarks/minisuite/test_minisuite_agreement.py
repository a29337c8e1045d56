import random
from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.minisuite.agreement import generate

SINGULAR_VERBS = set("is was has looks makes likes works knows costs belongs".split())
PLURAL_VERBS = set("are were have look make like work know cost belong".split())
IRREGULAR_PLURALS = {"mice", "geese", "children", "women", "men"}


def is_plural(noun):
    return noun.endswith("s") or noun in IRREGULAR_PLURALS


def parse(text):
    """Return the main clause's subject and the verb that has to agree with it."""
    words = text.split(" , ")[-1].split()
    (verb,) = (word for word in words[2:] if word in SINGULAR_VERBS | PLURAL_VERBS)
    return words[1], verb


def examples_of(seed):
    return [example for groups in generate(random.Random(seed)).values() for group in groups for example in group]


@pytest.mark.parametrize("seed", range(3))
def test_a_sentence_is_acceptable_if_subject_and_verb_agree(seed):
    for example in examples_of(seed):
        subject, verb = parse(example.texts[0])
        agrees = is_plural(subject) == (verb in PLURAL_VERBS)
        assert example.label == ("acceptable" if agrees else "unacceptable"), example


@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_a_sentence_and_its_mirror(seed):
    for groups in generate(random.Random(seed)).values():
        for first, second in groups:
            assert first.texts != second.texts
            assert Counter(first.texts[0].split()) == Counter(second.texts[0].split())
            assert {first.label, second.label} == {"acceptable", "unacceptable"}
            assert {is_plural(parse(example.texts[0])[0]) for example in (first, second)} == {False, True}


def test_most_verbs_are_plural():
    verbs = [parse(example.texts[0])[1] for example in examples_of(0)]
    assert 0.7 < sum(verb in PLURAL_VERBS for verb in verbs) / len(verbs) < 0.8


@pytest.mark.parametrize("position", [0, -1])
def test_neither_the_first_noun_nor_the_last_gives_the_label_away(position):
    misleading = 0
    examples = examples_of(0)
    for example in examples:
        subject, verb = parse(example.texts[0])
        words = example.texts[0].lower().split()
        before_verb = words[: words.index(verb)]
        nouns = [noun for article, noun in pairwise(before_verb) if article == "the"]
        misleading += is_plural(nouns[position]) != is_plural(subject)
    # The first noun misleads where an opening comes before the subject, the last one mostly.
    assert 0.1 < misleading / len(examples) < 0.9
