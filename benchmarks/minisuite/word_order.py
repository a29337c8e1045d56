"""Does the sentence name two things in their usual order? Only the order of the words tells.

A group is a sentence and the same sentence with the two things exchanged, one of them true and one false, so each bag
of words has both labels equally often. Validation has combinations of two things and a phrasing that are not in
training.

In most phrasings the earlier thing comes first if the sentence is true. Were it half of them, neither order of two
things would be true more often than the other, and a model that learns from scratch would have no simpler rule to
start from.
"""

import random
from dataclasses import dataclass
from itertools import combinations

from benchmarks.minisuite.splits import Example, Group, pick, sentence, shuffled

GROUPS = {"train": 1200, "validation": 200}


@dataclass(frozen=True)
class OrderedItems:
    """Things that follow one another.

    Args:
        frames: Openings that say where the order holds.
        items: The things, first to last.
    """

    frames: tuple[str, ...]
    items: tuple[str, ...]


SEQUENCES = (
    OrderedItems(
        ("in any week", "on the timetable", "in most diaries"),
        ("Monday", "Tuesday", "Wednesday", "Thursday"),
    ),
    OrderedItems(
        ("in any year", "on the calendar", "in most countries"),
        ("March", "April", "May", "June"),
    ),
    OrderedItems(
        ("when counting up", "on the ruler", "in the list"),
        ("one", "two", "three", "four"),
    ),
    OrderedItems(
        ("on most days", "at the hotel", "on our trip"), ("breakfast", "lunch", "dinner", "the midnight snack")
    ),
    OrderedItems(("in summer", "on a clear day", "in the mountains"), ("sunrise", "midday", "sunset")),
    OrderedItems(
        ("for most pupils", "in this country", "for her children"),
        ("kindergarten", "primary school", "high school", "college"),
    ),
    OrderedItems(("in the bakery", "with this bread", "for the bakers"), ("mixing", "kneading", "baking", "slicing")),
    OrderedItems(
        ("on the farm", "in the fields", "for the farmers"), ("ploughing", "sowing", "weeding", "harvesting")
    ),
    OrderedItems(
        ("in this case", "for the lawyers", "in the film"), ("the arrest", "the trial", "the verdict", "the appeal")
    ),
    OrderedItems(
        ("on this flight", "for the crew", "at the airport"), ("boarding", "takeoff", "landing", "the arrival")
    ),
)

# Phrasing -> whether it says that x is earlier than y.
TEMPLATES = {
    "{frame} , {x} comes before {y} .": True,
    "as a rule , {x} comes before {y} {frame} .": True,
    "{frame} , {x} comes first and {y} comes later .": True,
    "{frame} , first comes {x} and then comes {y} .": True,
    "{frame} , you get to {x} before {y} .": True,
    "{frame} , we start with {x} and go on to {y} .": True,
    "{frame} , {x} is followed later by {y} .": True,
    "{frame} , {x} leads up to {y} .": True,
    "{frame} , after {x} comes {y} .": True,
    "{frame} , {x} comes after {y} .": False,
    "{frame} , before {x} comes {y} .": False,
}


def generate(rng: random.Random) -> dict[str, list[Group]]:
    """Draw the pairs of mirrored sentences of each split."""
    phrasings = shuffled(
        (
            (template, sequence, pair)
            for sequence in SEQUENCES
            for pair in combinations(sequence.items, 2)
            for template in TEMPLATES
        ),
        rng,
    )
    held_out, known = phrasings[: GROUPS["validation"]], phrasings[GROUPS["validation"] :]
    train = [_mirrored(template, frame, *pair) for template, sequence, pair in known for frame in sequence.frames]
    return {
        "train": shuffled(train, rng)[: GROUPS["train"]],
        "validation": [
            _mirrored(template, pick(sequence.frames, rng), *pair) for template, sequence, pair in held_out
        ],
    }


def _mirrored(template: str, frame: str, earlier: str, later: str) -> Group:
    as_usual = Example((sentence(template.format(frame=frame, x=earlier, y=later)),), _label(TEMPLATES[template]))
    exchanged = Example((sentence(template.format(frame=frame, x=later, y=earlier)),), _label(not TEMPLATES[template]))
    return as_usual, exchanged


def _label(is_true: bool) -> str:
    return "true" if is_true else "false"
