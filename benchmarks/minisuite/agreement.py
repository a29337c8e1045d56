"""Does the verb agree with its subject across nouns of the other number? Only the structure tells.

A group is a sentence and the same sentence with the subject and the noun beside it exchanged. One of the two nouns is
singular and one plural, so exactly one of the sentences is acceptable and each bag of words has both labels equally
often. A further noun, before the subject or right before the verb, is of either number in both sentences, so that
neither the first noun nor the last one gives the label away.

Most verbs are plural. Were both numbers as frequent, neither order of two nouns would be acceptable more often than
the other, and a model that learns from scratch would have no simpler rule to start from.
"""

import random
from dataclasses import dataclass
from functools import partial

from benchmarks.minisuite.splits import Example, Group, draw_groups, pick, sentence, shuffled

GROUPS = {"train": 1200, "validation": 250}

PLURAL_VERB_SHARE = 0.75

# A word or phrase in the singular and in the plural.
Forms = tuple[str, str]


@dataclass(frozen=True)
class Domain:
    """Nouns that may stand beside one another, and what is said of them.

    Args:
        nouns: Nouns, each to be used as the subject or beside it.
        clauses: Relative clauses about the subject. Their verbs have one form for both numbers.
        predicates: Finite verb phrases.
    """

    nouns: tuple[Forms, ...]
    clauses: tuple[str, ...]
    predicates: tuple[Forms, ...]


DOMAINS = (
    Domain(
        nouns=(
            ("dog", "dogs"),
            ("cat", "cats"),
            ("horse", "horses"),
            ("goat", "goats"),
            ("duck", "ducks"),
            ("mouse", "mice"),
            ("goose", "geese"),
            ("cow", "cows"),
            ("rabbit", "rabbits"),
            ("bird", "birds"),
        ),
        clauses=("that chased the {noun}", "that the {noun} followed", "that saw the {noun}"),
        predicates=(
            ("is asleep", "are asleep"),
            ("was hungry", "were hungry"),
            ("has run away", "have run away"),
            ("looks tired", "look tired"),
            ("makes noise", "make noise"),
            ("likes carrots", "like carrots"),
        ),
    ),
    Domain(
        nouns=(
            ("teacher", "teachers"),
            ("doctor", "doctors"),
            ("nurse", "nurses"),
            ("farmer", "farmers"),
            ("child", "children"),
            ("woman", "women"),
            ("man", "men"),
            ("student", "students"),
            ("lawyer", "lawyers"),
            ("singer", "singers"),
        ),
        clauses=("who met the {noun}", "whom the {noun} invited", "who helped the {noun}"),
        predicates=(
            ("is late", "are late"),
            ("was happy", "were happy"),
            ("has gone home", "have gone home"),
            ("looks worried", "look worried"),
            ("works on Sundays", "work on Sundays"),
            ("knows the answer", "know the answer"),
        ),
    ),
    Domain(
        nouns=(
            ("box", "boxes"),
            ("chair", "chairs"),
            ("lamp", "lamps"),
            ("table", "tables"),
            ("bag", "bags"),
            ("bottle", "bottles"),
            ("shelf", "shelves"),
            ("knife", "knives"),
            ("clock", "clocks"),
            ("cup", "cups"),
        ),
        clauses=("that stood near the {noun}", "that hid the {noun}", "that the {noun} leaned against"),
        predicates=(
            ("is dirty", "are dirty"),
            ("was broken", "were broken"),
            ("has fallen over", "have fallen over"),
            ("looks new", "look new"),
            ("costs too much", "cost too much"),
            ("belongs to me", "belong to me"),
        ),
    ),
)

# Relations that hold both ways, so that the exchanged sentence makes as much sense.
PREPOSITIONS = ("near", "next to", "behind", "beside", "in front of", "across from")

OPENINGS = (
    ("near the tree", "near the trees"),
    ("behind the house", "behind the houses"),
    ("below the window", "below the windows"),
    ("beyond the bridge", "beyond the bridges"),
    ("in the picture", "in the pictures"),
)

SHAPES = (
    "the {subject} {modifier} {predicate} .",
    "the {subject} {modifier} {preposition} the {further} {predicate} .",
    "{opening} , the {subject} {modifier} {predicate} .",
)


def generate(rng: random.Random) -> dict[str, list[Group]]:
    """Draw the pairs of mirrored sentences of each split."""
    seen: set[str] = set()
    return {split: draw_groups(partial(_draw_group, rng), count, seen) for split, count in GROUPS.items()}


def _draw_group(rng: random.Random) -> Group:
    domain = pick(DOMAINS, rng)
    singular_noun, plural_noun, further = shuffled(domain.nouns, rng)[:3]
    singular, plural = singular_noun[0], plural_noun[1]
    verb_number = int(rng.random() < PLURAL_VERB_SHARE)
    frame = {
        "predicate": pick(domain.predicates, rng)[verb_number],
        "opening": pick(pick(OPENINGS, rng), rng),
        "preposition": pick(PREPOSITIONS, rng),
        "further": pick(further, rng),
    }
    modifier = pick((f"{pick(PREPOSITIONS, rng)} the {{noun}}", pick(domain.clauses, rng)), rng)
    shape = pick(SHAPES, rng)

    def example(subject: str, attractor: str, subject_number: int) -> Example:
        text = shape.format(subject=subject, modifier=modifier.format(noun=attractor), **frame)
        return Example((sentence(text),), "acceptable" if subject_number == verb_number else "unacceptable")

    return example(singular, plural, 0), example(plural, singular, 1)
