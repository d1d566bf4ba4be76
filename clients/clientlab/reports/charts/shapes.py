"""The shapes of charts and tables, on scales from values to positions in per cent of an axis.

Two renderers draw the charts: `picture` and the HTML page.

Every position on an axis is in per cent of its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from clientlab.reports.charts.chart_data import Look

Formatter = Callable[[float], str]

_STEPS = (1.0, 2.0, 5.0)
MOST_TICKS = 6

NARROW = 240
"""Pixels of an axis on a telephone."""

_LETTER = 7.0  # pixels
_EXTREME = 1e300  # the room at an end of a scale must not leave the range of a float
_EDGE = 4.0  # per cent; a text closer to an end is not centred on its tick


@dataclass(frozen=True)
class Tick:
    """A position on an axis, in per cent of its length, and the text there."""

    position: float
    text: str

    @property
    def edge(self) -> str:
        """The end that the tick is close to: its text must not go beyond that end."""
        return "first" if self.position < _EDGE else "last" if self.position > 100 - _EDGE else ""

    @property
    def span(self) -> tuple[float, float]:
        """Both ends of its text, in per cent of the narrowest axis."""
        width = 100 * (len(self.text) + 1) * _LETTER / NARROW
        start = self.position - {"first": 0.0, "": width / 2, "last": width}[self.edge]
        return start, start + width


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic scale from `low` to `high`. A value beyond an end is placed at that end."""

    low: float
    high: float
    log: bool = False

    def position(self, value: float) -> float:
        """The position of a value in per cent of the axis."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * share

    def ticks(self, text: Formatter, most: int = MOST_TICKS) -> list[Tick]:
        """About `most` ticks at round values."""
        values = _log_values(self.low, self.high, most) if self.log else _even_values(self.low, self.high, most)
        return [Tick(self.position(value), shortened(text(value))) for value in values]

    def ticks_across(self, text: Formatter) -> list[Tick]:
        """As many ticks at round values as have room on a horizontal axis."""
        for most in range(MOST_TICKS, 0, -1):
            ticks = self.ticks(text, most)
            if ticks and not _touching(ticks):
                return ticks
        return self.ticks(text)[:1]


def even(values: Iterable[float], room: float = 1.04) -> Scale:
    """A linear scale from 0 to a little more than the largest value."""
    largest = max(values, default=0.0)
    return Scale(0.0, largest * room if largest > 0 else 1.0)


def logarithmic(values: Iterable[float], room: float = 1.08) -> Scale | None:
    """A logarithmic scale around all positive values between the extremes of a float. None without such values.

    The ends of an interval may be beyond: they are placed at the ends of the scale.
    """
    positive = [value for value in values if 1 / _EXTREME <= value <= _EXTREME]
    return Scale(min(positive) / room, max(positive) * room, log=True) if positive else None


def shortened(text: str) -> str:
    """A number without trailing zeros: ``5.00 ms`` as ``5 ms``."""
    return re.sub(r"\.(?!\d)", "", re.sub(r"(\.\d*?)0+(?!\d)", r"\1", text))


def _touching(ticks: list[Tick]) -> bool:
    return any(after.span[0] < before.span[1] for before, after in pairwise(ticks))


def _even_values(low: float, high: float, most: int) -> list[float]:
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (*_STEPS, 10.0) if size * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_values(low: float, high: float, most: int) -> list[float]:
    """Decades. If there are few, 1, 2 and 5 in each of them; if these are few as well, evenly spaced round values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in (_STEPS, (1.0, 3.0), (1.0,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [value for value in found if low <= value <= high]
        if len(found) <= most + 1:
            break
    if len(found) > most + 1:
        found = found[:: math.ceil(len(found) / most)]
    return found if len(found) > 1 else _even_values(low, high, most)


MOST_ROWS = 20
"""Rows of a chart that the HTML page shows at once; the others are folded."""

Point = tuple[float, float | None]
"""A position on both axes; without a height it makes a gap in its line."""


@dataclass(frozen=True)
class Bar:
    """A row: `length`, `span` (both ends), `dots` and `rings` are positions on the axis; None is not drawn.

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
    """Rows with one axis below them. `notes` are sentences.

    `line`: a position that all rows are compared with, `band`: both ends of what counts as equal to it.
    """

    title: str
    rows: list[Bar]
    ticks: list[Tick]
    axis: str
    notes: list[str] = field(default_factory=list)
    line: float | None = None
    band: tuple[float, float] | None = None

    @property
    def shown(self) -> list[Bar]:
        return self.rows[:MOST_ROWS]

    @property
    def folded(self) -> list[Bar]:
        return self.rows[MOST_ROWS:]


@dataclass(frozen=True)
class Line:
    """A line through points; `faint` ones stand back. `band`: position, lower and upper end. `ring`: a marked point."""

    name: str
    look: Look
    points: list[Point]
    title: str
    faint: bool = False
    band: list[tuple[float, float, float]] = field(default_factory=list)
    dots: list[tuple[float, float]] = field(default_factory=list)
    ring: tuple[float, float] | None = None


@dataclass(frozen=True)
class DataTable:
    """Cells as text below their headings. A chart's data are its text alternative.

    `keys`: how many columns name a row; a format that divides a wide table repeats them. `texts`: further columns of
    words, the others are of numbers. `best`: rows that stand out. `brief`: columns of the short form, the most
    important first, and not those that name a row; None for all.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    keys: int = 1
    texts: Collection[int] = ()
    best: Collection[int] = ()
    brief: Sequence[int] | None = None

    @property
    def short(self) -> DataTable:
        """The short form of the table."""
        return self.of_columns(self.brief or [])

    def of_columns(self, chosen: Collection[int]) -> DataTable:
        """The columns that name a row and the chosen ones, in the order of the table."""
        columns = [place for place in range(len(self.headings)) if place < self.keys or place in chosen]
        return replace(
            self,
            headings=[self.headings[place] for place in columns],
            rows=[[row[place] for place in columns] for row in self.rows],
            texts=[columns.index(place) for place in self.texts if place in columns],
            brief=None,
        )

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

    @property
    def legend(self) -> list[Line]:
        """One line of each name, without faint ones."""
        return list({line.name: line for line in self.lines if not line.faint}.values())


@dataclass(frozen=True)
class ChartPanel:
    """Charts that stand beside each other below a title."""

    title: str
    charts: Sequence[BarChart]


def placed(points: Iterable[Point], x: Scale, y: Scale) -> list[Point]:
    """Points of data as positions on both axes."""
    return [(x.position(across), None if height is None else y.position(height)) for across, height in points]
