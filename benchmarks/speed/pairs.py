"""Timing two functions in pairs.

How long one run takes says little on a machine whose clock rate and neighbours change. The two runs of a pair follow
each other, so that most of what slows one slows the other, and pairs alternate in which goes first (A B, B A), so that
neither gains from what the other leaves in the caches. What counts is the median of the pairs' ratios.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class PairTimes:
    """Seconds that the two functions took by one clock; entry `i` of each list is of pair `i`.

    Args:
        baseline: Of the function that is compared with.
        candidate: Of the function that should be faster.
    """

    baseline: list[float]
    candidate: list[float]

    @property
    def ratios(self) -> list[float]:
        """How many times faster the candidate was, pair by pair."""
        return [baseline / candidate for baseline, candidate in zip(self.baseline, self.candidate, strict=True)]

    def summary(self) -> dict[str, float]:
        """Return the median and the range of the ratios, and the median seconds of each function."""
        ratios = self.ratios
        return {
            "ratio_median": statistics.median(ratios),
            "ratio_min": min(ratios),
            "ratio_max": max(ratios),
            "baseline_seconds_median": statistics.median(self.baseline),
            "candidate_seconds_median": statistics.median(self.candidate),
        }


def schedule(num_inputs: int, num_pairs: int) -> list[tuple[int, bool]]:
    """Return the input of each pair and whether the baseline goes first.

    Inputs take turns. Each is run as often in one order as in the other, so that `num_pairs` is rounded up to a
    multiple of twice the number of inputs.

    Raises:
        ValueError: If there is no input or no pair.
    """
    if num_inputs < 1 or num_pairs < 1:
        raise ValueError(f"there must be at least one input and one pair, got {num_inputs} and {num_pairs}")
    rounds = 2 * -(-num_pairs // (2 * num_inputs))
    # Inputs start in both orders within a round too, so that a drift over the round favours neither side
    return [(index, (index + turn) % 2 == 0) for turn in range(rounds) for index in range(num_inputs)]


def time_pairs(
    baseline: Callable[[Any], Any],
    candidate: Callable[[Any], Any],
    inputs: Sequence[Any],
    pairs: Sequence[tuple[int, bool]],
    clocks: dict[str, Callable[[], float]] = CLOCKS,
) -> dict[str, PairTimes]:
    """Time both functions on the same inputs, in pairs.

    Args:
        baseline: Called with one input; what it returns is dropped.
        candidate: The same.
        inputs: What the functions are called with.
        pairs: From `schedule`; may be wrapped in a progress bar.
        clocks: Name -> function that returns seconds.

    Returns:
        For each clock, the times of all pairs.
    """
    times: dict[str, PairTimes] = {name: PairTimes([], []) for name in clocks}
    for index, baseline_first in pairs:
        runs = [("baseline", baseline), ("candidate", candidate)]
        for side, function in runs if baseline_first else reversed(runs):
            for name, seconds in _time(function, inputs[index], clocks):
                getattr(times[name], side).append(seconds)
    return times


def _time(
    function: Callable[[Any], Any], value: Any, clocks: dict[str, Callable[[], float]]
) -> Iterator[tuple[str, float]]:
    starts = [clock() for clock in clocks.values()]
    function(value)
    ends = [clock() for clock in clocks.values()]
    for name, start, end in zip(clocks, starts, ends, strict=True):
        yield name, end - start
