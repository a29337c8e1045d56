"""The report as one HTML page that needs nothing but itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from benchmarks.glue.tasks import get_suite
from benchmarks.report import cost_tables, measurement_tables, tables
from benchmarks.report.collect import Collected
from benchmarks.report.plots import Panel, Plots, learning_curves, tradeoff_plots
from benchmarks.report.ratio_plots import memory_plot, speed_plot
from benchmarks.report.runs import Row, Run, group_runs, split_suites
from benchmarks.report.series import Series, suite_series
from benchmarks.report.tables import Table


@dataclass(frozen=True)
class ConfusionMatrix:
    """Which labels were taken for which, summed over seeds.

    Args:
        caption: Of what.
        labels: Names of the labels.
        rows: For each true label, the counts of the predicted ones.
    """

    caption: str
    labels: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]

    def share(self, row: int, column: int) -> float:
        """Return how much of a true label was predicted as another, from 0 to 1; 0 without examples."""
        total = sum(self.rows[row])
        return self.rows[row][column] / total if total else 0.0


@dataclass(frozen=True)
class SuiteSection:
    """Everything about one suite."""

    anchor: str
    title: str
    scores: tuple[Table, ...]
    legend: tuple[Series, ...]
    plots: tuple[Plots, ...]
    confusion: tuple[ConfusionMatrix, ...]
    details: tuple[Table, ...]
    commands: tuple[tuple[str, list[str]], ...]


@dataclass(frozen=True)
class MeasurementSection:
    """A measurement of speed or memory."""

    table: Table
    panel: Panel


def render_page(collected: Collected) -> str:
    """Render a report.

    Args:
        collected: From `collect`.

    Raises:
        ValueError: If two runs are one and the same.
    """
    suites = [_suite_section(rows, index) for index, rows in enumerate(split_suites(group_runs(collected.runs)))]
    measurements = [
        MeasurementSection(measurement_tables.speed_table(report), speed_plot(report, f"speed-{index}"))
        for index, report in enumerate(collected.speed)
    ]
    measurements += [
        MeasurementSection(measurement_tables.memory_table(report), memory_plot(report, f"memory-{index}"))
        for index, report in enumerate(collected.memory)
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchmarks.report"),
        autoescape=True,  # whatever the template's name: names of models and tasks come from outside
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = _trusted_svg
    return environment.get_template("page.html.j2").render(
        suites=suites, measurements=measurements, summary=_summary(collected)
    )


def _trusted_svg(panel: Panel) -> Markup:
    """Let a panel's SVG through, which is built as a tree, so that its texts are escaped already."""
    return Markup(panel.svg)


def _summary(collected: Collected) -> str:
    runs = collected.runs
    parts = []
    if runs:
        parts.append(_counted(len(runs), "run"))
        parts.append(_counted(len({run.model for run in runs}), "model"))
        parts.append(_counted(len({(run.suite, run.task) for run in runs}), "task"))
    measured = len(collected.speed) + len(collected.memory)
    if measured:
        parts.append(_counted(measured, "measurement") + " of speed or memory")
    return ", ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _suite_section(rows: Sequence[Row], index: int) -> SuiteSection:
    suite, anchor = rows[0].first.suite, f"suite-{index}"
    scores = [tables.overview_table(rows), tables.published_table(rows), tables.averages_table(rows)]
    details = [tables.results_table(rows), cost_tables.costs_table(rows), cost_tables.provenance_table(rows)]
    plots = [*tradeoff_plots(rows, anchor), learning_curves(rows, anchor)]
    return SuiteSection(
        anchor=anchor,
        title=tables.suite_title(suite),
        scores=tuple(table for table in scores if table is not None),
        legend=tuple(suite_series(rows).values()),
        plots=tuple(kind for kind in plots if kind is not None),
        confusion=tuple(matrix for row in rows for matrix in _confusion_matrices(row)),
        details=tuple(table for table in details if table is not None),
        commands=tuple(cost_tables.commands(rows)),
    )


def _confusion_matrices(row: Row) -> list[ConfusionMatrix]:
    found = []
    for split in row.first.best.confusion:
        counts = row.confusion(split)
        if counts:
            where = row.first.task if len(row.first.best.confusion) == 1 else f"{row.first.task}, {split}"
            caption = f"{where}: {row.label}, sum of {_counted(len(row.runs), 'seed')}"
            labels = _label_names(row.first, len(counts))
            found.append(ConfusionMatrix(caption, labels, tuple(map(tuple, counts))))
    return found


def _label_names(run: Run, count: int) -> tuple[str, ...]:
    """Return the labels' names, or their ids where they are not known."""
    try:
        labels: Sequence[str] = get_suite(run.suite)[run.task].labels
    except (ValueError, KeyError):  # files of one's own, or a task of another version
        labels = [name.strip() for name in str(run.arguments.get("labels") or "").split(",")]
    return tuple(labels) if len(labels) == count else tuple(map(str, range(count)))
