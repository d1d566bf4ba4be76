"""The terminal's report: the answer, then sections as tables and lines. The short form leaves most of them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Stack
from rich.table import Table
from rich.text import Text

from clientlab.reports.claims_section import PAIRED, claims_table
from clientlab.reports.contents import text_sections
from clientlab.reports.data_table import DataTable
from clientlab.reports.sections import Alerts, Command, Lines, Listing, Part, Report, Section, Tables, Verdicts
from clientlab.results.document import ClaimResult, Run

_SIGN = ("! ", "bold yellow")
_COLOURS = {"✓ ": "green", "✗ ": "bold red", "? ": "yellow"}


def render(run: Run, *, whole: bool = False) -> RenderableType:
    """Return the report of a run, for a rich console: its short form, or the whole of it."""
    sections = [section for section in text_sections(Report(run)) if whole or section.brief]
    more = f"Further columns, cautions in full, surroundings: clientlab report {run.run} --all"
    return Stack(document(sections, whole=whole), *([] if whole else [Text(more, "dim")]))


def document(sections: Sequence[Section], *, whole: bool = True) -> RenderableType:
    """Return sections below the heading of the first, with an empty line between them."""
    shown: list[RenderableType] = [Text(sections[0].heading, style="bold")]
    for section in sections:
        lines: list[RenderableType] = [Text(sentence, style="bold green") for sentence in section.sentences]
        lines += [line for part in section.parts for line in _part(part, whole=whole)]
        lines += [Text(note, style="dim") for note in section.notes] if whole else []
        shown += [*([Text()] if lines and section is not sections[0] else []), *lines]
    return Stack(*shown)


def claims(found: Sequence[ClaimResult]) -> RenderableType:
    """Return a table of the claims. Lines below it say what would settle the inconclusive ones."""
    settling = [Text(f"{claim.name}: to settle it: {claim.settles}") for claim in found if claim.settles]
    return Stack(_Fitted(claims_table(found)), Text(PAIRED, style="dim"), *settling)


def _part(part: Part, *, whole: bool) -> Iterator[RenderableType]:
    match part:
        case Alerts() if whole:
            for text, advice in (reason for _, reasons in part.items for reason in reasons):
                yield Text.assemble(_SIGN, (text, "yellow"), f" - {advice}")
        case Alerts(brief=brief) if brief:
            yield Text.assemble(_SIGN, (brief, "yellow"))
        case Listing():
            title = f"{part.title}:"
            yield Text.assemble(_SIGN, (title, "yellow")) if part.alert else Text(title)
            yield from (Text(f"    {line}") for line in part.items)
        case Lines() if whole or part.brief:
            yield from map(Text, part.items)
        case Tables():
            for index, table in enumerate(part.items):
                yield from [Text()] if index else []
                yield Text(table.title, style="bold")
                yield _Fitted(table, short=not whole and table.brief is not None)
        case Verdicts():
            yield _Fitted(claims_table(part.items), short=True)
        case Command():
            yield from (Text(f"Command: {line}") for line in part.items)


class _Fitted:
    """A table that fits into the console. Columns for which there is no room go into a further table.

    The short form has only the most important columns, and a line that names those left out.
    """

    def __init__(self, table: DataTable, *, short: bool = False) -> None:
        self._table = table
        self._short = short

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, width = self._table, options.max_width
        keys = list(range(table.keys))
        columns = list(table.brief or ()) if self._short else list(range(table.keys, len(table.headings)))
        room = width - sum(self._least_width(key, width) for key in keys)
        while columns:
            taken: list[int] = []
            left = room
            while columns and (not taken or left >= self._least_width(columns[0], width)):
                left -= self._least_width(columns[0], width)
                taken.append(columns.pop(0))
            yield self._columns([*keys, *sorted(taken)], width)
            if columns and self._short:
                names = ", ".join(table.headings[column] for column in columns)
                yield Text(f"Left out, for lack of room: {names} (--all shows them)", "dim")
                return

    def _least_width(self, column: int, width: int) -> int:
        """Return the letters that a column needs, with the gap behind it. Words and long names may be wrapped."""
        widest = max(cell_len(row[column]) for row in (self._table.headings, *self._table.rows))
        if column < self._table.keys:
            return 2 + min(widest, max(16, width // 3))
        return 2 + (min(widest, 12 if self._short else 24) if self._table.is_text(column) else widest)

    def _columns(self, chosen: Sequence[int], width: int) -> Table:
        shown = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for column in chosen:
            is_text = self._table.is_text(column)
            has_lists = any(", " in row[column] for row in self._table.rows)  # such as errors by kind
            shown.add_column(
                self._table.headings[column],
                justify="left" if is_text else "right",
                overflow="fold",
                no_wrap=not (is_text or has_lists),
                width=self._least_width(column, width) - 2 if column < self._table.keys else None,
            )
        for index, row in enumerate(self._table.rows):
            cells = (Text(row[column], _COLOURS.get(row[column][:2], "")) for column in chosen)
            shown.add_row(*cells, style="bold green" if index in self._table.best else None)
        return shown
