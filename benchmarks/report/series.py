"""How a model is drawn, the same in every plot and in the legend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.report.runs import Row
from benchmarks.report.svg import SERIES


def _polygon(corners: int, turn: float) -> tuple[tuple[float, float], ...]:
    angles = [2 * math.pi * (corner / corners + turn) for corner in range(corners)]
    return tuple((round(math.cos(angle), 3), round(math.sin(angle), 3)) for angle in angles)


# Corners within the unit circle: circle, square, triangle, diamond, pentagon, triangle upside down, star
MARKERS = (
    _polygon(24, 0),
    _polygon(4, 0.125),
    _polygon(3, 0.25),
    _polygon(4, 0),
    _polygon(5, 0.25),
    _polygon(3, 0.75),
    tuple(
        (round(x * radius, 3), round(y * radius, 3))
        for (x, y), radius in zip(_polygon(10, 0.25), (1, 0.42) * 5, strict=True)
    ),
)


@dataclass(frozen=True)
class Series:
    """How a model, or one of its settings, is drawn.

    Args:
        label: Of its rows.
        index: Its place among the series of a suite; colours and shapes repeat after different numbers of series.
    """

    label: str
    index: int

    @property
    def color(self) -> str:
        """Its colour in matplotlib."""
        return SERIES[self.index % len(SERIES)]

    @property
    def page_color(self) -> str:
        """Its colour on the page."""
        return f"var(--series-{self.index % len(SERIES) + 1})"

    @property
    def marker(self) -> tuple[tuple[float, float], ...]:
        """The corners of its shape."""
        return MARKERS[self.index % len(MARKERS)]

    @property
    def points(self) -> str:
        """The shape as SVG writes it, whose y axis points down."""
        return " ".join(f"{x:g},{-y:g}" for x, y in self.marker)


def suite_series(rows: Sequence[Row]) -> dict[str, Series]:
    """Give each label of a suite's rows its colour and shape."""
    return {label: Series(label, index) for index, label in enumerate(dict.fromkeys(row.label for row in rows))}
