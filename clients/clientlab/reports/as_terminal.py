"""The terminal's report: the answer, then sections as tables and lines.

The short form leaves most of them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_COLOURS = {"✓ ": "green", "✗ ": "bold red", "? ": "yellow"}


def render(run: Run, *, whole: bool = False) -> RenderableType:
    """Return the report of a run, for a rich console: its short form, or the whole of
    it.
    """
    shown = document(text_sections(Report(run), whole=whole))
    more = (
        f"Further columns, cautions in full, surroundings: clientlab report {run.run}"
        " --all"
    )
    return shown if whole else Stack(shown, Text(more, "dim"))


def document(sections: Sequence[Section]) -> RenderableType:
    """Return sections below the heading of the first, with an empty line
    between them.
    """
    shown: list[RenderableType] = [Text(sections[0].heading, style="bold")]
    for section in sections:
        shown += [Text()] if section is not sections[0] else []
        shown += [Text(sentence, style="bold green") for sentence in section.sentences]
        shown += [line for part in section.parts for line in _part(part)]
    return Stack(*shown)


def claims(found: Sequence[ClaimResult]) -> RenderableType:
    """Return a table of the claims.

    Lines below it say what would settle the inconclusive ones.
    """
    settling = [
        Text(f"{claim.name}: to settle it: {claim.settles}")
        for claim in found
        if claim.settles
    ]
    return Stack(
        _Fitted(replace(claims_table(found), brief=None)),
        Text(PAIRED, style="dim"),
        *settling,
    )


def _part(part: Part) -> Iterator[RenderableType]:
    match part:
        case Lines(title=title) if title:
            yield (
                Text.assemble(_SIGN, (f"{title}:", "yellow"))
                if part.alert
                else Text(f"{title}:")
            )
            yield from (Text(f"    {line}") for line in part.items)
        case Lines(alert=True):
            yield from (Text.assemble(_SIGN, (line, "yellow")) for line in part.items)
        case Lines():
            yield from (Text(line, "" if part.brief else "dim") for line in part.items)
        case Tables():
            for table in part.items:
                yield from [Text(table.title, style="bold")] if table.title else []
                yield _Fitted(table)
        case Command():
            yield from (Text(f"Command: {line}") for line in part.items)


@dataclass(frozen=True)
class _Fitted:
    """A table that fits into the console.

    Columns for which there is no room go into a further table.

    The short form has only the most important columns, the most important ones in the
    first table.
    """

    table: DataTable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        table, width = self.table, options.max_width
        keys = list(range(table.keys))
        columns = list(
            range(table.keys, len(table.headings))
            if table.brief is None
            else table.brief
        )
        room = width + 2 - sum(self._least_width(key, width) for key in keys)
        while columns:
            taken: list[int] = []
            left = room
            while columns and (
                not taken or left >= self._least_width(columns[0], width)
            ):
                left -= self._least_width(columns[0], width)
                taken.append(columns.pop(0))
            yield Text()
            yield self._columns([*keys, *sorted(taken)], width, left)
        yield Text()

    def _least_width(self, column: int, width: int) -> int:
        """Return the letters that a column needs, with the gap behind it.

        Words and long names may be wrapped.
        """
        widest = max(
            cell_len(row[column]) for row in (self.table.headings, *self.table.rows)
        )
        if column < self.table.keys:
            return 2 + min(widest, max(16, width // 5))
        return 2 + (
            min(widest, 24 if self.table.brief is None else 12)
            if self.table.is_text(column)
            else widest
        )

    def _columns(self, chosen: Sequence[int], width: int, spare: int) -> Table:
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
            widest = self._least_width(column, width) - 2 + (0 if column else spare)
            shown.add_column(
                self.table.headings[column],
                justify="left" if is_text else "right",
                overflow="fold",
                no_wrap=not is_text,
                max_width=widest if column < self.table.keys else None,
            )
        for index, row in enumerate(self.table.rows):
            cells = (
                Text(row[column], _COLOURS.get(row[column][:2], ""))
                for column in chosen
            )
            shown.add_row(
                *cells, style="bold green" if index in self.table.best else None
            )
        return shown
