"""Is an ambiguous word used in the same sense in both sentences? Only each word in its context tells.

The noun before the ambiguous word gives its sense: "the river bank" against "the savings bank". The sentence also has
a noun that goes with the other sense, but it belongs to another word: "the savings report and the river bank".

A group has two sentences for the first column and one for the second. The two differ only in the places of these
nouns, so they have the same words and different senses: one pair has the same sense and one has different ones, and
each pair of bags of words has both labels equally often. Validation has combinations of two nouns that are not in
training. The nouns themselves are.

In most groups the second sentence has the word in its first sense, and in most phrasings the noun that gives the sense
comes first. Were it half of them, neither the nouns nor their places would go with a label by themselves, and a model
that learns from scratch would have no simpler rule to start from.
"""

import random
from dataclasses import dataclass
from functools import partial
from itertools import product

from benchmarks.minisuite.splits import Example, Group, draw_groups, pick, sentence, shuffled

GROUPS_PER_WORD = {"train": 320, "validation": 60}

# The share of groups whose second sentence has the word in its first sense.
FIRST_SENSE_SHARE = 0.8


@dataclass(frozen=True)
class AmbiguousWord:
    """A word with two senses.

    Args:
        word: The word.
        first: Nouns that give the word its first sense when they stand before it.
        second: Nouns that give it its second sense.
    """

    word: str
    first: tuple[str, ...]
    second: tuple[str, ...]


WORDS = (
    AmbiguousWord(
        "bank",
        ("river", "canal", "creek", "stream", "lake"),
        ("savings", "investment", "mortgage", "merchant", "credit"),
    ),
    AmbiguousWord(
        "bat",
        ("cave", "attic", "barn", "fruit", "vampire"),
        ("baseball", "cricket", "softball", "league", "training"),
    ),
    AmbiguousWord(
        "bark",
        ("oak", "birch", "pine", "willow", "maple"),
        ("puppy", "hound", "terrier", "poodle", "spaniel"),
    ),
    AmbiguousWord(
        "trunk",
        ("cedar", "elm", "beech", "poplar", "chestnut"),
        ("car", "taxi", "sedan", "limousine", "hatchback"),
    ),
)

SLOTS = {
    "who": ("she", "he", "Anna", "Peter"),
    "verb": ("described", "mentioned", "noticed", "saw"),
    "other": ("poster", "picture", "story", "video", "report", "book"),
}
TEMPLATES = (
    "{who} {verb} the {context} {word} and the {distractor} {other} .",
    "{who} {verb} the {context} {word} near the {distractor} {other} .",
    "{who} {verb} the {context} {word} after the {distractor} {other} .",
    "{who} {verb} the {context} {word} before the {distractor} {other} .",
    "{who} {verb} the {context} {word} with the {distractor} {other} .",
    "{who} {verb} the {distractor} {other} and the {context} {word} .",
)

# A noun of the first sense and one of the second.
Combination = tuple[str, str]


def generate(rng: random.Random) -> dict[str, list[Group]]:
    """Draw the groups of two pairs of each split."""
    seen: set[str] = set()
    splits: dict[str, list[Group]] = {split: [] for split in GROUPS_PER_WORD}
    for word in WORDS:
        combinations = _divide(word, rng)
        for split, count in GROUPS_PER_WORD.items():
            draw = partial(_draw_group, word.word, combinations[split], rng)
            splits[split].extend(draw_groups(draw, count, seen))
    return splits


def _divide(word: AmbiguousWord, rng: random.Random) -> dict[str, list[Combination]]:
    """Keep one combination of each noun for validation, so that no noun is missing from training."""
    held_out = list(zip(word.first, shuffled(word.second, rng), strict=True))
    known = [combination for combination in product(word.first, word.second) if combination not in held_out]
    return {"train": known, "validation": held_out}


def _draw_group(word: str, combinations: list[Combination], rng: random.Random) -> Group:
    left, right = shuffled(combinations, rng)[:2]
    template = pick(TEMPLATES, rng)
    first_left, second_left = _draw_sentences(template, word, left, rng)
    first_right, second_right = _draw_sentences(template, word, right, rng)
    if rng.random() < FIRST_SENSE_SHARE:
        return Example((first_left, first_right), "same"), Example((second_left, first_right), "different")
    return Example((first_left, second_right), "different"), Example((second_left, second_right), "same")


def _draw_sentences(template: str, word: str, combination: Combination, rng: random.Random) -> tuple[str, str]:
    """Draw a sentence with the word in its first sense and one with the same words and the second sense."""
    frame = {name: pick(fillers, rng) for name, fillers in SLOTS.items()}
    first, second = combination
    return (
        sentence(template.format(word=word, context=first, distractor=second, **frame)),
        sentence(template.format(word=word, context=second, distractor=first, **frame)),
    )
