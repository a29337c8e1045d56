"""What is timed, and the check that both sides compute the same before it is."""

import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from tqdm import tqdm
from transformers.utils import logging as transformers_logging

from benchmarks.speed.pairs import PairTimes, schedule, time_pairs


@dataclass(frozen=True)
class Workload:
    """Two implementations of one computation, with what they compute on.

    Args:
        baseline: Runs the implementation that is compared with on one input.
        candidate: Runs ours.
        inputs: Batches; each is timed as often as any other.
        differences: Runs both on one input and returns the largest difference of each thing compared.
        facts: Numbers that say what the inputs are, for the report.
    """

    baseline: Callable[[Any], Any]
    candidate: Callable[[Any], Any]
    inputs: Sequence[Any]
    differences: Callable[[Any], dict[str, float]]
    facts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One comparison.

    Args:
        name: What the command line calls it.
        description: What both sides do.
        baseline: Name of the implementation that is compared with.
        candidate: Name of ours.
        wanted: The least ratio of baseline to candidate that the median should reach; `None` for information only.
        tolerance: The largest difference at which both count as the same computation.
        build: Makes the models and the inputs.
    """

    name: str
    description: str
    baseline: str
    candidate: str
    wanted: float | None
    tolerance: float
    build: Callable[[], Workload]


@dataclass(frozen=True)
class CaseResult:
    """What one case measured: the largest differences, and by each clock the times of all pairs."""

    case: Case
    facts: dict[str, float]
    differences: dict[str, float]
    times: dict[str, PairTimes]

    @property
    def is_fast_enough(self) -> bool | None:
        """Whether the median ratio by the wall clock reaches the wanted one, `None` where none is wanted."""
        if self.case.wanted is None:
            return None
        return self.times["wall"].summary()["ratio_median"] >= self.case.wanted


def run_case(case: Case, num_pairs: int, show_progress: bool = False) -> CaseResult:
    """Check that both sides agree on every input, run each once more to warm up, and time them.

    Args:
        case: What to run.
        num_pairs: How many pairs at least; see `schedule`.
        show_progress: Whether to show a progress bar on stderr.

    Raises:
        ValueError: If the two sides differ by more than the case's tolerance.
    """
    workload = case.build()
    differences = check_agreement(case, workload)
    for value in workload.inputs:
        workload.baseline(value)
        workload.candidate(value)
    pairs = schedule(len(workload.inputs), num_pairs)
    bar = tqdm(pairs, desc=case.name, unit="pair", leave=False, disable=not show_progress)
    times = time_pairs(workload.baseline, workload.candidate, workload.inputs, bar)
    return CaseResult(case, workload.facts, differences, times)


def run_case_alone(case: Case, num_pairs: int, threads: int, show_progress: bool = False) -> CaseResult:
    """Do the same in a process of its own.

    What earlier cases of a process took from the system and gave back decides how often later ones have to ask it for
    memory, which made the ratio of one case differ by a quarter with what ran before it.

    Args:
        case: What to run.
        num_pairs: How many pairs at least.
        threads: Threads that torch uses.
        show_progress: Whether to show a progress bar on stderr.

    Raises:
        ValueError: If the two sides differ by more than the case's tolerance.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start, (threads,)) as pool:
        return pool.submit(run_case, case, num_pairs, show_progress).result()


def _start(threads: int) -> None:
    torch.set_num_threads(threads)
    # One line for each model that is made from a checkpoint would hide what matters
    transformers_logging.disable_progress_bar()


def check_agreement(case: Case, workload: Workload) -> dict[str, float]:
    """Return the largest difference over all inputs of each thing compared.

    Raises:
        ValueError: If one is above the case's tolerance.
    """
    largest: dict[str, float] = defaultdict(float)
    for value in workload.inputs:
        for what, difference in workload.differences(value).items():
            largest[what] = max(largest[what], difference)
    too_large = [f"{what} by {difference:.2e}" for what, difference in largest.items() if difference > case.tolerance]
    if too_large:
        raise ValueError(
            f"{case.name}: {case.candidate} and {case.baseline} differ in {', '.join(too_large)}, "
            f"at most {case.tolerance:.0e} is allowed; times of different computations say nothing"
        )
    return dict(largest)


def largest_difference(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest absolute difference of two tensors, infinity where either is NaN or infinite.

    Raises:
        ValueError: If their shapes differ.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"cannot compare tensors of shapes {tuple(actual.shape)} and {tuple(expected.shape)}")
    difference = (actual - expected).abs().max().item()
    return difference if difference < float("inf") else float("inf")


def relative_difference(actual: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> float:
    """Return the largest absolute difference over all tensors, as a fraction of the largest expected value.

    One scale for all: gradients that are 0 but for rounding, such as those of key biases, have none of their own.

    Raises:
        ValueError: If the names or the shapes differ.
    """
    if set(actual) != set(expected):
        raise ValueError(f"only one side has {sorted(set(actual) ^ set(expected))}")
    largest = max(largest_difference(actual[name], expected[name]) for name in expected)
    return largest / max(values.abs().max().item() for values in expected.values())
