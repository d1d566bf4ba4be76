"""The shapes of charts: bar charts and line charts. Two renderers draw them: `picture` and the HTML page.

Every place on an axis is in per cent of its length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clientlab.reports.charts.palette import Look
from clientlab.reports.charts.scale import Scale, Tick

MOST_ROWS = 20
"""Rows of a chart that the HTML page shows at once; the others are folded."""

Point = tuple[float, float | None]
"""A place on both axes; without a height it makes a gap in its line."""


@dataclass(frozen=True)
class Bar:
    """A row: `length`, `span` (both ends), `dots` and `rings` are places on the axis; None is not drawn.

    `area`: heights of a distribution at even distances, as shares of the highest. `value`: the text beside the row;
    `title`: a description of the row.
    """

    name: str
    look: Look
    value: str
    title: str
    length: float | None = None
    span: tuple[float, float] | None = None
    dots: list[float] = field(default_factory=list)
    rings: list[float] = field(default_factory=list)
    area: list[float] | None = None
    first: bool = False


@dataclass(frozen=True)
class BarChart:
    """Rows with one axis below them. `notes` are sentences; `line`: a place that all rows are compared with."""

    title: str
    rows: list[Bar]
    ticks: list[Tick]
    axis: str
    notes: list[str] = field(default_factory=list)
    line: float | None = None

    @property
    def shown(self) -> list[Bar]:
        return self.rows[:MOST_ROWS]

    @property
    def folded(self) -> list[Bar]:
        return self.rows[MOST_ROWS:]


@dataclass(frozen=True)
class Line:
    """A line through points; `faint` ones stand back. `band`: place, lower and upper end. `ring`: a marked point."""

    name: str
    look: Look
    points: list[Point]
    title: str
    faint: bool = False
    thin: bool = False
    band: list[tuple[float, float, float]] = field(default_factory=list)
    dots: list[tuple[float, float]] = field(default_factory=list)
    ring: tuple[float, float] | None = None


@dataclass(frozen=True)
class DataTable:
    """The data of a chart as text cells: the chart's text alternative."""

    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class LineChart:
    """Lines over two axes. `summary`: a description, for readers who can't see it."""

    title: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    x_axis: str
    y_axis: str
    summary: str
    notes: list[str] = field(default_factory=list)
    table: DataTable | None = None
    small: bool = False

    @property
    def legend(self) -> list[Line]:
        """One line of each name, without faint ones."""
        return list({line.name: line for line in self.lines if not line.faint}.values())


def placed(points: Iterable[Point], x: Scale, y: Scale) -> list[Point]:
    """Points of data as places on both axes."""
    return [(x.place(across), None if height is None else y.place(height)) for across, height in points]
