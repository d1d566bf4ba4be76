"""Texts on standard output and standard error. Together with `tables`, all that is printed is escaped here."""

from __future__ import annotations

import click

from clientlab.errors import LabError, PluginError
from clientlab.printable import printable


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text without a table."""
    click.echo(printable(text), err=err, nl=nl)


def say(line: LabError | str) -> None:
    """Print one line on standard error; a second one for the error of a plug-in's code."""
    where, _, what = printable(str(line)).partition("\n" if isinstance(line, PluginError) else "\0")
    echo(f"clientlab: {' '.join(where.split())}", err=True)
    if what:
        echo(f"  {' '.join(what.split())}", err=True)
