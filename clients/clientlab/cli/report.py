"""`clientlab report`: a run again as table, chart and page."""

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


def _checked_page(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """The path of a page that can be written."""
    if path is not None:
        from clientlab.reports.html import check  # noqa: PLC0415 - no other command needs templates

        check(path)
    return path


CHART = click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_checked,
    help="Draw the bar chart to this file (.png or .svg).",
)
HTML = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_checked_page,
    help="Write the whole report to this file (.html): one page that asks for nothing else.",
)


@click.command()
@click.argument("name", metavar="RUN")
@CHART
@HTML
@exports
@OUT
def report(name: str, chart: Path | None, html: Path | None, folder: Path, **formats: Any) -> int:
    """Show a run: RUN is its name, the beginning of it, "last", or the path of its file."""
    found = Store(folder).read(name)
    taken, code = export(found, formats)
    if not taken:
        show(found, stderr=False)
    draw(found, chart, stderr=taken)
    write_page(found, html, stderr=taken)
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


def write_page(run: Run, page: Path | None, *, stderr: bool) -> None:
    """Write a run's page where one is asked for, and say where. Raises LabError."""
    if page is not None:
        from clientlab.reports.html import write  # noqa: PLC0415 - as above

        write(run, page)
        console(stderr=stderr).print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
