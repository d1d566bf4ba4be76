"""The shapes that the templates draw: rows of bars, and plots of lines.

A plot's drawing is 1,000 wide and 1,000 high and is stretched to the room there is; its words are not in the
drawing but beside it, so that they keep their size on a telephone. Places of ticks and rows are in per cent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clientlab.reports.html.palette import Look
from clientlab.reports.html.scale import Scale, Tick

SIZE = 1000
MOST_ROWS = 20
"""Rows of a chart that are seen at once; the others are folded."""

Point = tuple[float, float | None]


@dataclass(frozen=True)
class Bar:
    """A row: `length`, `span` (both ends), `dots`, `rings` and `ticks` in per cent of the track; None: not drawn.

    `area`: the path of a distribution. `value`: what is written behind it, `title` what is told of it.
    """

    name: str
    look: Look
    value: str
    title: str
    length: float | None = None
    span: tuple[float, float] | None = None
    dots: list[float] = field(default_factory=list)
    rings: list[float] = field(default_factory=list)
    area: str | None = None
    first: bool = False


@dataclass(frozen=True)
class Bars:
    """Rows with one axis below them. `notes` are sentences; `line`: a place that all are compared with."""

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
    """A line through points; `faint` ones stand back. `ring`: a point of it that is marked."""

    name: str
    look: Look
    path: str
    title: str
    faint: bool = False
    thin: bool = False
    band: str | None = None
    dots: str | None = None
    ring: str | None = None


@dataclass(frozen=True)
class Figures:
    """A chart's figures as a table: its text alternative."""

    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Plot:
    """Lines over two axes. `told`: the picture in words."""

    title: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    x_axis: str
    y_axis: str
    told: str
    notes: list[str] = field(default_factory=list)
    figures: Figures | None = None
    small: bool = False

    @property
    def legend(self) -> list[Line]:
        """One line a name, those that stand back left out."""
        return list({line.name: line for line in self.lines if not line.faint}.values())


def path_of(points: Iterable[Point], x: Scale, y: Scale) -> str:
    """An SVG path through the points; a point without a height makes a gap."""
    words, pen = [], "M"
    for across, height in points:
        if height is None:
            pen = "M"
            continue
        words.append(f"{pen}{_x(across, x)} {_y(height, y)}")
        if pen == "M":
            words.append("h0")  # seen by itself when the next point is missing
        pen = "L"
    return "".join(words)


def dots_of(points: Iterable[Point], x: Scale, y: Scale) -> str:
    """An SVG path of dots: strokes of no length with round ends, which stay round however it is stretched."""
    return "".join(f"M{_x(across, x)} {_y(height, y)}h0" for across, height in points if height is not None)


def band_of(points: Sequence[tuple[float, float, float]], x: Scale, y: Scale) -> str:
    """An SVG path around a band: across, lower and upper end."""
    lower = [f"{_x(across, x)} {_y(low, y)}" for across, low, _ in points]
    upper = [f"{_x(across, x)} {_y(high, y)}" for across, _, high in points]
    return f"M{'L'.join([*lower, *reversed(upper)])}Z"


def area_of(heights: Sequence[float]) -> str:
    """An SVG path of an area under heights that stand at even distances, the highest as high as the row."""
    highest = max(heights)
    step = SIZE / len(heights)
    points = [f"{_short((place + 0.5) * step)} {_short(SIZE * (1 - h / highest))}" for place, h in enumerate(heights)]
    return f"M0 {SIZE}L{'L'.join(points)}L{SIZE} {SIZE}Z"


def _x(value: float, scale: Scale) -> str:
    return _short(scale.place(value) * SIZE / 100)


def _y(value: float, scale: Scale) -> str:
    return _short((100 - scale.place(value)) * SIZE / 100)


def _short(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a drawing")
    return f"{value:.1f}".removesuffix(".0")
