"""Commands that read run files: `clientlab report`, `compare` and `claims`."""

from __future__ import annotations

import contextlib
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
from clientlab.judging.comparison import compare as compare_runs
from clientlab.judging.judgement import find_judged
from clientlab.judging.levels import Levels, gate_of_comparison, gate_of_run, levels_of, same_surroundings
from clientlab.judging.run_thresholds import check_arms, check_changes, judge_run, threshold_of_run
from clientlab.judging.thresholds import Threshold, ThresholdResult, change_threshold, judge_changes
from clientlab.printable import printable
from clientlab.reports import as_csv, as_junit, as_markdown, as_terminal, comparison, files, headline
from clientlab.reports.files import OutputFile
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import find
from clientlab.results.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, allow_dash=True)
_STDOUT = "-"
THRESHOLD_FAILED = 1
_CONTRADICTED = 1
FAIL_ON = (
    "Exit with code 1 if an arm is surely beyond: 'p99 > 50ms', 'throughput < 1000', 'errors > 0'; of one arm: "
    "'ARM: p99 > 50ms'; between environments, compared with the first: 'throughput -5%', 'errors +0'. Repeatable."
)
STRICT = "Judge --fail-on by the median over rounds instead of its whole interval."


WHOLE = "Show all columns, cautions in full, and surroundings."


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
    help="Draw the charts of capacities, times and sweeps to this file (.png or .svg).",
)
HTML = click.option(
    "--html",
    type=_Output(files.PAGE),
    help="Write the whole report to this file (.html), a page without external resources.",
)


JUNIT = click.option(
    "--junit", type=_Output(files.JUNIT), help="Write arms, claims and limits as JUnit XML to this file (.xml)."
)


@dataclass(frozen=True)
class Format:
    """A format that `clientlab report` writes to a file or to standard output, with the option ``--NAME``.

    `bare`: without a file, the option means standard output.
    """

    name: str
    help: str
    render: Callable[[Run, Sequence[ThresholdResult]], str]
    bare: bool = False

    @property
    def option(self) -> Callable[[_Command], _Command]:
        """The option of the command line."""
        bare: dict[str, Any] = {"is_flag": False, "flag_value": _STDOUT} if self.bare else {}
        return click.option(f"--{self.name}", type=_FILE, help=self.help, **bare)


FORMATS = [
    Format("csv", "Write one row per trial to this file; - is standard output.", lambda run, _: as_csv.render(run)),
    Format(
        "markdown",
        "Write Markdown to this file, or to standard output if no file is given; place it after RUN.",
        as_markdown.render,
        bare=True,
    ),
    Format("junit", "Write arms, claims and limits as JUnit XML to this file.", as_junit.render),
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
    if list(chosen.values()).count(_STDOUT) > 1:
        names = " and --".join(one.name for one in chosen)
        raise LabError(f"--{names}: only one of them can go to standard output; name a file")
    taken = _STDOUT in chosen.values()
    for one, target in chosen.items():
        if target == _STDOUT:
            click.echo(one.render(run, judged), nl=False)
        else:
            _write(Path(target), one.render(run, judged), one.name)
            click.echo(f"{one.name}: {printable(str(target))}", err=taken)
    return taken, tell(judged, stderr=taken)


def tell(judged: list[ThresholdResult], *, stderr: bool) -> int:
    """Print the limits that failed or are not sure. The exit code."""
    for line in headline.lines(judged):
        click.echo(line, err=stderr)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def tell_gate(run: Run, limits: Sequence[Threshold], *, stderr: bool) -> None:
    """Print what the thresholds of a run find."""
    for line in gate_of_run(run, limits):
        click.echo(line, err=stderr)


def _write(path: Path, text: str, name: str) -> None:
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
    """Show a run. RUN is a name, the beginning of a name, "last", or the path of a run file."""
    found = find_judged(Store(folder), name)
    judged = judged_by(found, formats)
    taken, code = export(found, formats, judged)
    tell_gate(found, limits_of(formats["texts"], strict=formats["strict"]), stderr=taken)
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
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--fail-on",
    "texts",
    multiple=True,
    metavar="CHANGE",
    help="Exit with code 1 if a figure changed by more: 'p99 +10%', 'throughput -5%', 'errors +0'. Repeatable.",
)
@click.option("--figure", "keys", multiple=True, metavar="FIGURE", help="Compare this figure too: 'p95'. Repeatable.")
@click.option("--strict", is_flag=True, help="Judge --fail-on by the estimate instead of the whole interval.")
@click.option("--force", is_flag=True, help="Compare runs even if their workloads or arms differ.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@OUT
def compare(  # noqa: PLR0913 - one argument per option
    names: tuple[str, ...], texts: tuple[str, ...], keys: tuple[str, ...], folder: Path, *,
    strict: bool, force: bool, as_markdown: bool, as_json: bool,
) -> int:  # fmt: skip
    """Compare runs with the first one, the baseline, arm by arm.

    A change is real if the confidence interval of its typical ratio excludes 1. All intervals together hold the truth
    in 95 of 100 comparisons. --fail-on fails if the whole interval lies beyond the threshold: where all arms are
    exactly at it, one comparison in 40 fails. That holds if the runs differ by nothing as a whole, or if three stored
    runs of the baseline's surroundings show by how much; the output says which. Errors are counted: a single error
    beyond the threshold fails.
    """
    if as_markdown and as_json:
        raise LabError("--markdown and --json: leave out one of them")
    if len(names) < 2:
        raise LabError("nothing to compare: name the baseline and one run or more")
    headline = [change_threshold(text) for text in texts]
    more = [find(key, "figure", repr(key)) for key in keys]
    if strict and not headline:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    store = Store(folder)
    base, *others = (find_judged(store, name) for name in names)
    found = compare_runs(base, others, [*more, *(one.figure for one in headline)], force=force)
    check_arms(headline, found.arms())
    levels = _levels(store, base, others, headline)
    judged = judge_changes(found, headline, strict=strict, levels=levels)
    gate = gate_of_comparison(found, headline, levels)
    if as_json:
        click.echo(comparison.as_json(found, judged, gate))
    elif as_markdown:
        click.echo(comparison.as_markdown(found, judged, gate), nl=False)
    else:
        console().print(comparison.as_text(found, judged, gate), highlight=False)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def _levels(store: Store, base: Run, others: Sequence[Run], thresholds: Sequence[Threshold]) -> Levels:
    """How the runs of the results folder differ as a whole, of the figures that have thresholds."""
    if not thresholds:
        return {}
    stored = []
    for name in store.names():
        with contextlib.suppress(LabError):  # a file that is no run, or of another version, shows nothing
            stored.append(store.read(name))
    figures = [one.figure for one in thresholds if not one.figure.of_failed]
    return levels_of(same_surroundings(base, stored, [run.run for run in others]), figures)


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--require", is_flag=True, help="Exit with code 1 if a claim is contradicted.")
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Judge the claims of a run. RUN is a name, the beginning of a name, "last", or the path of a run file."""
    run = find_judged(Store(folder), name)
    if not run.experiment.claims:
        raise LabError(f"run {run.run}: its experiment {run.experiment.name!r} makes no claims")
    found = judged(run)
    if as_json:
        click.echo(json.dumps([claim.model_dump() for claim in found], indent=1))
    else:
        console().print(as_terminal.claims(found), highlight=False)
    return tell_claims(found, stderr=as_json) if require else 0


def tell_claims(found: Iterable[ClaimResult], *, stderr: bool) -> int:
    """Print the contradicted ones of required claims. The exit code: an inconclusive claim has not failed."""
    contradicted = headline.claim_lines(found)
    for line in contradicted:
        click.echo(line, err=stderr)
    return _CONTRADICTED if contradicted else 0
