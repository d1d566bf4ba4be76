"""What a report says, whatever its format: sections, which consist of typed parts.

`contents` lists the sections. Each format renders every type of part in its own way. `items` is the content of a part;
a part without content is left out. Formats of text leave out what only a page has room for: charts, facts and details.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts.chart_data import ChartGroup, chart_groups
from clientlab.reports.charts.shapes import BarChart, ChartPanel, DataTable, LineChart
from clientlab.results.document import ClaimResult, Run
from clientlab.results.plan import Source

MOST_GROUPS = 40
"""Groups with charts. The tables show all groups."""


@dataclass(frozen=True)
class Report:
    """A run as its report sees it. `judged`: the limits of its user, with their outcomes."""

    run: Run
    judged: Sequence[ThresholdResult] = ()

    @cached_property
    def groups(self) -> list[ChartGroup]:
        """The groups that have a finished trial, in the experiment's order."""
        return chart_groups(self.run)

    @property
    def drawn(self) -> list[ChartGroup]:
        """The groups that charts show."""
        return self.groups[:MOST_GROUPS]


@dataclass(frozen=True)
class Alert:
    """Reasons of one kind to doubt the numbers: what they say in a few words, and texts with advice.

    `minor`: they change no decision, so short forms leave them out.
    """

    title: str
    reasons: Sequence[tuple[str, str]]
    minor: bool = False


@dataclass(frozen=True)
class Alerts:
    """Reasons to doubt the numbers. `brief`: the line that sums them up, in place of them in a short form.

    Without it, a short form has nothing of them.
    """

    items: Sequence[Alert]
    brief: str = ""


@dataclass(frozen=True)
class Listing:
    """Lines below a title. `alert`: they make the numbers doubtful."""

    title: str
    items: Sequence[str]
    alert: bool = False


@dataclass(frozen=True)
class Lines:
    """Statements beside the figures, such as the run's name and machine. `brief`: the short form has them, too."""

    items: Sequence[str]
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


TextPart = Alerts | Listing | Lines | Tables | Verdicts | Command
"""What all formats show."""


@dataclass(frozen=True)
class Charts:
    """Charts. `draw` is called by formats that draw. `noun`: what a folded chart is. `notes`: how to read the charts.

    `look`: below each other, or as a grid for each panel.
    """

    draw: Callable[[], Sequence[BarChart | LineChart | ChartPanel]]
    noun: str = "group"
    notes: Sequence[str] = ()
    look: Literal["charts", "grids"] = "charts"

    @cached_property
    def items(self) -> Sequence[BarChart | LineChart | ChartPanel]:
        """The charts, drawn once."""
        return self.draw()


@dataclass(frozen=True)
class Details:
    """Lines below a title, folded unless `open`."""

    title: str
    items: Sequence[str]
    open: bool = False


@dataclass(frozen=True)
class Facts:
    """Names with their values, each list with a title. A page folds those after the first `shown`.

    `brief`: the lines that formats of text have instead.
    """

    items: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    noun: str = "list"
    shown: int = 6
    brief: Sequence[str] = ()


@dataclass(frozen=True)
class Citation:
    """The publication that the experiment reproduces."""

    items: tuple[Source]

    @property
    def brief(self) -> list[str]:
        """The publication in a line."""
        (source,) = self.items
        return [f"Source: {', '.join(filter(None, (source.title, source.authors, source.date, source.url)))}."]


Part = TextPart | Charts | Details | Facts | Citation
"""What a page shows."""

PartT = TypeVar("PartT", bound=Part)


@dataclass(frozen=True)
class Section(Generic[PartT]):
    """A section and its parts in their order. `id`: of the page's element. `label`: in the page's list of sections.

    `sentences`: the answers, which stand first. `notes`: how to read the figures. A page has them above the parts,
    formats of text below. `brief`: the short form has it, too. `folded`: a page folds it.
    """

    id: str
    heading: str
    parts: Sequence[PartT]
    label: str = ""
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    brief: bool = False
    folded: bool = False


def in_text(part: Part) -> TextPart:
    """The part as formats of text show it. They leave out charts and details."""
    if isinstance(part, Charts | Details):
        return Lines([])
    return Lines(part.brief) if isinstance(part, Facts | Citation) else part
