"""The terminal's report: sections as tables and lines, and below them the answer, where the output ends."""

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


def render(run: Run) -> RenderableType:
    """The whole report of a run, for a rich console."""
    sections = text_sections(Report(run))
    shown: list[RenderableType] = [Text(sections[0].heading, style="bold")]
    for section in sections:
        lines = list(_section(section))
        shown += [Text(), *lines] if lines and section is not sections[0] else lines
    answers = [Text(sentence, style="bold") for section in sections for sentence in section.sentences]
    return Stack(*shown, Text(), *answers)


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


def _section(section: Section[TextPart]) -> Iterator[RenderableType]:
    for part in section.parts:
        yield from _part(part)
    yield from (Text(note, style="dim") for note in section.notes)


def _part(part: TextPart) -> Iterator[RenderableType]:
    match part:
        case Alerts():
            yield from (Text.assemble(_SIGN, (text, "yellow"), f" - {advice}") for text, advice in part.items)
        case Listing():
            yield from _listing(part)
        case Lines():
            yield from map(Text, part.items)
        case Tables():
            for index, table in enumerate(part.items):
                yield from [Text()] if index else []
                yield Text(table.title, style="bold")
                yield _Fitted(table)
        case Verdicts():
            yield _verdicts(part.items)
        case Command():
            yield from (Text(f"Command: {line}") for line in part.items)
        case _:
            assert_never(part)


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

    def _width(self, column: int) -> int:
        """Letters of a column and of the gap before it. A column of words wraps its cells."""
        widest = max(map(cell_len, self._columns[column]))
        if column < self._table.keys:
            return _GAP + max(widest, 0 if column else _LEAST_NAME)
        return _GAP + (min(widest, _TEXT) if self._table.is_text(column) else widest)

    def _with(self, columns: Sequence[int]) -> Table:
        """The table with the columns that name its rows, and these."""
        shown = [*range(self._table.keys), *columns]
        table = plain_table()
        for column in shown:
            text = self._table.is_text(column)
            lists = any(", " in cell for cell in self._columns[column])  # such as errors by kind
            table.add_column(
                self._table.headings[column],
                justify="left" if text else "right",
                overflow="fold",
                no_wrap=not (text or lists),
                min_width=None if column else _LEAST_NAME,
            )
        for index, row in enumerate(self._table.rows):
            style = "bold green" if index in self._table.best else None
            table.add_row(*(Text(row[column]) for column in shown), style=style)
        return table
