"""The terminal: tables as wide as it is, and lines beside the results, on standard error."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console

from clientlab.errors import LabError, PluginError
from clientlab.printable import printable

PIPE_COLUMNS = 150
"""Columns of a table if the output is not a terminal."""


class PatientConsole(Console):
    """A console whose reader may go away (`2>&1 | head -1`): nothing more is printed, and the command goes on."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emoji=False, **settings)  # a strategy of a file may be called mine.py:ok:

    def on_broken_pipe(self) -> None:
        """Rich would end the process. Its console calls this method where a write finds no reader."""
        self.quiet = True
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """The console for tables: as wide as the terminal, or `PIPE_COLUMNS` wide."""
    made = PatientConsole(stderr=stderr)
    return made if made.is_terminal else PatientConsole(stderr=stderr, width=PIPE_COLUMNS)


def say(line: LabError | str) -> None:
    """Print one line on standard error; a second one for the error of a plug-in's code."""
    where, _, what = printable(str(line)).partition("\n" if isinstance(line, PluginError) else "\0")
    print(f"clientlab: {' '.join(where.split())}", file=sys.stderr)  # noqa: T201
    if what:
        print(f"  {' '.join(what.split())}", file=sys.stderr)  # noqa: T201
