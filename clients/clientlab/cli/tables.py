"""Tables and reports on the terminal, by Rich. It takes a while to import, so commands import this when they run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from clientlab.printable import printable

PIPE_COLUMNS = 150
"""Columns of a table if the output is not a terminal."""


class LabConsole(Console):
    """A console that shows what a terminal would obey, and goes on if its reader goes away (`2>&1 | head -1`)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emoji=False, **settings)  # a strategy of a file may be called mine.py:ok:

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Rich does. Rich adds its own escape sequences after this, to texts that hold none."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Print nothing more. Rich calls this where a write finds no reader, and would end the process."""
        self.quiet = True
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """Return the console for tables: as wide as the terminal, or `PIPE_COLUMNS` wide."""
    made = LabConsole(stderr=stderr)
    return made if made.is_terminal else LabConsole(stderr=stderr, width=PIPE_COLUMNS)


def print_table(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table of rows of equal keys, which are its headings."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in rows[0] if rows else ():
        table.add_column(heading, no_wrap=heading in {"name", "fault"}, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()))
    console().print(table)
