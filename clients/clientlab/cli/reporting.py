"""Commands that read one run file: `clientlab report` and `claims`; files that `run` and `compare` write, too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from clientlab.cli.option_types import OUT, complete_runs
from clientlab.cli.terminal import console
from clientlab.errors import LabError
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.judgement import find_judged
from clientlab.judging.run_thresholds import check_arms, check_changes, judge_run, threshold_of_run
from clientlab.judging.thresholds import Threshold, ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_csv, as_junit, as_markdown, as_terminal, files, headline
from clientlab.reports.files import OutputFile
from clientlab.results.document import ClaimResult, Run
from clientlab.results.store import Store, read_run

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, allow_dash=True)
STDOUT = "-"
THRESHOLD_FAILED = 1
_CONTRADICTED = 1
FAIL_ON = (
    "Exit with code 1 if an arm is beyond this limit: 'p99 > 50ms', 'throughput < 1000', 'ARM: errors > 0'; "
    "between environments: 'throughput -5%', 'errors +0'. Repeatable."
)
STRICT = "Judge --fail-on by the median over rounds, not by the whole interval."


WHOLE = "Show all columns and cautions, and the machine."


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
    "--chart",
    type=_Output(files.CHART),
    help="Draw charts to this file (.png or .svg).",
)
HTML = click.option(
    "--html",
    type=_Output(files.PAGE),
    help="Write a full report to this file (.html).",
)


JUNIT = click.option(
    "--junit",
    type=_Output(files.JUNIT),
    help="Write JUnit XML to this file (.xml).",
)


@dataclass(frozen=True)
class Format:
    """A format that `clientlab report` writes to a file or to standard output, with the option ``--NAME``.

    `render`: makes the text from a run, its judged limits, and whether the whole report was asked for (``--all``).
    `bare`: without a file, the option means standard output.
    """

    name: str
    help: str
    render: Callable[[Run, Sequence[ThresholdResult], bool], str]
    bare: bool = False

    @property
    def option(self) -> Callable[[_Command], _Command]:
        """The option of the command line."""
        bare: dict[str, Any] = {"is_flag": False, "flag_value": STDOUT} if self.bare else {}
        return click.option(f"--{self.name}", type=_FILE, help=self.help, **bare)


MARKDOWN = Format(
    "markdown",
    "Write Markdown to this file, or to standard output without FILE. Put it after RUN.",
    lambda run, judged, whole: as_markdown.render(run, judged, whole=whole),
    bare=True,
)
FORMATS = [
    Format("csv", "Write one row per trial to this file; - is standard output.", lambda run, *_: as_csv.render(run)),
    MARKDOWN,
    Format(
        "junit",
        "Write arms, claims and thresholds as JUnit XML to this file.",
        lambda run, judged, _: as_junit.render(run, judged),
    ),
]


def exports(command: _Command) -> _Command:
    """Add an option for each format, `texts` and `strict` to a command."""
    for option in reversed((
        *(one.option for one in FORMATS),
        click.option("--fail-on", "texts", multiple=True, metavar="LIMIT", help=FAIL_ON),
        click.option("--strict", is_flag=True, help=STRICT),
        click.option("--all", "-v", "whole", is_flag=True, help=WHOLE),
    )):  # fmt: skip
        command = option(command)
    return command


def limits_of(texts: Sequence[str], *, strict: bool) -> list[Threshold]:
    """The thresholds of ``--fail-on``. Raises LabError for one that is none, and for ``--strict`` without any."""
    limits = [threshold_of_run(text) for text in texts]
    if strict and not limits:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    return limits


def judged_by(run: Run, formats: dict[str, Any]) -> list[ThresholdResult]:
    """The thresholds of the options `texts` and `strict`, judged. Raises LabError."""
    limits = limits_of(formats["texts"], strict=formats["strict"])
    check_arms(limits, [arm.name for arm in run.experiment.arms])
    check_changes(limits, run.experiment)
    return judge_run(run, limits, strict=formats["strict"])


def export(run: Run, formats: dict[str, Any], judged: list[ThresholdResult]) -> tuple[bool, int]:
    """Write the chosen formats. Returns whether one went to standard output, and the exit code. Raises LabError."""
    chosen = {one: formats[one.name] for one in FORMATS if formats[one.name] is not None}
    if list(chosen.values()).count(STDOUT) > 1:
        names = " and --".join(one.name for one in chosen)
        raise LabError(f"--{names}: only one of them can go to standard output; name a file")
    taken = STDOUT in chosen.values()
    for one, target in chosen.items():
        if target == STDOUT:
            click.echo(one.render(run, judged, formats["whole"]), nl=False)
        else:
            write_text(Path(target), one.render(run, judged, formats["whole"]), one.name)
            click.echo(f"{one.name}: {printable(str(target))}", err=taken)
    return taken, tell(judged, stderr=taken)


def tell(judged: list[ThresholdResult], *, stderr: bool) -> int:
    """Print the limits that failed or are not sure. The exit code."""
    for line in headline.lines(judged):
        click.echo(line, err=stderr)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def _is_run(path: Path) -> bool:
    try:
        read_run(path)
    except LabError:
        return False
    return True


def write_text(path: Path, text: str, name: str) -> None:
    """Write the file of the option ``--name``. Raises LabError, also for a run file: its run would be lost."""
    if path.is_file() and _is_run(path):
        raise LabError(f"--{name} {path}: this is a run file, and would be lost; name another file")
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise LabError(f"--{name} {path}: {error.strerror}; name another file") from error


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@CHART
@HTML
@exports
@OUT
def report(name: str, chart: Path | None, html: Path | None, folder: Path, **formats: Any) -> int:
    """Show a run. RUN is its name, the beginning of its name, a path, "last", or "last~1" for the one before."""
    found = find_judged(Store(folder), name)
    judged = judged_by(found, formats)
    taken, code = export(found, formats, judged)
    if not taken:
        show(found, whole=formats["whole"], stderr=False)
    draw(found, chart, stderr=taken)
    write_page(found, html, judged, stderr=taken)
    return code


def show(run: Run, *, whole: bool = False, stderr: bool) -> None:
    """Print the report of a run: its short form, or the whole of it."""
    console(stderr=stderr).print(as_terminal.render(run, whole=whole), highlight=False)


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


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--require", is_flag=True, help="Exit with code 1 if a claim is contradicted.")
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Show the verdict on each claim of a run. RUN is a name, the beginning of a name, a path, or "last"."""
    run = find_judged(Store(folder), name)
    if not run.experiment.claims:
        raise LabError(f"run {run.run}: its experiment {run.experiment.name!r} makes no claims")
    found = judged(run)
    if as_json:
        click.echo(json.dumps([claim.model_dump() for claim in found], indent=1))
    else:
        console().print(as_terminal.claims(found), highlight=False)
    return _tell_claims(found, stderr=as_json) if require else 0


def _tell_claims(found: Iterable[ClaimResult], *, stderr: bool) -> int:
    """Print the contradicted claims. Return the exit code; an inconclusive claim has not failed."""
    contradicted = headline.claim_lines(found)
    for line in contradicted:
        click.echo(line, err=stderr)
    return _CONTRADICTED if contradicted else 0
