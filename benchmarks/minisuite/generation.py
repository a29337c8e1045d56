"""Generating a task of the suite by name."""

import random
from collections.abc import Callable

from datasets import DatasetDict

from benchmarks.minisuite import agreement, sentiment, word_order, word_sense
from benchmarks.minisuite.splits import Group, build_dataset
from benchmarks.minisuite.tasks import MINISUITE_TASKS

GENERATORS: dict[str, Callable[[random.Random], dict[str, list[Group]]]] = {
    "sentiment": sentiment.generate,
    "word_order": word_order.generate,
    "agreement": agreement.generate,
    "word_sense": word_sense.generate,
}


def load_task(name: str, seed: int = 0) -> DatasetDict:
    """Generate a task of the suite.

    The text is the same for a seed on every platform and version of Python. It is written as tokens separated by
    spaces, so that every way of splitting it into words gives the same words.

    Args:
        name: A key of `MINISUITE_TASKS`.
        seed: Chooses the sentences. At least 0.

    Returns:
        The splits `train` and `validation`. Their columns are the task's text columns (string), `label`
        (`datasets.ClassLabel`) and `idx` (int32). Each label makes up exactly the same share of a split.

    Raises:
        ValueError: If there is no such task, or the seed is not a number from 0 on.
    """
    if name not in GENERATORS:
        raise ValueError(f"unknown task {name!r}: choose one of {', '.join(GENERATORS)}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"`seed` has to be an integer of at least 0, got {seed!r}")
    rng = random.Random(seed)
    splits = GENERATORS[name](rng)
    return build_dataset(MINISUITE_TASKS[name], splits, rng)
