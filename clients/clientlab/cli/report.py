"""`clientlab report`: show a run as a table, a chart, a page or a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from clientlab.cli import completion
from clientlab.cli.exports import export, exports, judged_by
from clientlab.cli.option_types import OUT, console
from clientlab.judging.judgement import find_judged
from clientlab.judging.thresholds import ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_terminal, files
from clientlab.reports.files import OutputFile
from clientlab.results.document import Run
from clientlab.results.store import Store


class _Output(click.Path):
    """The path of a file that a report is written to, checked before anything is measured."""

    def __init__(self, file: OutputFile) -> None:
        super().__init__(dir_okay=False)
        self._file = file

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        self._file.check(path)
        return path


CHART = click.option(
    "--chart", type=_Output(files.CHART), help="Draw the charts of times and sweeps to this file (.png or .svg)."
)
HTML = click.option(
    "--html",
    type=_Output(files.PAGE),
    help="Write the whole report to this file (.html), a page without external resources.",
)


JUNIT = click.option(
    "--junit", type=_Output(files.JUNIT), help="Write arms, claims and limits as JUnit XML to this file (.xml)."
)


@click.command()
@click.argument("name", metavar="RUN", shell_complete=completion.runs)
@CHART
@HTML
@exports
@OUT
def report(name: str, chart: Path | None, html: Path | None, folder: Path, **formats: Any) -> int:
    """Show a run. RUN is a name, the beginning of a name, "last", or the path of a run file."""
    found = find_judged(Store(folder), name)
    judged = judged_by(found, formats)
    taken, code = export(found, formats, judged)
    if not taken:
        show(found, stderr=False)
    draw(found, chart, stderr=taken)
    write_page(found, html, judged, stderr=taken)
    return code


def show(run: Run, *, stderr: bool) -> None:
    """Print the report of a run."""
    console(stderr=stderr).print(as_terminal.render(run), highlight=False)


def draw(run: Run, chart: Path | None, *, stderr: bool) -> None:
    """Draw the chart of a run, if a path is given, and print the path. Raises LabError."""
    if chart is not None:
        from clientlab.reports.charts.picture import write  # noqa: PLC0415 - matplotlib takes half a second to import

        write(run, chart)
        click.echo(f"chart: {printable(str(chart))}", err=stderr)


def write_page(run: Run, page: Path | None, judged: Sequence[ThresholdResult], *, stderr: bool) -> None:
    """Write the HTML report of a run with its limits, if a path is given, and print the path. Raises LabError."""
    if page is not None:
        from clientlab.reports.as_html import write  # noqa: PLC0415 - no other command needs templates

        write(run, page, judged)
        click.echo(f"report: {printable(str(page))}", err=stderr)
