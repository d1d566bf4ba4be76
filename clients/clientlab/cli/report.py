"""`clientlab report`: a run as table and chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clientlab.cli.exports import export, exports
from clientlab.cli.words import OUT, console
from clientlab.reports import table
from clientlab.runs.document import Run
from clientlab.runs.store import Store


def _checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """The path of a chart that can be written: said before a run, and not after it."""
    if path is not None:
        from clientlab.reports.chart import check  # noqa: PLC0415 - matplotlib takes half a second to import

        check(path)
    return path


CHART = click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_checked,
    help="Draw the bar chart to this file (.png or .svg).",
)


@click.command()
@click.argument("name", metavar="RUN")
@CHART
@exports
@OUT
def report(name: str, chart: Path | None, folder: Path, **formats: Any) -> int:
    """Show a run: RUN is its name, the beginning of it, "last", or the path of its file."""
    found = Store(folder).read(name)
    taken, code = export(found, formats)
    if not taken:
        show(found, stderr=False)
    draw(found, chart, stderr=taken)
    return code


def show(run: Run, *, stderr: bool) -> None:
    """Print a run's table."""
    console(stderr=stderr).print(table.render(run), highlight=False)


def draw(run: Run, chart: Path | None, *, stderr: bool) -> None:
    """Draw a run's chart where one is asked for, and say where. Raises LabError."""
    if chart is not None:
        from clientlab.reports.chart import write  # noqa: PLC0415 - as above

        write(run, chart)
        console(stderr=stderr).print(f"chart: {chart}", markup=False, highlight=False, soft_wrap=True)
