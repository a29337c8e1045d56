"""Plots of scores: against what a model costs, and epoch by epoch."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator

from benchmarks.report.averages import Average, average_rows
from benchmarks.report.runs import Estimate, Row, Run
from benchmarks.report.series import Series, suite_series
from benchmarks.report.svg import MUTED, PANEL_INCHES, styled, to_svg
from benchmarks.report.tables import count_text, percent_text


@dataclass(frozen=True)
class Panel:
    """One plot with its caption."""

    caption: str
    svg: str


@dataclass(frozen=True)
class Plots:
    """Plots of one kind.

    Args:
        title: What they show.
        note: How to read them.
        panels: One for each task.
    """

    title: str
    note: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class _Cost:
    """What scores are drawn against.

    Args:
        name: Part of ids.
        title: What it is.
        unit: Of the axis.
        value: It, of a run.
    """

    name: str
    title: str
    unit: str
    value: Callable[[Run], float | None]


@dataclass(frozen=True)
class _Point:
    series: Series
    x: float
    score: Estimate


def tradeoff_plots(rows: Sequence[Row], prefix: str) -> list[Plots]:
    """Draw scores against parameters, training FLOPs and inference latency, as far as these are known.

    Args:
        rows: Of one suite.
        prefix: Begins ids.
    """
    batch_sizes = sorted({size for row in rows for run in row.runs for size in run.latency})
    costs = [
        _Cost("parameters", "Score against parameters", "parameters", lambda run: run.parameters),
        _Cost("flops", "Score against training FLOPs", "FLOPs of the training", lambda run: run.training_flops),
    ]
    for size in batch_sizes:
        title = f"Score against inference latency, batches of {size}"
        costs.append(_Cost(f"latency-{size}", title, "ms an example", _latency(size)))
    found = [_plots_against(cost, rows, f"{prefix}-{cost.name}") for cost in costs]
    return [plots for plots in found if plots is not None]


def _latency(batch_size: int) -> Callable[[Run], float | None]:
    """Return what gives a run's milliseconds an example."""
    return lambda run: 1000 * run.latency[batch_size] if batch_size in run.latency else None


def _plots_against(cost: _Cost, rows: Sequence[Row], prefix: str) -> Plots | None:
    series = suite_series(rows)
    panels = []
    averages = _comparable_averages(average_rows(rows))
    points = [
        _Point(series[average.label], x, average.last)
        for average in averages
        if (x := _mean_cost(cost, average.rows)) is not None
    ]
    if points:
        tasks = len(averages[0].rows)
        panels.append(_draw_scatter(cost, points, None, f"mean over {tasks} tasks", f"{prefix}-mean"))
    for index, task in enumerate(dict.fromkeys(row.first.task for row in rows)):
        of_task = [row for row in rows if row.first.task == task]
        points = [
            _Point(series[row.label], x, row.last) for row in of_task if (x := _mean_cost(cost, [row])) is not None
        ]
        if points:
            baseline = of_task[0].first.baseline
            panels.append(_draw_scatter(cost, points, baseline, _task_caption(of_task[0]), f"{prefix}-{index}"))
    if not panels:
        return None
    note = (
        "Score after the last epoch; bars are one standard deviation over seeds, where there are several. The dashed "
        "line is the majority baseline. The horizontal axis is logarithmic."
    )
    return Plots(cost.title, note, tuple(panels))


def _comparable_averages(averages: Sequence[Average]) -> list[Average]:
    """Return the averages over the largest set of tasks, since means over different tasks cannot be compared."""
    if not averages:
        return []
    tasks = max((_tasks(average) for average in averages), key=len)
    return [average for average in averages if _tasks(average) == tasks]


def _tasks(average: Average) -> tuple[str, ...]:
    return tuple(row.first.task for row in average.rows)


def _mean_cost(cost: _Cost, rows: Sequence[Row]) -> float | None:
    """Return the mean over rows of the mean over seeds; `None` unless all are known and above 0."""
    estimates = [row.estimate(cost.value) for row in rows]
    values = [estimate.mean for estimate in estimates if estimate is not None and estimate.mean > 0]
    return statistics.fmean(values) if len(values) == len(rows) else None


def _task_caption(row: Row) -> str:
    return f"{row.first.task}: {' and '.join(row.metric_names)}" if row.metric_names else row.first.task


def _draw_scatter(cost: _Cost, points: Sequence[_Point], baseline: float | None, caption: str, name: str) -> Panel:
    with styled():
        figure = Figure(figsize=PANEL_INCHES, layout="constrained")
        axes = figure.add_subplot()
        for point in points:
            deviation = point.score.deviation
            axes.errorbar(
                [point.x],
                [100 * point.score.mean],
                yerr=None if deviation is None else [100 * deviation],
                color=point.series.color,
                marker=point.series.marker,
                markersize=8,
                elinewidth=1.5,
                capsize=3,
            )
        _draw_baseline(axes, baseline)
        _set_log_axis(axes, [point.x for point in points])
        _set_score_axis(axes)
        axes.set_xlabel(cost.unit)
        description = "; ".join(
            f"{point.series.label}: score {percent_text(point.score)} at {count_text(point.x)} {cost.unit}"
            for point in points
        )
        return Panel(caption, to_svg(figure, name, f"{cost.title}, {caption}", _with_baseline(description, baseline)))


def _draw_baseline(axes: Axes, baseline: float | None) -> None:
    if baseline is not None:
        axes.axhline(100 * baseline, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2, zorder=1)


def _with_baseline(description: str, baseline: float | None) -> str:
    return description if baseline is None else f"{description}; majority baseline {100 * baseline:.1f}"


def _set_log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, at least half a decade to each side of the values."""
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 3, max(values) * 3)
    decades = math.log10(max(values) / min(values)) + 1
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if decades < 3 else (1,)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.xaxis.set_minor_locator(NullLocator())


def _set_score_axis(axes: Axes) -> None:
    """Leave some room to each side of the scores, and no tick above the highest possible."""
    low, high = axes.dataLim.intervaly
    room = 0.12 * (high - low) or 1.0
    axes.set_ylim(low - room, min(high + room, 102.0))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylabel("score")


def learning_curves(rows: Sequence[Row], prefix: str) -> Plots | None:
    """Draw the scores after each epoch, `None` if no run has several epochs.

    Args:
        rows: Of one suite.
        prefix: Begins ids.
    """
    series = suite_series(rows)
    panels = []
    for index, task in enumerate(dict.fromkeys(row.first.task for row in rows)):
        of_task = [row for row in rows if row.first.task == task and _has_course(row)]
        if of_task:
            panels.append(_draw_curves(of_task, series, f"{prefix}-curves-{index}"))
    note = (
        "Score on the validation splits after each epoch. Thin lines are single seeds; thick lines are their mean and "
        "bands one standard deviation to each side, for the epochs that all seeds reached. The dashed line is the "
        "majority baseline."
    )
    return Plots("Learning curves", note, tuple(panels)) if panels else None


def _has_course(row: Row) -> bool:
    counts = [len(run.epochs) for run in row.runs]
    return min(counts) > 0 and max(counts) > 1


def _draw_curves(rows: Sequence[Row], series: dict[str, Series], name: str) -> Panel:
    descriptions = []
    with styled():
        figure = Figure(figsize=PANEL_INCHES, layout="constrained")
        axes = figure.add_subplot()
        for row in rows:
            look = series[row.label]
            if len(row.runs) > 1:
                for run in row.runs:
                    epochs = [epoch.number for epoch in run.epochs]
                    axes.plot(epochs, [100 * epoch.score for epoch in run.epochs], color=look.color, lw=0.6, alpha=0.5)
            numbers, estimates = _common_epochs(row)
            means = [100 * estimate.mean for estimate in estimates]
            axes.plot(numbers, means, color=look.color, marker=look.marker, markersize=5, linewidth=1.8)
            spread = [100 * (estimate.deviation or 0) for estimate in estimates]
            if len(row.runs) > 1:
                low = [mean - deviation for mean, deviation in zip(means, spread, strict=True)]
                high = [mean + deviation for mean, deviation in zip(means, spread, strict=True)]
                axes.fill_between(numbers, low, high, color=look.color, alpha=0.2, linewidth=0)
            course = ", ".join(map(percent_text, estimates))
            descriptions.append(f"{row.label}, n = {len(row.runs)}, after epochs 1 to {len(numbers)}: {course}")
        baseline = rows[0].first.baseline
        _draw_baseline(axes, baseline)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        _set_score_axis(axes)
        axes.set_xlabel("epoch")
        caption = _task_caption(rows[0])
        description = _with_baseline("; ".join(descriptions), baseline)
        return Panel(caption, to_svg(figure, name, f"Learning curves, {caption}", description))


def _common_epochs(row: Row) -> tuple[list[int], list[Estimate]]:
    """Return the epochs that all seeds reached, and the scores after each."""
    shortest = min((run.epochs for run in row.runs), key=len)
    estimates = [
        estimate
        for scores in zip(*([epoch.score for epoch in run.epochs[: len(shortest)]] for run in row.runs), strict=True)
        if (estimate := Estimate.of(scores)) is not None
    ]
    return [epoch.number for epoch in shortest], estimates
