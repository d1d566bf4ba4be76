"""`clientlab history`: the runs of one experiment over time, and since when a figure is another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clientlab.cli.option_types import OUT, complete_runs
from clientlab.cli.reporting import HTML, MARKDOWN, STDOUT, THRESHOLD_FAILED, write_text
from clientlab.cli.terminal import console, say
from clientlab.errors import LabError
from clientlab.judging.history import history_of
from clientlab.judging.history_files import read_past_runs
from clientlab.judging.history_lines import figures_with, lines_of
from clientlab.judging.thresholds import change_threshold
from clientlab.printable import printable
from clientlab.reports import history as texts
from clientlab.reports import history_formats as formats
from clientlab.results.figures import find
from clientlab.results.store import Store


@click.command()
@click.argument("names", metavar="[FOLDER|RUN]...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--experiment", metavar="NAME", help="Show the runs of this experiment.  [default: that of the newest run]"
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N runs.")
@click.option("--figure", "keys", multiple=True, metavar="FIGURE", help="Follow this figure too: 'p95'. Repeatable.")
@click.option(
    "--fail-on",
    "thresholds",
    multiple=True,
    metavar="CHANGE",
    help="Exit with code 1 if the newest level of an arm is worse by more: 'p99 +10%', 'throughput -5%'. Repeatable.",
)
@HTML
@MARKDOWN.option
@click.option(
    "--csv",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write one row per run, arm and figure to this file; - is standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--all", "-v", "whole", is_flag=True, help="Show the rows of all arms and figures.")
@OUT
def history(names: tuple[str, ...], folder: Path, *, as_json: bool, **options: Any) -> int:
    """Show since when an experiment's figures are other ones.

    FOLDER is one of results, RUN is as of `report`; without any, the runs of --out are taken. Runs in other
    surroundings begin a line of their own; versions of packages may change within a line, and stand beside the change.
    """
    taken = [name for name, on in (("--json", as_json), *_to_stdout(options)) if on]
    if len(taken) > 1:
        raise LabError(f"{' and '.join(taken)}: only one of them can go to standard output; name a file")
    limits = [change_threshold(text) for text in options["thresholds"]]
    more = [*(find(key, "figure", repr(key)) for key in options["keys"]), *(one.figure for one in limits)]
    found = _history(Store(folder), names, options, more)
    failed = texts.failures(found, limits)
    if as_json:
        click.echo(formats.as_json(found))
    elif not taken:
        console().print(formats.as_text(found, whole=options["whole"]), highlight=False)
    _write_files(found, options, stderr=bool(taken))
    for line in failed:
        click.echo(printable(line), err=bool(taken))
    return THRESHOLD_FAILED if failed else 0


def _to_stdout(options: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(f"--{name}", options[name] == STDOUT) for name in ("markdown", "csv")]


def _history(store: Store, names: tuple[str, ...], options: dict[str, Any], more: list[Any]) -> texts.History:
    """The histories of the lines. A line is printed for what is left out. Raises LabError."""
    past = read_past_runs(store, names, more, options["experiment"])
    for line in past.left_out:
        say(f"left out: {line}" if line else line)
    runs = sorted(past.runs, key=lambda one: (one.run.created, one.run.run))[-(options["last"] or 0) :]
    lines = [history_of(line, figures_with(more)) for line in lines_of(runs)]
    return texts.History(past.experiment, lines, past.left_out)


def _write_files(found: texts.History, options: dict[str, Any], *, stderr: bool) -> None:
    """Write the files whose options were given, and print their paths. Raises LabError."""
    if (path := options["html"]) is not None:
        from clientlab.reports.history_page import write  # noqa: PLC0415 - nothing else needs templates

        write(found, path)
        click.echo(f"report: {printable(str(path))}", err=stderr)
    for name, render in (("markdown", formats.as_markdown), ("csv", formats.as_csv)):
        if (target := options[name]) == STDOUT:
            click.echo(render(found), nl=False)
        elif target is not None:
            write_text(Path(target), render(found), name)
            click.echo(f"{name}: {printable(str(target))}", err=stderr)
