"""The content of a report, whatever its format: sections that consist of typed parts.

`contents` lists the sections. Each format renders every type of part in its own way. `items` is the content of a part;
parts without items are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts.row_charts import RowChart
from clientlab.reports.data_table import DataTable
from clientlab.reports.rows import Group, groups_of
from clientlab.reports.sweeps import Sweep
from clientlab.results.document import ClaimResult, Run

MOST_GROUPS = 12
"""Groups with charts. The tables show all groups."""


@dataclass(frozen=True)
class Report:
    """A run with the user's thresholds and their outcomes (`judged`)."""

    run: Run
    judged: Sequence[ThresholdResult] = ()

    @cached_property
    def groups(self) -> list[Group]:
        """The groups that have a finished trial, in the experiment's order."""
        return groups_of(self.run)

    @property
    def drawn(self) -> list[Group]:
        """The groups that charts show."""
        return self.groups[:MOST_GROUPS]


@dataclass(frozen=True)
class Alerts:
    """Reasons to doubt the numbers: titles with texts and advice. Short forms show only `brief`, if there is one."""

    items: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    brief: str = ""


@dataclass(frozen=True)
class Listing:
    """Lines below a title. `alert`: they make the numbers doubtful."""

    title: str
    items: Sequence[str]
    alert: bool = False


@dataclass(frozen=True)
class Lines:
    """Statements, such as the run's name and machine. `brief`: short forms show them, too."""

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


@dataclass(frozen=True)
class Charts:
    """Charts. `make` is called by formats that draw. `noun`: what a folded chart is. `notes`: how to read the charts.

    `small`: they stand beside each other where there is room.
    """

    make: Callable[[], Iterable[RowChart | Sweep]]
    noun: str = "chart"
    notes: Sequence[str] = ()
    small: bool = False

    @cached_property
    def items(self) -> Sequence[RowChart | Sweep]:
        """The charts, made once."""
        return list(self.make())


@dataclass(frozen=True)
class Facts:
    """Names with their values, each list with a title. `brief`: what text formats show instead."""

    items: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    brief: Sequence[str] = ()


Part = Alerts | Listing | Lines | Tables | Verdicts | Command | Charts | Facts


@dataclass(frozen=True)
class Section:
    """A section and its parts in their order. `id`: of the page's element. `label`: in the page's list of sections.

    `sentences`: the answers, which stand first. `notes`: how to read the figures. `brief`: short forms have the
    section, too. `folded`: a page folds it.
    """

    id: str
    heading: str
    parts: Sequence[Part]
    label: str = ""
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    brief: bool = False
    folded: bool = False
