"""The terminal's report: cautions, a table for each group of arms, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Lines
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.reports import (
    bottleneck,
    capacity,
    ceilings,
    environments,
    estimand,
    links,
    overload,
    partial,
    servers,
    shards,
)
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES

_Column = tuple[str, list[str]]
_RATIOS_AFTER = {False: "throughput", True: "p99"}
"""Open load or not → the figure behind which the ratios stand."""
_SHARES = "shares"
_UNBOUNDED = 1000
"""A width that every table fits into."""


def render(run: Run) -> RenderableType:
    """The whole report of a run, for a rich console."""
    parts: list[RenderableType] = [_heading(run)]
    parts += [_caution(caution.text, caution.advice) for caution in run.cautions]
    groups = groups_of(run)
    for title, rows in capacity.tables(run):
        parts += [Text(), Text(title, style="bold"), _cells(capacity.HEADS, capacity.TEXTS, rows)]
    if note := capacity.note(run):
        parts.append(Text(note, style="dim"))
    if overloaded := overload.rows(run):
        parts += [Text(), Text(overload.TITLE, style="bold"), _cells(overload.HEADS, overload.TEXTS, overloaded)]
        parts.append(Text(overload.note(run), style="dim"))
    for group in groups:
        parts += [Text(), _Fitted(group)]
    if cells := servers.rows(run):
        parts += [Text(), Text(servers.TITLE, style="bold"), _servers(cells)]
    if early := partial.rows(run):
        parts += [Text(), Text(partial.TITLE, style="bold"), _partial(early)]
    parts += [Text(line, style="dim") for line in [*shards.lines(run), *ceilings.lines(run)]]
    if any(len(group.rows) > 1 for group in groups):
        parts.append(Text(estimand.standings(group.open_load for group in groups), style="dim"))
    sentences = [*capacity.answers_of(run, groups), *environments.sentences(run), *links.sentences(run)]
    parts += [Text(), *(Text(sentence, style="bold") for sentence in sentences)]
    return Lines(*parts)


def plain_table() -> Table:
    """A table with a rule below its head, without columns."""
    return Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _servers(rows: list[tuple[str, ...]]) -> Table:
    table = plain_table()
    for place, head in enumerate(servers.HEADS):
        table.add_column(head, justify="left" if place < servers.LEFT else "right")
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def _cells(heads: Sequence[str], texts: Collection[str], rows: list[tuple[str, ...]]) -> Table:
    """A table of cells under their heads. `texts`: the heads of columns that are aligned to the left and wrapped."""
    table = plain_table()
    for head in heads:
        text = head in texts
        table.add_column(head, justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def _partial(rows: list[tuple[str, ...]]) -> Table:
    table = plain_table()
    for place, head in enumerate(partial.HEADS):
        text = head in (partial.HEADS[0], partial.HEADS[-1])
        table.add_column(head, justify="left" if text else "right", overflow="fold", no_wrap=not text and place < 7)
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def _heading(run: Run) -> Text:
    machine = run.surroundings
    text = Text()
    text.append(f"{run.experiment.question}\n", style="bold")
    text.append(f"run {run.run} · {run.status} · {machine.cpu_model}, {machine.cpu_usable:g} cores · {machine.python}")
    if machine.placement is not None:
        text.append(f"\npinned: {machine.placement}")
    text.append("".join(f"\nenvironment {line}" for line in environments.lines(run)))
    return text


def _caution(text: str, advice: str) -> Text:
    return Text.assemble(("! ", "bold yellow"), (text, "yellow"), f" - {advice}")


class _Fitted:
    """The table of a group. If the console is too narrow, the columns are divided into several tables."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Put as many columns into a table as fit. Each table begins with the names of the arms."""
        rows = self._group.rows
        unbounded = options.update(max_width=_UNBOUNDED)
        columns: list[_Column] = []
        yield Text(self._group.title, style="bold")
        for column in _columns(self._group):
            wider = _table(rows, [*columns, column])
            if columns and Measurement.get(console, unbounded, wider).maximum > options.max_width:
                yield _table(rows, columns)
                columns = []
            columns.append(column)
        yield _table(rows, columns)


def heads_and_rows(group: Group) -> tuple[list[str], list[list[str]]]:
    """The table of a group as text: heads, and the cells of each row, which begins with the name of its arm."""
    heads, cells = zip(*_columns(group), strict=True)
    rows = [[row.marked, *line] for row, *line in zip(group.rows, *cells, strict=True)]
    return [_head_of(group.rows), *heads], rows


def _columns(group: Group) -> Iterator[_Column]:
    """Heads and cells of all columns except the arms' names."""
    rows = group.rows
    yield "c", [str(row.concurrency) for row in rows]
    for figure in FIGURES:
        if figure.column is not None and group.shows(figure, figure.column.when):
            yield figure.column.heading, [_cell(row, figure) for row in rows]
        if figure.key == _RATIOS_AFTER[group.open_load]:
            yield from _ratios(group)
    yield "bottleneck", [bottleneck.name_of(row.verdict) for row in rows]
    if any(row.shares for row in rows):
        yield _SHARES, [bottleneck.shown(row.verdict, row.shares) for row in rows]


def _cell(row: Row, figure: Figure) -> str:
    if figure.key == "errors" and row.errors:
        return ", ".join(f"{count:,} {kind}" for kind, count in row.errors.items())
    return row.text(figure)


def _ratios(group: Group) -> Iterator[_Column]:
    """What arms are ranked by, over that of the best one with equal concurrency and rate, and that of the baseline."""
    what = "x least p99" if group.open_load else "x fastest"
    yield f"{what} of c (95 %)" if group.mixed else f"{what} (95 %)", [_ratio(row) for row in group.rows]
    base = next((row for row in group.rows if row.name == group.baseline), None)
    if base is not None:
        yield f"x {group.name_of(base)}", [_to_baseline(group, row, base) for row in group.rows]


def _ratio(row: Row) -> str:
    if row.fastest:
        return units.UNKNOWN if row.alone else "1"
    return units.ratio_of(row.ratio)


def _to_baseline(group: Group, row: Row, base: Row) -> str:
    """The ratio to the baseline, marked where the two differ in concurrency: then it is mostly the ratio of that."""
    if row is base:
        return "1"
    mark = "" if row.load == base.load else f" at {group.place_of(row)}"
    return f"{units.ratio_of(row.to_baseline)}{mark}"


def _head_of(rows: list[Row]) -> str:
    """Strategies, or arms if some arm has a name of its own."""
    return "strategy" if all(row.name == row.strategy for row in rows) else "arm"


def _table(rows: list[Row], columns: list[_Column]) -> Table:
    table = plain_table()
    table.add_column(_head_of(rows), overflow="fold", min_width=16)
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=name not in {"errors", _SHARES})
    for row, *cells in zip(rows, *(cells for _, cells in columns), strict=True):
        table.add_row(*map(Text, (row.marked, *cells)), style="bold green" if row.first else None)
    return table
