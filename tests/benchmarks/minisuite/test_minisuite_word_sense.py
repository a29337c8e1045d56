import itertools
import random
from collections import Counter

import pytest

from benchmarks.minisuite.word_sense import GROUPS_PER_WORD, WORDS, generate

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
def test_a_sentence_is_in_one_pair_of_each_label(seed):
    for groups in generate(random.Random(seed)).values():
        for column in range(2):
            labels: dict[str, list[str]] = {}
            for example in examples(groups):
                labels.setdefault(example.texts[column], []).append(example.label)
            assert all(sorted(found) == ["different", "same"] for found in labels.values())


@pytest.mark.parametrize("seed", range(3))
def test_each_word_and_sense_is_as_frequent(seed):
    for split, groups in generate(random.Random(seed)).items():
        senses = Counter(used_sense(text) for example in examples(groups) for text in example.texts)
        assert senses == {(word.word, sense): 4 * GROUPS_PER_WORD[split] for word in WORDS for sense in range(2)}


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
