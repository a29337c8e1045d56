"""From groups of examples to a `DatasetDict` with balanced splits that share no text."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from benchmarks.glue.tasks import Task

T = TypeVar("T")

# How many draws in a row may repeat a known text before the vocabulary counts as used up.
MAX_REPEATS = 10_000


@dataclass(frozen=True)
class Example:
    """A labelled text.

    Args:
        texts: One text for each text column of the task: tokens separated by spaces.
        label: Name of the label.
    """

    texts: tuple[str, ...]
    label: str


# Examples that differ only in what the task is about, with every label equally often. A group is never divided
# between splits, so a split is balanced in its labels and in everything else that the examples of a group share.
Group = tuple[Example, ...]


def pick(items: Sequence[T], rng: random.Random) -> T:
    """Draw one item.

    Only `rng.random()` is used: it is the one method whose sequence Python promises to keep between versions.
    """
    return items[int(rng.random() * len(items))]


def shuffled(items: Iterable[T], rng: random.Random) -> list[T]:
    """Return the items in random order, drawn as in `pick` from `rng.random()` alone."""
    return sorted(items, key=lambda _: rng.random())


def sentence(text: str) -> str:
    """Return the text with single spaces and its first letter in upper case."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]


def draw_groups(draw: Callable[[], Group], count: int, seen: set[str]) -> list[Group]:
    """Draw groups until `count` of them have texts that never occurred before.

    A group that pairs a text with itself is not counted either.

    Args:
        draw: Returns a random group. It may use a text in several of its examples.
        count: How many groups to return.
        seen: Every text used so far. The texts of the returned groups are added.

    Raises:
        RuntimeError: If `draw` keeps returning such groups.
    """
    groups: list[Group] = []
    repeats = 0
    while len(groups) < count:
        group = draw()
        texts = {text for example in group for text in example.texts}
        if texts & seen or any(len(set(example.texts)) < len(example.texts) for example in group):
            repeats += 1
            if repeats == MAX_REPEATS:
                raise RuntimeError(f"only {len(groups)} of {count} groups have new texts: the templates are used up")
            continue
        repeats = 0
        seen |= texts
        groups.append(group)
    return groups


def build_dataset(task: Task, splits: Mapping[str, Sequence[Group]], rng: random.Random) -> DatasetDict:
    """Shuffle the examples of each split and give them GLUE's columns.

    Args:
        task: Supplies the names of the text columns and of the labels.
        splits: The groups of each split.
        rng: Source of the order.

    Returns:
        For each split, a dataset with the task's text columns (string), `label` (`ClassLabel`) and `idx` (int32, the
        row in the split).
    """
    features = Features(
        {
            **{column: Value("string") for column in task.text_columns},
            "label": ClassLabel(names=list(task.labels)),
            "idx": Value("int32"),
        }
    )
    datasets = DatasetDict()
    for split, groups in splits.items():
        examples = shuffled((example for group in groups for example in group), rng)
        columns: dict[str, list] = {
            column: [example.texts[position] for example in examples]
            for position, column in enumerate(task.text_columns)
        }
        columns["label"] = [task.labels.index(example.label) for example in examples]
        columns["idx"] = list(range(len(examples)))
        datasets[split] = Dataset.from_dict(columns, features=features)
    return datasets
