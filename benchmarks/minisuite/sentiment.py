"""Is a review positive? The words alone tell.

Every group states one opinion and its opposite in the same frame, so nothing but the opinion words bears on the label.
Training and validation share all words, but no combination of a reviewed thing and an opinion about it.
"""

import random
from collections.abc import Mapping
from functools import partial

from benchmarks.minisuite.splits import Example, Group, draw_groups, pick, sentence, shuffled

GROUPS = {"train": 1000, "validation": 250}

# Of the opinions on a thing, the share that is kept for validation.
VALIDATION_SHARE = 0.2

THINGS = (
    "film",
    "market",
    "party",
    "concert",
    "play",
    "meal",
    "hotel",
    "restaurant",
    "museum",
    "tour",
    "game",
    "workshop",
    "show",
    "lecture",
    "exhibition",
    "course",
)

ADJECTIVES = {
    "negative": (
        "terrible",
        "awful",
        "dreadful",
        "poor",
        "horrible",
        "disappointing",
        "boring",
        "dull",
        "annoying",
        "tedious",
        "mediocre",
        "unpleasant",
        "forgettable",
        "depressing",
        "unbearable",
        "lousy",
        "miserable",
        "overpriced",
    ),
    "positive": (
        "wonderful",
        "excellent",
        "great",
        "brilliant",
        "lovely",
        "superb",
        "delightful",
        "charming",
        "fantastic",
        "impressive",
        "enjoyable",
        "memorable",
        "remarkable",
        "pleasant",
        "perfect",
        "beautiful",
        "splendid",
        "marvellous",
    ),
}

VERBS = {
    "negative": ("hated", "disliked", "regretted", "despised", "criticised", "loathed", "cursed", "detested"),
    "positive": ("loved", "enjoyed", "admired", "adored", "praised", "liked", "appreciated", "recommended"),
}

SLOTS = {
    "neutral": ("new", "old", "long", "short", "small", "local", "famous", "second", "latest", "French"),
    "degree": ("really", "simply", "truly", "quite", "just"),
    "who": ("we", "I", "my parents", "the guests", "her friends", "the critics", "both students", "our neighbours"),
    "when": ("yesterday", "last week", "on Friday", "this time", "last summer", "in May", "on our trip"),
    "where": ("in the old town", "near the station", "in London", "by the river", "in our street", "at the park"),
}

TEMPLATES = (
    "the {neutral} {thing} was {degree} {adjective} .",
    "the {thing} {where} was {adjective} and {other} .",
    "{when} , {who} {verb} the {neutral} {thing} .",
    "{who} {verb} the {thing} {where} {when} .",
    "{who} found the {neutral} {thing} {degree} {adjective} .",
    "{who} said that the {thing} {where} was {adjective} .",
    "the {thing} was {degree} {adjective} , and {who} {verb} it .",
    "it was the most {adjective} {thing} {where} .",
    "{who} {verb} this {adjective} {neutral} {thing} .",
    "{when} , the {neutral} {thing} was {degree} {adjective} .",
    "this is one {adjective} and {other} {thing} .",
)

# Thing -> label -> words of opinion that may be said of it.
Opinions = Mapping[str, Mapping[str, tuple[str, ...]]]


def generate(rng: random.Random) -> dict[str, list[Group]]:
    """Draw the pairs of opposite reviews of each split."""
    adjectives = _divide(ADJECTIVES, rng)
    verbs = _divide(VERBS, rng)
    seen: set[str] = set()
    return {
        split: draw_groups(partial(_draw_group, adjectives[split], verbs[split], rng), count, seen)
        for split, count in GROUPS.items()
    }


def _divide(words: Mapping[str, tuple[str, ...]], rng: random.Random) -> dict[str, Opinions]:
    """Divide the words of opinion between the splits, anew for each thing."""
    train: dict[str, dict[str, tuple[str, ...]]] = {}
    validation: dict[str, dict[str, tuple[str, ...]]] = {}
    for thing in THINGS:
        train[thing], validation[thing] = {}, {}
        for label, candidates in words.items():
            order = tuple(shuffled(candidates, rng))
            held_out = max(2, int(len(order) * VALIDATION_SHARE))
            validation[thing][label], train[thing][label] = order[:held_out], order[held_out:]
    return {"train": train, "validation": validation}


def _draw_group(adjectives: Opinions, verbs: Opinions, rng: random.Random) -> Group:
    thing = pick(THINGS, rng)
    template = pick(TEMPLATES, rng)
    frame = {name: pick(fillers, rng) for name, fillers in SLOTS.items()}
    examples = []
    for label in ADJECTIVES:
        adjective, other = shuffled(adjectives[thing][label], rng)[:2]
        verb = pick(verbs[thing][label], rng)
        text = template.format(thing=thing, adjective=adjective, other=other, verb=verb, **frame)
        examples.append(Example((sentence(text),), label))
    return tuple(examples)
