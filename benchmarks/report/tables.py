"""The report's tables, as text in cells; Markdown and HTML show the same ones."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.report.averages import Average, average_rows
from benchmarks.report.published import PUBLISHED, published_scores
from benchmarks.report.runs import FLAGS, Estimate, Row, Run, suite_tasks

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
        num_references: How many of the last rows are not of the runs themselves, but to compare with.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    num_references: int = 0

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns that have nothing in any row."""
        kept = [
            index for index in range(len(self.columns)) if any(row[index] not in ("", NOTHING) for row in self.rows)
        ]
        rows = tuple(tuple(row[index] for index in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in kept), rows=rows)


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


def overview_table(rows: Sequence[Row]) -> Table:
    """Return the scores of a suite, a column for each task, above the majority baselines and published figures."""
    tasks = list(dict.fromkeys(row.first.task for row in rows))
    columns = (Column("model"), *(Column(task, True) for task in tasks), Column("n", True))
    by_label: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row.label.casefold()):
        by_label[row.label][row.first.task] = row
    cells = []
    for label, own in by_label.items():
        scores = [_flagged_text(own[task]) if task in own else NOTHING for task in tasks]
        cells.append((label, *scores, _range_text(len(row.runs) for row in own.values())))
    cells.append(("majority class", *_by_task(tasks, _baselines(rows)), NOTHING))
    for number, published in enumerate(PUBLISHED, start=1):
        figures = {row.first.task: found[number] for row in rows if number in (found := published_scores(row))}
        if figures:
            cells.append((f"[{number}] {published.system} (published, not ours)", *_by_task(tasks, figures), NOTHING))
    flags = {flag for row in rows for flag in row.flags}
    notes = [
        "Score after the last epoch: 100 x the mean of the task's metrics on the validation splits, MNLI's two splits "
        "counted once. ± is the standard deviation over n seeds; a single seed has none.",
        *(f"({flag}): {meaning}." for flag, meaning in FLAGS.items() if flag in flags),
    ]
    return Table("Scores by model", columns, tuple(cells), tuple(notes), len(cells) - len(by_label))


def _flagged_text(row: Row) -> str:
    return f"{percent_text(row.last)} ({row.flags})" if row.flags else percent_text(row.last)


def _baselines(rows: Sequence[Row]) -> dict[str, float]:
    """Return the majority baseline of each task x 100, without tasks whose rows differ in it."""
    found: dict[str, set[float]] = defaultdict(set)
    for row in rows:
        if row.first.baseline is not None:
            found[row.first.task].add(100 * row.first.baseline)
    return {task: values.pop() for task, values in found.items() if len(values) == 1}


def _by_task(tasks: Sequence[str], figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[task]:.1f}" if task in figures else NOTHING for task in tasks]


def _range_text(counts: Iterable[int]) -> str:
    different = sorted({*counts})
    return str(different[0]) if len(different) == 1 else f"{different[0]} to {different[-1]}"


def results_table(rows: Sequence[Row]) -> Table:
    """Return the scores of a suite's rows."""
    columns = (
        Column("task"),
        Column("model"),
        Column("score (best epoch)", True),
        Column("score (last epoch)", True),
        Column("majority", True),
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
        "The best epoch is chosen on these splits, so that its score flatters; the last epoch is not chosen.",
        "± is the standard deviation over n seeds; a single seed has none.",
        "Majority: the most frequent label of the training data (without any, of the validation data) is always "
        "predicted, or the mean of a regression's.",
    )
    return Table("Scores of every task", columns, cells, notes)


def _metrics_text(row: Row) -> str:
    splits = list(row.first.best.metrics)
    parts = []
    for split in splits:
        for name in row.metric_names:
            estimate = Estimate.of(run.best.metrics.get(split, {}).get(name) for run in row.runs)
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
            _range_text(len(row.runs) for row in average.rows),
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
    if not suite_tasks(average.rows[0].first.suite):
        return str(len(average.rows))
    if not average.missing:
        return f"all {len(average.rows)}"
    missing = f"no {', '.join(average.missing)}"
    return f"{len(average.rows)} of {len(average.rows) + len(average.missing)} ({missing})"


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


def published_table(rows: Sequence[Row]) -> Table | None:
    """Return where the published figures beside these rows come from, `None` if there are none."""
    used = {number for row in rows for number in published_scores(row)}
    cells = tuple(
        (f"[{number}]", published.system, published.source, published.setting)
        for number, published in enumerate(PUBLISHED, start=1)
        if number in used
    )
    if not cells:
        return None
    columns = (Column(""), Column("system"), Column("source"), Column("how"))
    note = (
        "Published by others, not measured here: single models on the development sets, full training data. They "
        "stand only beside rows that were trained and evaluated on the same data; pretraining and size differ."
    )
    return Table("Published figures", columns, cells, (note,))


def suite_title(suite: str) -> str:
    """Return a suite's heading."""
    return {"glue": "GLUE", "zh": "Chinese tasks", "files": "Files of one's own"}.get(suite, suite)
