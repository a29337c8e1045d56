import itertools
import random
from collections import Counter

import pytest

from benchmarks.minisuite.word_sense import GROUPS_PER_WORD, TEMPLATES, WORDS, generate

SENSES = {
    (noun, word.word): sense
    for word in WORDS
    for sense, nouns in enumerate((word.first, word.second))
    for noun in nouns
}
NOUNS = {noun for noun, _ in SENSES}


def used_sense(text):
    """Return the ambiguous word of a sentence and its sense."""
    words = text.split()
    (usage,) = (pair for pair in itertools.pairwise(words) if pair in SENSES)
    return usage[1], SENSES[usage]


def examples(groups):
    return [example for group in groups for example in group]


@pytest.mark.parametrize("seed", range(3))
def test_the_label_says_whether_the_senses_are_the_same(seed):
    for groups in generate(random.Random(seed)).values():
        for example in examples(groups):
            (left_word, left_sense), (right_word, right_sense) = map(used_sense, example.texts)
            assert left_word == right_word
            assert example.label == ("same" if left_sense == right_sense else "different"), example


@pytest.mark.parametrize("seed", range(3))
def test_a_group_compares_a_sentence_with_two_of_the_same_words(seed):
    for groups in generate(random.Random(seed)).values():
        for group in groups:
            (first, second), (right, other_right) = zip(*(example.texts for example in group), strict=True)
            assert right == other_right
            assert Counter(first.lower().split()) == Counter(second.lower().split())
            assert {used_sense(first)[1], used_sense(second)[1]} == {0, 1}
            assert {example.label for example in group} == {"different", "same"}


@pytest.mark.parametrize("seed", range(3))
def test_each_word_is_as_frequent_and_each_sense_in_the_first_column(seed):
    for split, groups in generate(random.Random(seed)).items():
        senses = Counter(used_sense(example.texts[0]) for example in examples(groups))
        assert senses == {(word.word, sense): GROUPS_PER_WORD[split] for word in WORDS for sense in range(2)}


def test_most_second_sentences_have_the_first_sense():
    found = [used_sense(example.texts[1])[1] for example in examples(generate(random.Random(0))["train"])]
    assert 0.75 < found.count(0) / len(found) < 0.85


def test_in_most_phrasings_the_noun_that_decides_comes_first():
    decides = [template.index("{context}") < template.index("{distractor}") for template in TEMPLATES]
    assert Counter(decides) == {True: 5, False: 1}


@pytest.mark.parametrize("seed", range(3))
def test_validation_combines_nouns_anew(seed):
    train, validation = (
        {frozenset(NOUNS & set(text.split())) for example in examples(groups) for text in example.texts}
        for groups in generate(random.Random(seed)).values()
    )
    assert all(len(nouns) == 2 for nouns in train | validation)
    assert not train & validation
    assert set().union(*train) == NOUNS


def test_a_noun_gives_one_sense():
    assert all(not set(word.first) & set(word.second) for word in WORDS)
    assert all(len(word.first) == len(word.second) == 5 for word in WORDS)
    assert not NOUNS & {word.word for word in WORDS}
    assert len({word.word for word in WORDS}) == len(WORDS)
