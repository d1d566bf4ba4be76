"""`clientlab run`: measure strategies, as an experiment or the options describe them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

import click

from clientlab import units
from clientlab.cli.option_fields import takes
from clientlab.cli.reporting import draw, limits_of, show, tell, write_page
from clientlab.cli.run_help import GroupedCommand
from clientlab.cli.run_options import OPTION_NAMES, RunOptions
from clientlab.cli.terminal import PatientConsole, say
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.experiments.overrides import Overrides
from clientlab.judging.run_thresholds import judge_run
from clientlab.judging.thresholds import Threshold, ThresholdResult
from clientlab.printable import printable
from clientlab.redaction import mask_text
from clientlab.reports import as_junit
from clientlab.reports.files import JUNIT
from clientlab.reports.headline import load_lines
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.target import Target
from clientlab.standalone.measuring import measured
from clientlab.standalone.requests import NewRun, ResumedRun, RunSettings

_WITH_RESUME = (
    "resume",
    "strategies",  # code and environments that the run file names
    "environments",
    "folder",
    "chart",
    "keep_samples",
    "as_json",
    "cluster",
    "fail_on",
    "whole",
    "html",
    "junit",
    "headers",  # values that the run file does not hold
)


@click.command(cls=GroupedCommand)
@takes(RunOptions)
def run(options: RunOptions) -> int:
    """Measure strategies (-t) or an experiment.

    EXPERIMENT is the name of a bundled one or a TOML file. Options win over its values.
    """
    limits = limits_of(options.fail_on, strict=False)
    request = _new_run(options) if options.resume is None else _resumed_run(options, options.resume)
    settings = RunSettings(
        folder=options.folder,
        permits_public=permits_public,
        keep_samples=options.keep_samples,
        limits=tuple(limits),
        cluster=options.cluster,
    )
    finished = measured(request, settings, PatientConsole(stderr=True), say, confirm_long_run)
    return _show(options, finished, limits)


LONG_RUN = 1800.0
"""Seconds. Longer runs ask first at a terminal, because `--delay 5` may have been meant as 5 ms."""


PUBLIC = "CLIENTLAB_PUBLIC"
"""Environment variable that permits load to addresses of the internet, as a yes at a terminal does."""


def confirm_long_run(plan: Plan, seconds: float) -> None:
    """Ask before a run that takes `seconds`, if it is long and somebody can answer. Raises LabError for a no."""
    if seconds <= LONG_RUN or not _at_terminal():
        return
    for line in load_lines(plan):
        click.echo(printable(line), err=True)
    if not click.confirm(f"The run takes about {units.minutes(seconds)}. Measure it?", err=True):
        raise LabError("nothing was measured; reduce the work with -n, -d, --delay or --rounds, or answer y")


def permits_public(addresses: Sequence[str]) -> bool:
    """Whether load may go to these addresses of the internet: asks at a terminal, elsewhere the environment decides."""
    if os.environ.get(PUBLIC) == "1":
        return True
    question = f"Load would go to {', '.join(addresses)} on the internet. Does the server's owner permit it?"
    return _at_terminal() and click.confirm(question, err=True)


def _at_terminal() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _new_run(options: RunOptions) -> NewRun:
    """The run that the options describe. Raises LabError for options that contradict each other."""
    overrides = Overrides(
        strategies=options.strategies,
        upstreams=options.upstreams,
        routes=options.routes,
        environments=options.environments or {},
        rounds=options.rounds,
        budget=options.budget,
        precision=options.precision,
        seed=options.seed,
        pin=options.pin,
        rtt=options.rtt or (),
        bandwidth=options.bandwidth or (),
        find_max=options.find_max,
        workload=_workload(options),
    )
    return NewRun(
        command=shlex.join(map(mask_text, ["clientlab", *sys.argv[1:]])),
        target=_target(options),
        experiment=options.experiment,
        quick=options.quick,
        overrides=overrides,
        name=options.name,
        given=frozenset(filter(options.has, OPTION_NAMES)),
    )


def _workload(options: RunOptions) -> dict[str, object]:
    """The fields of the workload that were given, with an absolute path: trials run in folders of their own."""
    fields = options.workload_fields()
    return fields if options.replay is None else fields | {"replay": str(options.replay.resolve())}


def _target(options: RunOptions) -> Target:
    """What is measured: the user's own server, or the lab's upstreams. Raises LabError."""
    if options.url is None:
        if options.ca_file is not None:
            raise LabError("--ca-file without --url: the lab's own routes bring their CA; leave it out")
        return Target(testbed="local" if options.cluster is None else "compose")
    for field in ("upstreams", "routes", "delay", "path"):
        if options.has(field):
            option = OPTION_NAMES[field]
            raise LabError(f"--url with {option}: only the lab's own upstreams have {option}; write it into the URL")
    return Target.external(options.url, options.ca_file)


def _resumed_run(options: RunOptions, name: str) -> ResumedRun:
    """The run that goes on. Raises LabError for an option that would change it."""
    if others := [OPTION_NAMES[field] for field in options.given() if field not in _WITH_RESUME]:
        raise FieldError(["resume"], f"the run goes on as it was planned; leave {others[0]} out")
    return ResumedRun(
        name=name,
        strategies=options.strategies,
        environments=options.environments or {},
        headers=options.headers or {},
    )


def _show(options: RunOptions, finished: Run, limits: list[Threshold]) -> int:
    """Show the finished run, and write its files. The exit code."""
    show(finished, whole=options.whole, stderr=options.as_json)
    if options.as_json:
        click.echo(finished.model_dump_json(indent=1))
    judged = judge_run(finished, limits)
    try:
        draw(finished, options.chart, stderr=options.as_json)
        write_page(finished, options.html, judged, stderr=options.as_json)
        _write_junit(finished, options, judged)
    except LabError as error:
        raise IncompleteRun(f"{error}; the run is saved in {options.folder / finished.run}") from error
    failed = tell(judged, stderr=options.as_json)
    if finished.status == "incomplete":
        return IncompleteRun.exit_code
    return failed


def _write_junit(finished: Run, options: RunOptions, judged: list[ThresholdResult]) -> None:
    """Write JUnit XML, if a path is given, and print the path. Raises LabError."""
    if options.junit is not None:
        with JUNIT.writing(options.junit):
            options.junit.write_text(as_junit.render(finished, judged), encoding="utf-8", errors="replace")
        click.echo(f"junit: {printable(str(options.junit))}", err=options.as_json)
