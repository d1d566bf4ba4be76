"""The terminal's report: the answer, then sections as tables and lines.

The short form leaves most of them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Stack
from rich.table import Table
from rich.text import Text

from clientlab.reports.contents import PAIRED, claims_table, text_sections
from clientlab.reports.rows import Report
from clientlab.reports.sections import Command, DataTable, Lines, Part, Section, Tables
from clientlab.results.document import ClaimResult, Run

_SIGN = ("! ", "bold yellow")
_COLOURS = {
    "✓ ": "green",
    "✗ ": "bold red",
    "? ": "yellow",
}


def render(run: Run, *, whole: bool = False) -> RenderableType:
    """Return the report of a run, or its short form, for a rich console."""
    shown = document(text_sections(Report(run), whole=whole))
    if whole:
        return shown
    more = (
        f"Further columns, cautions in full, surroundings: clientlab report {run.run}"
        " --all"
    )
    return Stack(shown, Text(more, "dim"))


def document(sections: Sequence[Section]) -> RenderableType:
    """Return sections below the heading of the first, separated by empty lines."""
    shown: list[RenderableType] = [Text(sections[0].heading, style="bold")]
    for section in sections:
        if section is not sections[0]:
            shown.append(Text())
        shown += [Text(sentence, style="bold green") for sentence in section.sentences]
        for part in section.parts:
            last = shown[-1]
            follows_line = isinstance(last, Text) and last.plain
            is_titled = isinstance(part, Tables) and part.items and part.items[0].title
            if is_titled and follows_line:
                shown.append(Text())
            shown += _part(part)
    return Stack(*shown)


def claims(found: Sequence[ClaimResult]) -> RenderableType:
    """Return a table of the claims, and what would settle the inconclusive ones."""
    table = replace(claims_table(found), brief=None)
    shown: list[RenderableType] = [_Fitted(table), Text(PAIRED, style="dim")]
    for claim in found:
        if claim.settles:
            line = f"{claim.name}: to settle it: {claim.settles}"
            shown.append(Text(line))
    return Stack(*shown)


def _part(part: Part) -> Iterator[RenderableType]:
    match part:
        case Lines(title=title) if title:
            heading = Text(f"{title}:", "yellow" if part.alert else "")
            yield Text.assemble(_SIGN, heading) if part.alert else heading
            yield from (Text(f"    {line}") for line in part.items)
        case Lines(alert=True):
            yield from (Text.assemble(_SIGN, (line, "yellow")) for line in part.items)
        case Lines():
            yield from (Text(line, "" if part.brief else "dim") for line in part.items)
        case Tables():
            for table in part.items:
                if table.title:
                    yield Text(table.title, style="bold")
                yield _Fitted(table)
        case Command():
            yield from (Text(f"Command: {line}") for line in part.items)


@dataclass(frozen=True)
class _Fitted:
    """A table that fits into the console.

    Columns for which there is no room go into a further table. The short form has only
    some columns, the most important ones in the first table.
    """

    table: DataTable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        table = self.table
        width = options.max_width
        keys = list(range(table.keys))
        columns = list(range(table.keys, len(table.headings)))
        if table.brief is not None:
            columns = list(table.brief)
        shown = [*keys, *columns]
        needed = {column: self._least_width(column, width) for column in shown}
        room = width + 2 - sum(needed[key] for key in keys)
        while columns:
            left = room
            taken: list[int] = []
            while columns:
                column = columns[0]
                if taken and needed[column] > left:
                    break
                taken.append(columns.pop(0))
                left -= needed[column]
            yield Text()
            yield self._columns([*keys, *sorted(taken)], needed, left)
        yield Text()

    def _least_width(self, column: int, width: int) -> int:
        """Return how many letters a column needs, with the gap to the next column.

        Columns of words and long names may be narrower than their longest cell, because
        such cells are wrapped. `width`: that of the console.
        """
        rows = (self.table.headings, *self.table.rows)
        widest = max(cell_len(row[column]) for row in rows)
        if column < self.table.keys:
            widest = min(widest, max(16, width // 5))
        elif self.table.is_text(column):
            widest = min(widest, 24 if self.table.brief is None else 12)
        return 2 + widest

    def _columns(
        self, chosen: Sequence[int], needed: Mapping[int, int], spare: int
    ) -> Table:
        """Return some columns. The first one may take the `spare` room."""
        shown = Table(
            header_style="dim",
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for column in chosen:
            is_text = self.table.is_text(column)
            room = needed[column] - 2
            if column == 0:
                room += spare
            shown.add_column(
                self.table.headings[column],
                justify="left" if is_text else "right",
                overflow="fold",
                no_wrap=not is_text,
                max_width=room if column < self.table.keys else None,
            )
        for index, row in enumerate(self.table.rows):
            cells = []
            for column in chosen:
                mark = row[column][:2]
                cells.append(Text(row[column], _COLOURS.get(mark, "")))
            style = "bold green" if index in self.table.best else None
            shown.add_row(*cells, style=style)
        return shown
