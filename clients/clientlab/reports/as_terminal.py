"""The terminal's report: the answer, then sections as tables and lines. The short form leaves most of them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Stack
from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.claims_section import PAIRED, SIGNS, doubts, sentence
from clientlab.reports.contents import text_sections
from clientlab.reports.sections import Alerts, Command, Lines, Listing, Report, Section, Tables, TextPart, Verdicts
from clientlab.results.document import ClaimResult, Run

_SIGN = ("! ", "bold yellow")
_STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow"}
_GAP = 2
"""Letters between two columns."""

_TEXT = 32
"""Letters that a column of words has room for. It wraps longer cells, so that more columns fit into one table."""

_LEAST_NAME = 16
"""Letters that the names of rows have room for, however narrow the terminal."""


def render(run: Run, *, whole: bool = False) -> RenderableType:
    """The report of a run, for a rich console: its short form, or the whole of it."""
    sections = [section for section in text_sections(Report(run)) if whole or section.brief]
    first, *others = [list(_section(section, whole=whole)) for section in sections]
    shown: list[RenderableType] = [Text(sections[0].heading, style="bold"), *first]
    for lines in others:
        shown += [Text(), *lines] if lines else []
    if not whole:
        shown.append(Text(f"Further columns, cautions in full, surroundings: clientlab report {run.run} --all", "dim"))
    return Stack(*shown)


def _answers(section: Section[TextPart]) -> list[RenderableType]:
    return [Text(sentence, style="bold green") for sentence in section.sentences]


def claims(found: Sequence[ClaimResult]) -> RenderableType:
    """A table of all that is known of the claims. Lines below it say what would settle the inconclusive ones."""
    table = plain_table()
    for name in ("claim", "verdict"):
        table.add_column(name, no_wrap=name == "verdict")
    table.add_column("ratio (95 %)", justify="right", no_wrap=True)
    table.add_column("rounds", justify="right")
    table.add_column("published", overflow="fold")
    table.add_column("measured", overflow="fold", ratio=1)
    for claim in found:
        table.add_row(
            Text(sentence(claim)),
            Text(claim.verdict, style=_STYLES[claim.verdict]),
            Text(units.ratio(claim.ratio, claim.interval)),
            str(claim.rounds),
            Text(claim.published or units.UNKNOWN),
            Text(claim.measured + doubts(claim)),
        )
    settling = [Text(f"{claim.name}: to settle it: {claim.settles}") for claim in found if claim.settles]
    return Stack(table, Text(PAIRED, style="dim"), *settling)


def plain_table() -> Table:
    """A table with a rule below its head, without columns."""
    return Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _section(section: Section[TextPart], *, whole: bool) -> Iterator[RenderableType]:
    yield from _answers(section)
    for part in section.parts:
        yield from _part(part, whole=whole)
    if whole:
        yield from (Text(note, style="dim") for note in section.notes)


def _part(part: TextPart, *, whole: bool) -> Iterator[RenderableType]:
    match part:
        case Alerts():
            brief = [Text.assemble(_SIGN, (part.brief, "yellow"))] if part.brief else []
            yield from _alerts(part) if whole else brief
        case Listing():
            yield from _listing(part)
        case Lines():
            yield from map(Text, part.items if whole or part.brief else [])
        case Tables():
            for index, table in enumerate(part.items):
                yield from [Text()] if index else []
                yield Text(table.title, style="bold")
                yield _Fitted(table) if whole or table.brief is None else _Short(table, table.brief)
        case Verdicts():
            yield _verdicts(part.items)
        case Command():
            yield from (Text(f"Command: {line}") for line in part.items)
        case _:
            assert_never(part)


def _alerts(part: Alerts) -> Iterator[Text]:
    for alert in part.items:
        yield from (Text.assemble(_SIGN, (text, "yellow"), f" - {advice}") for text, advice in alert.reasons)


def _listing(part: Listing) -> Iterator[Text]:
    title = (f"{part.title}:", "yellow" if part.alert else "")
    yield Text.assemble(_SIGN, title) if part.alert else Text.assemble(title)
    yield from (Text(f"    {line}") for line in part.items)


def _verdicts(found: Iterable[ClaimResult]) -> Table:
    """Verdict, sentence, cautions and ratio of each claim."""
    table = plain_table()
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim", overflow="fold", ratio=1)
    table.add_column("ratio (95 %)", justify="right", no_wrap=True)
    for claim in found:
        verdict = Text(f"{SIGNS[claim.verdict]} {claim.verdict}", style=_STYLES[claim.verdict])
        table.add_row(verdict, Text(sentence(claim) + doubts(claim)), Text(units.ratio(claim.ratio, claim.interval)))
    return table


_LEAST_TEXT = 12
"""Letters that a column of words has room for in a short table."""


_WIDEST = 100
"""Letters of a short table."""


class _Short:
    """The short form of a table: the most important columns that fit, and a line that names the others."""

    def __init__(self, table: DataTable, brief: Sequence[int]) -> None:
        self._table, self._brief = table, brief

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, _WIDEST)
        least = [self._least(column, width) for column in range(len(self._table.headings))]
        left = width - sum(least[: self._table.keys]) + _GAP - 2
        chosen: list[int] = []
        for column in self._brief:
            left -= least[column]
            if chosen and left < 0:
                break
            chosen.append(column)
        short = self._table.of_columns(chosen)
        table = _plain(short, range(len(short.headings)), least[0] - _GAP)
        yield from console.render(table, options.update(max_width=width))
        if left_out := [self._table.headings[column] for column in self._brief if column not in chosen]:
            yield Text(f"Left out, for lack of room: {', '.join(left_out)} (--all shows them)", "dim")

    def _least(self, column: int, width: int) -> int:
        """Letters that a column needs, with the gap before it. Words may be wrapped, names beyond a third of all."""
        widest = max(cell_len(row[column]) for row in (self._table.headings, *self._table.rows))
        if column < self._table.keys:
            return _GAP + max(0 if column else _LEAST_NAME, min(widest, max(_LEAST_NAME, width // 3)))
        return _GAP + (min(widest, _LEAST_TEXT) if self._table.is_text(column) else widest)


class _Fitted:
    """A table. If the console is too narrow, the columns are divided into several tables."""

    def __init__(self, table: DataTable) -> None:
        self._table = table
        self._columns = list(zip(table.headings, *table.rows, strict=True))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Put as many columns into a table as fit. Each table begins with the columns that name the rows."""
        keys = self._table.keys
        names = 2 + sum(map(self._width, range(keys))) - _GAP
        columns: list[int] = []
        width = names
        for column in range(keys, len(self._columns)):
            if columns and width + self._width(column) > options.max_width:
                yield self._with(columns)
                columns, width = [], names
            columns.append(column)
            width += self._width(column)
        yield self._with(columns)

    def _with(self, columns: Sequence[int]) -> Table:
        """The table with the columns that name its rows, and these."""
        return _plain(self._table, [*range(self._table.keys), *columns])

    def _width(self, column: int) -> int:
        """Letters of a column and of the gap before it. A column of words wraps its cells."""
        widest = max(map(cell_len, self._columns[column]))
        if column < self._table.keys:
            return _GAP + max(widest, 0 if column else _LEAST_NAME)
        return _GAP + (min(widest, _TEXT) if self._table.is_text(column) else widest)


def _plain(found: DataTable, columns: Iterable[int], name_width: int | None = None) -> Table:
    """These columns of a table. Words are wrapped where it is too wide. `name_width`: letters of the first column."""
    table = plain_table()
    chosen = list(columns)
    for column in chosen:
        text = found.is_text(column)
        lists = any(", " in row[column] for row in found.rows)  # such as errors by kind
        table.add_column(
            found.headings[column],
            justify="left" if text else "right",
            overflow="fold",
            no_wrap=not (text or lists),
            min_width=None if column else _LEAST_NAME,
            width=None if column else name_width,
        )
    for index, row in enumerate(found.rows):
        style = "bold green" if index in found.best else None
        table.add_row(*(Text(row[column]) for column in chosen), style=style)
    return table
