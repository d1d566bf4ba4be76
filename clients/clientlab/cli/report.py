"""`clientlab report`: a run as table and chart."""

from __future__ import annotations

from pathlib import Path

import click

from clientlab.cli.words import OUT, console
from clientlab.reports import table
from clientlab.runs.document import Run
from clientlab.runs.store import Store

CHART = click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the bar chart to this file (.png or .svg).",
)


@click.command()
@click.argument("name", metavar="RUN")
@CHART
@OUT
def report(name: str, chart: Path | None, folder: Path) -> None:
    """Show a run: RUN is its name, the beginning of it, "last", or the path of its file."""
    show(Store(folder).read(name), chart, stderr=False)


def show(run: Run, chart: Path | None, *, stderr: bool) -> None:
    """Print a run's table, and draw its chart where one is asked for."""
    to = console(stderr=stderr)
    to.print(table.render(run), highlight=False)
    if chart is not None:
        from clientlab.reports.chart import write  # noqa: PLC0415 - matplotlib takes half a second to import

        write(run, chart)
        to.print(f"chart: {chart}", markup=False, highlight=False, soft_wrap=True)
