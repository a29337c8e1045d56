"""The report's tables, as text in cells; Markdown and HTML show the same ones."""

import shlex
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from rich.filesize import decimal

from benchmarks.report.published import PUBLISHED, published_scores
from benchmarks.report.runs import Average, Estimate, Row, Run, average_rows, suite_tasks

NOTHING = "-"
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether it holds numbers."""

    heading: str
    is_numeric: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        title: What it is.
        columns: The columns.
        rows: Text of the cells.
        notes: Sentences that say what is shown.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns that have nothing in any row."""
        kept = [
            index for index in range(len(self.columns)) if any(row[index] not in ("", NOTHING) for row in self.rows)
        ]
        rows = tuple(tuple(row[index] for index in kept) for row in self.rows)
        return Table(self.title, tuple(self.columns[index] for index in kept), rows, self.notes)


def count_text(value: float) -> str:
    """Write a number with three digits and a prefix: 12345678 as `12.3 M`."""
    for size, prefix in _PREFIXES:
        if value >= 0.9995 * size:
            return f"{float(f'{value / size:.3g}'):g} {prefix}"
    return f"{value:.3g}"


def percent_text(estimate: Estimate | None) -> str:
    """Write 100 x a mean, with its deviation if there are several seeds."""
    if estimate is None:
        return NOTHING
    mean = f"{100 * estimate.mean:.1f}"
    return mean if estimate.deviation is None else f"{mean} ± {100 * estimate.deviation:.1f}"


def results_table(rows: Sequence[Row]) -> Table:
    """Return the scores of a suite's rows."""
    columns = (
        Column("task"),
        Column("model"),
        Column("score (best epoch)", True),
        Column("score (last epoch)", True),
        Column("majority", True),
        Column("published, not ours", True),
        Column("metrics (best epoch)"),
        Column("examples", True),
        Column("n", True),
        Column("seeds"),
        Column("notes"),
    )
    cells = tuple(
        (
            row.first.task,
            row.first.model,
            percent_text(row.best),
            percent_text(row.last),
            NOTHING if row.first.baseline is None else f"{100 * row.first.baseline:.1f}",
            ", ".join(f"{score:.1f} [{number}]" for number, _, score in published_scores(row)) or NOTHING,
            _metrics_text(row),
            " + ".join(map(str, row.first.evaluated_examples.values())) or NOTHING,
            str(len(row.runs)),
            ", ".join(str(run.seed) for run in row.runs),
            "; ".join([*row.marks, *row.differing]),
        )
        for row in rows
    )
    notes = (
        "Scores are 100 x the mean of the task's metrics on the validation splits, MNLI's two splits counted once.",
        "The best epoch is chosen on these splits, so that its score flatters; the last epoch's does not.",
        "± is the standard deviation over n seeds; a single seed has none.",
        "Majority: the most frequent training label is always predicted (regression: the mean).",
    )
    table = Table("Scores", columns, cells, notes)
    if any(map(published_scores, rows)):
        return table
    published = columns.index(Column("published, not ours", True))
    cells = tuple(row[:published] + row[published + 1 :] for row in cells)
    return Table("Scores", columns[:published] + columns[published + 1 :], cells, notes)


def _metrics_text(row: Row) -> str:
    splits = list(row.first.best.metrics)
    parts = []
    for split in splits:
        for name in row.metric_names:
            estimate = row.estimate(lambda run, split=split, name=name: run.best.metrics.get(split, {}).get(name))  # type: ignore[misc]
            parts.append(f"{f'{split} ' if len(splits) > 1 else ''}{name} {percent_text(estimate)}")
    return ", ".join(parts)


def averages_table(rows: Sequence[Row]) -> Table | None:
    """Return the means over a suite's tasks, `None` if nothing has several."""
    averages = average_rows(rows)
    if not averages:
        return None
    columns = (
        Column("model"),
        Column("tasks"),
        Column("mean (best epoch)", True),
        Column("without WNLI (best)", True),
        Column("mean (last epoch)", True),
        Column("without WNLI (last)", True),
        Column("n", True),
        Column("notes"),
    )
    cells = tuple(
        (
            average.label,
            _coverage_text(average),
            percent_text(average.best),
            percent_text(average.best_without_wnli),
            percent_text(average.last),
            percent_text(average.last_without_wnli),
            _counts_text(average),
            "; ".join(_average_marks(average)),
        )
        for average in averages
    )
    is_glue = rows[0].first.suite == "glue"
    name = "GLUE average" if is_glue else "Mean over tasks"
    notes = [
        "Every task counts once, with the mean of its metrics. ± is the standard deviation of the seeds' means, where "
        "all tasks were run with the same seeds.",
    ]
    if is_glue:
        notes.append("It is the average of GLUE only where all 9 tasks are there.")
    if any(average.best_without_wnli for average in averages):
        notes.append("The validation split of WNLI contradicts its training split, hence the columns without it.")
    return Table(name, columns, cells, tuple(notes)).without_empty_columns()


def _coverage_text(average: Average) -> str:
    if not average.missing:
        return f"all {len(average.rows)}"
    missing = f"no {', '.join(average.missing)}"
    return f"{len(average.rows)} of {len(average.rows) + len(average.missing)} ({missing})"


def _counts_text(average: Average) -> str:
    counts = sorted({len(row.runs) for row in average.rows})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _average_marks(average: Average) -> list[str]:
    kinds: dict[str, Callable[[Run], Any]] = {
        "subset data": lambda run: run.subsets,
        "cut training": lambda run: run.train_was_cut,
        "dev-selected": lambda run: run.was_dev_selected,
        "a split is missing": lambda run: run.missing_splits,
    }
    marks = []
    for kind, applies in kinds.items():
        tasks = [row.first.task for row in average.rows if any(map(applies, row.runs))]
        if tasks:
            marks.append(f"{kind}: {', '.join(tasks)}")
    return marks


def costs_table(rows: Sequence[Row]) -> Table | None:
    """Return what models and runs cost, `None` if nothing is known."""
    batch_sizes = sorted({size for row in rows for run in row.runs for size in run.latency})
    columns = (
        Column("task"),
        Column("model"),
        Column("parameters", True),
        Column("by part"),
        Column("FLOPs, forward, an example", True),
        Column("FLOPs, training", True),
        *(Column(f"inference, ms an example, batch of {size}", True) for size in batch_sizes),
        Column("training examples/s", True),
        Column("peak memory", True),
        Column("run, s", True),
    )
    cells = tuple(
        (
            row.first.task,
            row.label,
            _parameters_text(row.first),
            ", ".join(f"{name} {count_text(count)}" for name, count in row.first.parts.items()),
            _estimate_text(row.estimate(lambda run: run.forward_flops), count_text),
            _estimate_text(row.estimate(lambda run: run.training_flops), count_text),
            *(
                _estimate_text(row.estimate(lambda run, size=size: run.latency.get(size)), _milliseconds_text)  # type: ignore[misc]
                for size in batch_sizes
            ),
            _estimate_text(row.estimate(lambda run: run.train_examples_per_second), lambda value: f"{value:.0f}"),
            _estimate_text(row.estimate(lambda run: run.peak_memory), lambda value: decimal(round(value))),
            _estimate_text(row.estimate(lambda run: run.wall_seconds), lambda value: f"{value:.0f}"),
        )
        for row in rows
    )
    table = Table("Costs", columns, cells, ("Means over seeds.",)).without_empty_columns()
    return table if len(table.columns) > 2 else None


def _parameters_text(run: Run) -> str:
    if run.parameters is None:
        return NOTHING
    total, trainable = count_text(run.parameters), run.trainable_parameters
    return total if trainable in (None, run.parameters) else f"{total} ({count_text(trainable or 0)} trained)"


def _estimate_text(estimate: Estimate | None, write: Callable[[float], str]) -> str:
    return NOTHING if estimate is None else write(estimate.mean)


def _milliseconds_text(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


def published_table(rows: Sequence[Row]) -> Table | None:
    """Return where the published figures beside these rows come from, `None` if there are none."""
    used = {number for row in rows for number, _, _ in published_scores(row)}
    cells = tuple(
        (f"[{number}]", published.system, published.source, published.setting)
        for number, published in enumerate(PUBLISHED, start=1)
        if number in used
    )
    if not cells:
        return None
    columns = (Column("number"), Column("system"), Column("source"), Column("how"))
    note = (
        "Published by others, not measured here: single models on the development sets, full training data. They "
        "stand only beside rows that were trained and evaluated on the same data; pretraining and size differ."
    )
    return Table("Published figures", columns, cells, (note,))


def provenance_table(rows: Sequence[Row]) -> Table | None:
    """Return on what and with which versions the runs were made, `None` if none of it is known."""
    columns = (Column("runs", True), Column("machine"), Column("versions"), Column("commit"))
    kinds = Counter(_provenance(run) for row in rows for run in row.runs)
    cells = tuple((str(count), *kind) for kind, count in kinds.items())
    table = Table("Where it ran", columns, cells).without_empty_columns()
    return table if len(table.columns) > 1 else None


def _provenance(run: Run) -> tuple[str, str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    commit = NOTHING if run.commit is None else run.commit[:12] + (" with changes" if run.has_changes else "")
    return run.machine or NOTHING, versions, commit


def commands(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return each command line, the interpreter without its folder, with what it ran."""
    seeds: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for run in row.runs:
            if run.command:
                words = [PurePath(run.command[0]).name, *run.command[1:]]
                seeds[shlex.join(words)][row.label, run.task].append(str(run.seed))
    return [
        (command, [f"{label}, {task}, seed {', '.join(numbers)}" for (label, task), numbers in ran.items()])
        for command, ran in seeds.items()
    ]


def speed_table(report: dict[str, Any]) -> Table:
    """Return a measurement of `benchmarks.speed`."""
    columns = (
        Column("case"),
        Column("baseline"),
        Column("candidate"),
        Column("baseline, ms", True),
        Column("candidate, ms", True),
        Column("times faster, wall clock", True),
        Column("times faster, CPU time", True),
        Column("pairs", True),
        Column("wanted", True),
    )
    cells = tuple(
        (
            f"{case['name']}: {case['description']}",
            case["baseline"],
            case["candidate"],
            f"{1000 * case['wall']['baseline_seconds_median']:.3g}",
            f"{1000 * case['wall']['candidate_seconds_median']:.3g}",
            _ratio_text(case["wall"]),
            _ratio_text(case["cpu"]),
            str(case["pairs"]),
            _wanted_text(case),
        )
        for case in report["cases"]
    )
    notes = ["Medians of the pairs; in brackets the range of the ratios.", *_speed_circumstances(report)]
    return Table(f"Speed of {report['family']}", columns, cells, tuple(notes))


def _ratio_text(times: dict[str, float]) -> str:
    return f"{times['ratio_median']:.2f} ({times['ratio_min']:.2f} to {times['ratio_max']:.2f})"


def _wanted_text(case: dict[str, Any]) -> str:
    if case.get("wanted") is None:
        return NOTHING
    return f"{case['wanted']:.2f}" + (", missed" if case.get("is_fast_enough") is False else "")


def _speed_circumstances(report: dict[str, Any]) -> list[str]:
    differences = [value for case in report["cases"] for value in (case.get("differences") or {}).values()]
    notes = []
    if differences:
        notes.append(f"Before timing, both sides of each case computed the same, to within {max(differences):.0e}.")
    machine, versions = report.get("platform") or {}, report.get("versions") or {}
    parts = [machine.get("cpu"), f"{machine['num_threads']} threads" if machine.get("num_threads") else None]
    parts += [f"{name} {versions[name]}" for name in ("torch", "transformers", "hf_lineage") if versions.get(name)]
    described = ", ".join(str(part) for part in [*parts, report.get("date")] if part)
    return [*notes, f"{described}."] if described else notes


def memory_table(report: dict[str, Any]) -> Table:
    """Return a measurement of `benchmarks.speed.memory`."""
    columns = (Column("case"), Column("transformers'", True), Column("ours", True), Column("ours / theirs", True))
    cells = tuple(
        (
            case["name"],
            *(_median_bytes_text(case["bytes"].get(side)) for side in ("baseline", "candidate")),
            f"{case['ratio_of_medians']:.2f}",
        )
        for case in report["cases"]
    )
    note = "Memory that a run takes at its highest, median of several processes."
    return Table(f"Peak memory of {report['family']}", columns, cells, (note,))


def _median_bytes_text(sizes: Sequence[float] | None) -> str:
    return decimal(round(statistics.median(sizes))) if sizes else NOTHING


def suite_title(suite: str) -> str:
    """Return a suite's heading."""
    return {"glue": "GLUE", "zh": "Chinese"}.get(suite, suite) if suite_tasks(suite) else f"{suite} (unknown suite)"
