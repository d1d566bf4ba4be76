"""The shapes of charts and tables. Two renderers draw the charts: `picture` and the HTML page.

Every place on an axis is in per cent of its length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
    """Cells as text below their headings. A chart's data are its text alternative.

    `keys`: how many columns name a row; a format that divides a wide table repeats them. `texts`: further columns of
    words, the others are of numbers. `best`: rows that stand out.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    keys: int = 1
    texts: Collection[int] = ()
    best: Collection[int] = ()

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, which are aligned to the left."""
        return column < self.keys or column in self.texts


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


@dataclass(frozen=True)
class ChartPanel:
    """Charts that stand beside each other below a title; or panels, below that of their group."""

    title: str
    charts: Sequence[BarChart | LineChart] = ()
    panels: Sequence[ChartPanel] = ()


def placed(points: Iterable[Point], x: Scale, y: Scale) -> list[Point]:
    """Points of data as places on both axes."""
    return [(x.place(across), None if height is None else y.place(height)) for across, height in points]
