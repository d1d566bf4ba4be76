"""What a report consists of, whatever its format: sections of typed parts.

`contents` lists the sections. Each format renders every type of part in its own way and
knows no section. The `items` of a part are its content; parts without items are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from clientlab import units
from clientlab.results.document import ClaimResult, Run
from clientlab.statistics.ratios import Ratio
from clientlab.statistics.sweeps import TurningPoint, Value

# Okabe and Ito's palette for colour-blind readers (jfly.uni-koeln.de/color), with
# violet for yellow and grey for black, for a light and for a dark page. Every colour
# has a contrast of at least 3 with its page.
HUES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b8628f",
    "#b97f00",
    "#2f93cf",
    "#5b3df0",
    "#6b7280",
)
DARK_HUES = (
    "#3f9fe0",
    "#f07a3c",
    "#16b98c",
    "#dd97bf",
    "#e69f00",
    "#8fd0f5",
    "#8f7bff",
    "#9aa3ae",
)
GREY = HUES[-1]


@dataclass(frozen=True)
class DataTable:
    """Cells as text below their headings.

    `keys`: how many columns name a row; a format that divides a wide table repeats
    them. `texts`: further columns of words, the others hold numbers. `best`: rows that
    stand out. `brief`: columns of the short form, the most important first, without
    those that name a row; None for all.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    keys: int = 1
    texts: Collection[int] = ()
    best: Collection[int] = ()
    brief: Sequence[int] | None = None

    def of_columns(self, chosen: Collection[int]) -> DataTable:
        """Return the columns that name a row and the chosen ones, in their order."""
        columns = [
            place
            for place in range(len(self.headings))
            if place < self.keys or place in chosen
        ]
        return replace(
            self,
            headings=[self.headings[place] for place in columns],
            rows=[[row[place] for place in columns] for row in self.rows],
            texts=[columns.index(place) for place in self.texts if place in columns],
            brief=None,
        )

    def is_text(self, column: int) -> bool:
        """Return whether a column holds words, which are aligned to the left."""
        return column < self.keys or column in self.texts


@dataclass(frozen=True)
class ChartRow:
    """A row of a chart with its marks, in the units of the axis.

    `text` stands at the right end. `segments`: lengths with their colours, one after
    the other, instead of a bar. `heights`: a distribution between the `edges` of the
    chart, as shares of the highest. `first`: printed in bold.
    """

    name: str
    text: str
    colour: str
    bar: float | None = None
    interval: tuple[float, float] | None = None
    dots: Sequence[float] = ()
    rings: Sequence[float] = ()
    heights: Sequence[float] = ()
    first: bool = False
    segments: Sequence[tuple[float, str]] = ()

    @property
    def sparkline(self) -> str:
        """The heights as at most 32 blocks of eight sizes, with a dot for nothing."""
        parts = np.array_split(self.heights, min(32, len(self.heights)))
        heights = [part.mean() for part in parts]
        return "".join(
            "▁▂▃▄▅▆▇█"[min(7, int(8 * height))] if height else "·" for height in heights
        )


@dataclass(frozen=True)
class RowChart:
    """Rows over one axis from `low` to `high`, which the first note names.

    `ratios`: 1 and its equals are marked. `bands`: shaded parts of the axis.
    """

    title: str
    rows: Sequence[ChartRow]
    notes: Sequence[str]
    low: float
    high: float
    tick: Callable[[float], str] = field(repr=False)
    log: bool = False
    ratios: bool = False
    edges: Sequence[float] = ()
    bands: Sequence[tuple[float, float]] = ()

    @property
    def summary(self) -> str:
        """A description for readers who can't see the chart."""
        rows = "; ".join(f"{row.name} {row.text}" for row in self.rows)
        return f"{self.notes[0]}: {rows}"


@dataclass(frozen=True)
class SweepPoint:
    """An arm at its `value` on the axis, at `place`, with its seconds by round."""

    value: Value
    place: float
    arm: str
    typical: Ratio
    rounds: Mapping[int, float]


@dataclass(frozen=True)
class Curve:
    """Arms that differ along one axis only, in its order.

    `turn`: None if a knee along the axis means nothing. `knee`: None unless the rounds
    leave only one point for it.
    """

    label: str
    colour: str
    points: Sequence[SweepPoint]
    turn: TurningPoint | None
    knee: SweepPoint | None


@dataclass(frozen=True)
class Sweep:
    """A chart of curves along one axis.

    `seconds`: what is drawn. `ticks`: places on the axis with their texts.
    """

    title: str
    axis: str
    seconds: str
    ticks: Mapping[float, str]
    numeric: bool
    curves: Sequence[Curve]
    notes: Sequence[str]

    @property
    def summary(self) -> str:
        lines = []
        for curve in self.curves:
            points = ", ".join(
                f"{units.time(point.typical.value)} at {point.value}"
                for point in curve.points
            )
            lines.append(f"{curve.label}; {points}")
        return f"{self.seconds} by {self.axis}. {'. '.join(lines)}."


@dataclass(frozen=True)
class Alerts:
    """Reasons to doubt the numbers: titles with texts and advice."""

    items: Sequence[tuple[str, Sequence[tuple[str, str]]]]


@dataclass(frozen=True)
class Lines:
    """Statements, or notes on the figures.

    `alert`: they make the numbers doubtful. `brief`: short forms have them.
    """

    items: Sequence[str]
    title: str = ""
    alert: bool = False
    brief: bool = True


@dataclass(frozen=True)
class Tables:
    """Tables with a title each. A page folds those after the first four."""

    items: Sequence[DataTable]


@dataclass(frozen=True)
class Verdicts:
    """Claims with their verdicts and ratios."""

    items: Sequence[ClaimResult]


@dataclass(frozen=True)
class Command:
    """The command line that makes the run again."""

    items: tuple[str]


@dataclass(frozen=True)
class Charts:
    """Charts, made when a format draws them.

    `notes`: how to read them. `small`: side by side if there is room. `sparklines`:
    text formats show the areas of row charts as lines of blocks.
    """

    make: Callable[[], Iterable[RowChart | Sweep]]
    notes: Sequence[str] = ()
    small: bool = False
    sparklines: bool = False

    @cached_property
    def items(self) -> Sequence[RowChart | Sweep]:
        return list(self.make())


@dataclass(frozen=True)
class Facts:
    """Names with their values, each list with a title.

    `brief`: what text formats show instead.
    """

    items: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    brief: Sequence[str] = ()


Part = Alerts | Lines | Tables | Verdicts | Command | Charts | Facts


@dataclass(frozen=True)
class Section:
    """A section and its parts in their order.

    `id`: names the page's element. `label`: for the page's list of sections.
    `sentences`: the answers, which come first. `brief`: short forms have the section,
    too. `folded`: a page folds it.
    """

    id: str
    heading: str
    parts: Sequence[Part] = ()
    label: str = ""
    sentences: Sequence[str] = ()
    brief: bool = False
    folded: bool = False


def colours_of(run: Run) -> dict[str, str]:
    """Map arms to colours.

    Arms differ in colour if their strategies differ by more than settings, or if their
    environments or servers differ.
    """
    hues: dict[tuple[str | None, ...], str] = {}
    colours = {}
    for arm in run.experiment.arms:
        client_and_executor = arm.strategy.partition("?")[0]
        kind = (client_and_executor, arm.environment, arm.server)
        hue = HUES[len(hues) % len(HUES)]
        colours[arm.name] = hues.setdefault(kind, hue)
    return colours
