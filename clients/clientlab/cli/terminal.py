"""Lines on standard output and standard error. Texts are escaped here, and those of tables in `output`."""

from __future__ import annotations

import click

from clientlab.errors import LabError, PluginError
from clientlab.text import make_printable


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text without a table."""
    click.echo(make_printable(text), err=err, nl=nl)


def say(line: LabError | str) -> None:
    """Print one line on standard error. The error of a plug-in follows the place where it was raised."""
    parts = str(line).split("\n", 1) if isinstance(line, PluginError) else [str(line)]
    echo(f"clientlab: {': '.join(' '.join(part.split()) for part in parts)}", err=True)
