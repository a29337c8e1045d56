"""Means over the tasks of a suite."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.glue.tasks import get_suite
from benchmarks.report.runs import Estimate, Row, Run

_WNLI = "wnli"


@dataclass(frozen=True)
class Average:
    """Mean over the tasks of one model and settings.

    Args:
        label: The rows' label.
        rows: One for each task.
        best: Mean of the best epochs' scores. It has a deviation if every task was run with the same seeds: that of
            the means of each seed.
        last: The same of the last epochs.
        best_without_wnli: Mean over the other tasks, `None` if WNLI is not among them.
        last_without_wnli: The same of the last epochs.
        missing: Tasks of the suite that were not run, as far as they have a training split.
    """

    label: str
    rows: tuple[Row, ...]
    best: Estimate
    last: Estimate
    best_without_wnli: Estimate | None
    last_without_wnli: Estimate | None
    missing: tuple[str, ...]


def average_rows(rows: Sequence[Row]) -> list[Average]:
    """Return the mean over tasks of everything that has one row in each of several tasks.

    Args:
        rows: Of one suite, from `group_runs`.
    """
    by_label: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_label[row.label].append(row)
    averages = []
    for label, group in by_label.items():
        # Diagnostic sets such as AX are no part of an average.
        counted = tuple(row for row in group if row.first.task in _trained_tasks(row.first.suite, row.first.task))
        if len(counted) < 2:
            continue
        others = [row for row in counted if row.first.task != _WNLI]
        has_wnli = 0 < len(others) < len(counted)
        present = {row.first.task for row in counted}
        averages.append(
            Average(
                label,
                counted,
                _mean_over_tasks(counted, lambda run: run.best.score),
                _mean_over_tasks(counted, lambda run: run.last.score),
                _mean_over_tasks(others, lambda run: run.best.score) if has_wnli else None,
                _mean_over_tasks(others, lambda run: run.last.score) if has_wnli else None,
                tuple(task for task in _trained_tasks(counted[0].first.suite) if task not in present),
            )
        )
    return averages


def _trained_tasks(suite: str, otherwise: str | None = None) -> list[str]:
    try:
        return [name for name, task in get_suite(suite).items() if task.train_split is not None]
    except ValueError:
        return [otherwise] if otherwise else []


def _mean_over_tasks(rows: Sequence[Row], value: Callable[[Run], float]) -> Estimate:
    seeds = {tuple(run.seed for run in row.runs) for row in rows}
    if len(seeds) == 1:
        columns = zip(*([value(run) for run in row.runs] for row in rows), strict=True)
        estimate = Estimate.of(map(statistics.fmean, columns))
    else:
        means = [statistics.fmean(map(value, row.runs)) for row in rows]
        estimate = Estimate(statistics.fmean(means), None, min(map(len, seeds)))
    assert estimate is not None  # there are rows, and rows have runs
    return estimate
