"""Plots of speed and memory against a baseline."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.report.plots import Panel
from benchmarks.report.series import MARKERS
from benchmarks.report.svg import AXIS, PANEL_INCHES, SERIES, styled, to_svg


def speed_plot(report: dict[str, Any], name: str) -> Panel:
    """Draw how many times faster each case is than its baseline.

    Args:
        report: The JSON of `benchmarks.speed`.
        name: Begins ids.
    """
    ratios = [
        (case["name"], *(case["wall"][f"ratio_{key}"] for key in ("median", "min", "max"))) for case in report["cases"]
    ]
    described = "; ".join(f"{case}: {median:.2f} ({low:.2f} to {high:.2f})" for case, median, low, high in ratios)
    caption = f"{report['family']}: times faster than the baseline, wall clock"
    return Panel(caption, _draw_ratios(ratios, "times faster (right of 1 is faster)", name, caption, described))


def memory_plot(report: dict[str, Any], name: str) -> Panel:
    """Draw the peak memory of each case as a share of its baseline's.

    Args:
        report: The JSON of `benchmarks.speed.memory`.
        name: Begins ids.
    """
    ratios = [(case["name"], *[case["ratio_of_medians"]] * 3) for case in report["cases"]]
    described = "; ".join(f"{case}: {ratio:.2f}" for case, ratio, _, _ in ratios)
    caption = f"{report['family']}: peak memory, ours / transformers'"
    return Panel(caption, _draw_ratios(ratios, "ratio (left of 1 is less memory)", name, caption, described))


def _draw_ratios(
    ratios: Sequence[tuple[str, float, float, float]], unit: str, name: str, title: str, description: str
) -> str:
    """Draw medians with their ranges, one below the other, each under its name."""
    with styled():
        figure = Figure(figsize=(PANEL_INCHES[0], 0.6 + 0.38 * len(ratios)), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(1, color=AXIS, linewidth=1)
        for place, (case, median, low, high) in enumerate(ratios):
            axes.plot([low, high], [place, place], color=SERIES[0], linewidth=2, alpha=0.5, solid_capstyle="round")
            axes.plot([median], [place], color=SERIES[0], marker=MARKERS[0], markersize=6)
            # Above the point instead of beside the axis, where a narrow screen has no room
            axes.annotate(
                _printable(case), (0, place - 0.3), xycoords=("axes fraction", "data"), va="center", fontsize=7.5
            )
        axes.set_ylim(len(ratios) - 0.5, -0.7)
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.set_xscale("log")
        values = [1.0, *(value for ratio in ratios for value in ratio[1:])]
        axes.set_xlim(min(values) / 1.2, max(values) * 1.2)
        axes.xaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5) if max(values) / min(values) > 2 else (1, 1.2, 1.5, 2, 5, 7, 8, 9))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(unit)
        return to_svg(figure, name, title, description)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
