"""The terminal's report: cautions, a table for each way to an upstream, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Lines
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from clientlab.reports import servers, units
from clientlab.reports.answer import answers
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.runs.document import Run

_Column = tuple[str, list[str]]
_UNBOUNDED = 1000
"""A width into which every table fits in one piece."""


def render(run: Run) -> RenderableType:
    """The whole report of a run, for a rich console."""
    parts: list[RenderableType] = [_heading(run)]
    parts += [_caution(caution.text, caution.advice) for caution in run.cautions]
    groups = groups_of(run)
    for group in groups:
        parts += [Text(), _Fitted(group)]
    if cells := servers.rows(run):
        parts += [Text(), Text(servers.TITLE, style="bold"), _servers(cells)]
    parts += [Text(), *(Text(sentence, style="bold") for sentence in answers(groups))]
    return Lines(*parts)


def _servers(rows: list[tuple[str, ...]]) -> Table:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, head in enumerate(servers.HEADS):
        table.add_column(head, justify="left" if place < servers.LEFT else "right")
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def _heading(run: Run) -> Text:
    machine = run.surroundings
    text = Text()
    text.append(f"{run.experiment.question}\n", style="bold")
    text.append(f"run {run.run} · {run.status} · {machine.cpu_model}, {machine.cpu_usable:g} cores · {machine.python}")
    return text


def _caution(text: str, advice: str) -> Text:
    return Text.assemble(("! ", "bold yellow"), (text, "yellow"), f" - {advice}")


class _Fitted:
    """A group's table: in one piece where the console is wide enough, else in several below each other."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Pack as many columns into a piece as fit; each piece begins with the arms' names."""
        rows = self._group.rows
        unbounded = options.update(max_width=_UNBOUNDED)
        columns: list[_Column] = []
        yield Text(self._group.title, style="bold")
        for column in headed_cells(self._group):
            piece = _table(rows, [*columns, column])
            if columns and Measurement.get(console, unbounded, piece).maximum > options.max_width:
                yield _table(rows, columns)
                columns = []
            columns.append(column)
        yield _table(rows, columns)


def headed_cells(group: Group) -> Iterator[_Column]:
    """Headings and cells, but for the arms' names; no column of what was not asked for."""
    rows = group.rows
    yield "c", [str(row.concurrency) for row in rows]
    yield "wall", [units.time(row.wall) for row in rows]
    yield "req/s", [units.rate(row.requests_per_second) for row in rows]
    yield "x fastest (95 %)", ["1" if row.fastest else units.ratio(row.ratio) for row in rows]
    if group.baseline:
        against = [units.ratio(row.to_baseline) for row in rows]
        yield (
            f"x {group.baseline}",
            ["1" if row.name == group.baseline else one for row, one in zip(rows, against, strict=True)],
        )
    yield "p50", [units.time(row.p50) for row in rows]
    yield "p99", [units.time(row.p99) for row in rows]
    if any(row.overhead is not None for row in rows):
        yield "overhead", [units.time(row.overhead) for row in rows]
    if any(row.elapsed is not None for row in rows):
        yield "own elapsed", [units.time(row.elapsed) for row in rows]
    yield "errors", [", ".join(f"{count:,} {kind}" for kind, count in row.errors.items()) or "0" for row in rows]
    yield "conns", [f"{row.connections:,.0f}" for row in rows]
    yield "CPU µs/req", [units.micro(row.cpu_per_request) for row in rows]
    yield "memory", [units.memory(row.peak_rss_bytes) for row in rows]
    if group.large:
        yield "above idle", [units.memory(row.above_idle_bytes) for row in rows]
    yield "held back by", [row.verdict.removesuffix("-bound") for row in rows]


def head_of(rows: list[Row]) -> str:
    """What the rows are called: strategies, or arms where those have names of their own."""
    return "strategy" if all(row.name == row.strategy for row in rows) else "arm"


def _table(rows: list[Row], columns: list[_Column]) -> Table:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(head_of(rows), overflow="fold", min_width=16)
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=name != "errors")
    for row, *cells in zip(rows, *(cells for _, cells in columns), strict=True):
        table.add_row(*map(Text, (row.name, *cells)), style="bold green" if row.fastest else None)
    return table
