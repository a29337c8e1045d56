"""Runs, and the rows of a table that several seeds make up."""

import dataclasses
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from benchmarks.glue.tasks import get_suite

# Arguments that may differ between runs of one row.
_NOT_SETTINGS = (
    "task_name",
    "seeds",
    "output_dir",
    "overwrite_output_dir",
    "save_model",
    "dataloader_num_workers",
    "save_steps",
    "report_to",
    "logging_steps",
    "predict",
)
# Letters that mark scores which must not be compared with those of other data or another choice of settings.
FLAGS = {
    "t": "trained on a subset of the training data",
    "v": "evaluated on a subset of the validation data",
    "c": "training cut to fewer examples than there are",
    "d": "settings selected by the score on the validation data",
    "m": "a split is missing",
    "e": "evaluated only",
}


@dataclass(frozen=True)
class Epoch:
    """What a model scored after an epoch.

    Args:
        number: From 1, or 0 for a model that was only evaluated.
        score: Mean over the splits of the mean of the metrics, from 0 to 1 where the metrics are.
        metrics: For each validation split its metrics.
        confusion: For some splits, how many examples of each true label (row) were predicted as each label (column).
        notes: What the metrics are to be read with.
    """

    number: int
    score: float
    metrics: Mapping[str, Mapping[str, float]]
    confusion: Mapping[str, tuple[tuple[int, ...], ...]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One model, fine-tuned on one task with one seed.

    Args:
        path: Where it was read.
        suite: Name of the suite.
        task: Name of the task.
        model: What was fine-tuned.
        seed: The seed.
        best: The epoch of the highest score.
        last: The last epoch.
        epochs: All epochs.
        baseline: Score of always predicting the most frequent training label, `None` without a training split.
        evaluated_examples: For each validation split, how many.
        split_rows: For each split that is trained or evaluated on, how many rows were read.
        bad_rows: For each of them, how many rows were left out because they are damaged.
        subsets: Names of the splits that are not complete.
        missing_splits: Names of the splits that were not there.
        train_examples: How many examples an epoch had, 0 if the model was only evaluated.
        train_was_cut: Whether that is less than the training split has.
        arguments: What the run was told.
        num_processes: How many processes shared the batches.
        mixed_precision: Precision of the forward pass.
        machine: What it ran on, in words.
        parameters: How many the model has.
        trainable_parameters: How many of them were trained.
        parts: How many each part has.
        forward_flops: Floating-point operations of a forward pass, an example.
        training_flops: Floating-point operations of the whole training.
        latency: Seconds that inference takes an example, by batch size.
        peak_memory: Bytes.
        wall_seconds: Duration of the run.
        train_examples_per_second: Speed of the training.
        was_dev_selected: Whether settings were chosen by the score on the validation splits.
        selected: Which settings were chosen.
        num_tried: Among how many settings.
        stopped_early: Whether the score ended the training before the last epoch.
        command: The command line.
        versions: Of the packages.
        commit: Of the checkout.
        has_changes: Whether files differed from the commit.
    """

    path: str
    suite: str
    task: str
    model: str
    seed: int
    best: Epoch
    last: Epoch
    epochs: tuple[Epoch, ...]
    baseline: float | None
    evaluated_examples: Mapping[str, int]
    split_rows: Mapping[str, int]
    bad_rows: Mapping[str, int]
    subsets: tuple[str, ...]
    missing_splits: tuple[str, ...]
    train_examples: int
    train_was_cut: bool
    arguments: Mapping[str, Any]
    num_processes: int | None
    mixed_precision: str | None
    machine: str
    parameters: int | None
    trainable_parameters: int | None
    parts: Mapping[str, int]
    forward_flops: float | None
    training_flops: float | None
    latency: Mapping[int, float]
    peak_memory: float | None
    wall_seconds: float | None
    train_examples_per_second: float | None
    was_dev_selected: bool
    selected: Mapping[str, Any]
    num_tried: int
    stopped_early: bool
    command: tuple[str, ...]
    versions: Mapping[str, str]
    commit: str | None
    has_changes: bool

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The arguments that must be equal for runs to share a row."""
        return {name: value for name, value in self.arguments.items() if name not in _NOT_SETTINGS}

    @cached_property
    def circumstances(self) -> dict[str, Any]:
        """What must be equal besides, though no argument tells it."""
        return {
            "num_processes": self.num_processes,
            "mixed_precision": self.mixed_precision,
            "parameters": self.parameters,
            "train_examples": self.train_examples,
            **{f"{split} rows": rows for split, rows in self.split_rows.items()},
            "subsets": self.subsets,
        }


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Args:
        mean: The mean.
        deviation: The standard deviation of the sample (divided by n - 1), `None` for a single seed.
        count: Number of seeds.
    """

    mean: float
    deviation: float | None
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Estimate | None":
        """Return the estimate from the values that are there, `None` if there is none."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None, len(known))


@dataclass(frozen=True)
class Row:
    """Runs that differ in nothing but their seed.

    Args:
        runs: Ordered by seed.
        differing: The settings, as text, that tell them from other runs of the same model.
    """

    runs: tuple[Run, ...]
    differing: tuple[str, ...] = ()

    @property
    def first(self) -> Run:
        """One of the runs, for what they have in common."""
        return self.runs[0]

    @property
    def label(self) -> str:
        """The model, with the settings that differ."""
        return f"{self.first.model} ({', '.join(self.differing)})" if self.differing else self.first.model

    @property
    def best(self) -> Estimate:
        """Score of the best epoch."""
        return self._score(lambda run: run.best.score)

    @property
    def last(self) -> Estimate:
        """Score of the last epoch."""
        return self._score(lambda run: run.last.score)

    def _score(self, value: Callable[[Run], float]) -> Estimate:
        estimate = Estimate.of(map(value, self.runs))
        assert estimate is not None  # a row has at least one run
        return estimate

    def estimate(self, value: Callable[[Run], float | None]) -> Estimate | None:
        """Return the mean over seeds of anything that a run may have."""
        return Estimate.of(map(value, self.runs))

    @property
    def flags(self) -> str:
        """The letters of `FLAGS` that hold."""
        first = self.first
        holds = {
            "t": "train" in first.subsets,
            "v": any(name != "train" for name in first.subsets),
            "c": first.train_was_cut,
            "d": any(run.was_dev_selected for run in self.runs),
            "m": bool(first.missing_splits),
            "e": not first.train_examples,
        }
        return "".join(flag for flag in FLAGS if holds[flag])

    @property
    def metric_names(self) -> list[str]:
        """Names of the task's metrics, in the order in which they were reported."""
        return list(dict.fromkeys(name for metrics in self.first.best.metrics.values() for name in metrics))

    @property
    def marks(self) -> list[str]:
        """What must be known before the score is compared with another."""
        first = self.first
        marks = [f"{name} is a subset ({first.split_rows[name]} rows)" for name in first.subsets]
        marks += [f"{count} damaged rows of {name} left out" for name, count in first.bad_rows.items() if count]
        if first.train_was_cut:
            marks.append(f"trained on {first.train_examples} examples")
        if not first.train_examples:
            marks.append("evaluated only")
        marks += [f"no {name}" for name in first.missing_splits]
        if any(run.was_dev_selected for run in self.runs):
            marks.append(_selection_text(self.runs))
        stopped = sum(run.stopped_early for run in self.runs)
        if stopped:
            marks.append(f"stopped early ({stopped} of {len(self.runs)} seeds)")
        for what, values in (
            ("commits", {(run.commit, run.has_changes) for run in self.runs}),
            ("package versions", {json.dumps(run.versions, sort_keys=True) for run in self.runs}),
            ("machines", {run.machine for run in self.runs}),
        ):
            if len(values) > 1:
                marks.append(f"seeds ran with different {what}")
        notes = Counter(note for run in self.runs for note in run.best.notes)
        return marks + [f"{note} ({count} of {len(self.runs)} seeds)" for note, count in notes.items()]

    def confusion(self, split: str) -> list[list[int]] | None:
        """Sum the confusion matrices of a split over seeds, at the best epoch; `None` unless all have one."""
        matrices = [run.best.confusion.get(split) for run in self.runs]
        known = [matrix for matrix in matrices if matrix]
        if len(known) < len(matrices) or len({len(matrix) for matrix in known}) != 1:
            return None
        return [[sum(counts) for counts in zip(*rows, strict=True)] for rows in zip(*known, strict=True)]


def _selection_text(runs: Sequence[Run]) -> str:
    tried = max(run.num_tried for run in runs)
    chosen = dict.fromkeys(f"{name}={value}" for run in runs for name, value in run.selected.items())
    among = f"dev-selected among {tried} settings" if tried else "dev-selected"
    return f"{among}: {', '.join(chosen)}" if chosen else among


def group_runs(runs: Iterable[Run]) -> list[Row]:
    """Put runs that differ only in their seed into one row, in the order of the suite's tasks.

    Raises:
        ValueError: If two runs of a row have the same seed.
    """
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        key = [run.suite, run.task, run.model, run.settings, run.circumstances]
        groups[json.dumps(key, sort_keys=True)].append(run)
    rows = [Row(tuple(sorted(group, key=lambda run: run.seed))) for group in groups.values()]
    for row in rows:
        _require_different_seeds(row)
    labelled = [dataclasses.replace(row, differing=_differing_settings(row, rows)) for row in rows]
    return sorted(labelled, key=_order)


def _require_different_seeds(row: Row) -> None:
    by_seed: dict[int, Run] = {}
    for run in row.runs:
        if run.seed in by_seed:
            raise ValueError(
                f"{run.path} and {by_seed[run.seed].path} are runs of the same model, task, settings and seed; a mean "
                "would count the seed twice. Give only one of them."
            )
        by_seed[run.seed] = run


def _differing_settings(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what tells a row from others of the same suite and model.

    The settings that differ in some task are named in all, so that a model's rows have the same label in every task.
    """
    first = row.first
    by_task: dict[str, list[Run]] = defaultdict(list)
    for other in rows:
        if (other.first.suite, other.first.model) == (first.suite, first.model):
            by_task[other.first.task].append(other.first)
    told = dict.fromkeys(name for runs in by_task.values() for name in _differing([run.settings for run in runs]))
    peers = by_task[first.task]
    seen = _differing([peer.circumstances for peer in peers])
    # What was found differs mostly because what was told differs, which says enough.
    if len({json.dumps(peer.settings, sort_keys=True) for peer in peers}) == len(peers):
        seen = []
    return (
        *(f"{name}={first.settings.get(name)}" for name in told),
        *(f"{name}={first.circumstances.get(name)}" for name in seen),
    )


def _differing(several: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for one in several for name in one)
    return [name for name in names if any(one.get(name) != several[0].get(name) for one in several)]


def suite_tasks(suite: str) -> list[str]:
    """Names of a suite's tasks in their order; none of a suite that this version does not know."""
    try:
        return list(get_suite(suite))
    except ValueError:
        return []


def _order(row: Row) -> tuple[str, int, str, str]:
    names, task = suite_tasks(row.first.suite), row.first.task
    return row.first.suite, names.index(task) if task in names else len(names), task, row.label.casefold()


def split_suites(rows: Sequence[Row]) -> list[list[Row]]:
    """Put the rows of each suite into a list of their own; suites are never averaged together."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row.first.suite)]
