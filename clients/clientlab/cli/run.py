"""`clientlab run`: measure strategies, as an experiment or the options describe them."""

from __future__ import annotations

import sys

import click

from clientlab.cli.option_fields import takes
from clientlab.cli.reporting import draw, limits_of, show, tell, tell_claims, tell_gate, write_flames, write_page
from clientlab.cli.run_help import GroupedCommand
from clientlab.cli.run_options import OPTION_NAMES, RunOptions
from clientlab.cli.terminal import PatientConsole, say
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.experiments.overrides import Overrides
from clientlab.judging.run_thresholds import judge_run
from clientlab.judging.thresholds import Threshold, ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_junit
from clientlab.reports.files import JUNIT
from clientlab.results.document import Run
from clientlab.results.target import Target
from clientlab.results.withheld_plan import withheld_command
from clientlab.standalone.measuring import measured
from clientlab.standalone.once import outcomes_of
from clientlab.standalone.requests import NewRun, ResumedRun, RunSettings
from clientlab.workload.faults import check_maker

_WITH_RESUME = (
    "resume",
    "folder",
    "chart",
    "keep_samples",
    "profile",
    "phases",
    "flame",
    "as_json",
    "require_claims",
    "testbed",
    "yes",
    "allowed",
    "allowed_environments",
    "fail_on",
    "strict",
    "whole",
    "html",
    "junit",
    "headers",  # values that the run file does not hold
    "url",
    "path",
)

_NOT_ONCE = (
    "profile",
    "phases",
    "flame",
    "resume",
    "name",
    "chart",
    "html",
    "junit",
    "as_json",
    "fail_on",
    "strict",
    "require_claims",
    "keep_samples",
    "ceilings",
)
"""Fields of options about figures, which `--once` does not have."""


@click.command(cls=GroupedCommand)
@takes(RunOptions)
def run(options: RunOptions) -> int:
    """Measure strategies: those of -t, or of an EXPERIMENT.

    EXPERIMENT is a bundled one, or a TOML file. Options win over its values.
    """
    limits = limits_of(options.fail_on, strict=options.strict)
    if options.once:
        return _once(options)
    request = _new_run(options) if options.resume is None else _resumed_run(options, options.resume)
    _check_profile(options)
    settings = _settings(options, limits)
    return _show(options, measured(request, settings, PatientConsole(stderr=True), say), limits)


def _check_profile(options: RunOptions) -> None:
    """Raises LabError for options of profiles that do not go together."""
    if options.flame is not None and not options.profile:
        raise LabError("--flame without --profile: a flame graph needs a profile; add --profile")
    if options.profile and options.has("find_max"):
        raise LabError("--profile with --find-max: a search has no single load; profile at its rate with --rate")
    if options.phases and options.has("find_max"):
        raise LabError("--phases with --find-max: a search has no single load; look at its rate with --rate")


def _settings(options: RunOptions, limits: list[Threshold]) -> RunSettings:
    return RunSettings(
        folder=options.folder,
        strategies=options.strategies,
        allowed=options.allowed,
        allowed_environments=options.allowed_environments,
        public=options.yes,
        keep_samples=options.keep_samples,
        limits=tuple(limits),
        strict=options.strict,
        require_claims=options.require_claims,
        profile=options.profile,
        phases=options.phases,
    )


def _once(options: RunOptions) -> int:
    """Send one request with every strategy, and print a line for each. The exit code."""
    for field in _NOT_ONCE:
        if options.has(field):
            option = OPTION_NAMES.get(field, f"--{field.replace('_', '-')}")
            raise FieldError(["once"], f"it measures and stores nothing; leave {option} out")
    count = failed = 0
    for one in outcomes_of(_new_run(options), _settings(options, []), say):
        count += 1
        failed += one.problem is not None
        said = f"FAILED  {one.name}: {one.problem}" if one.problem else f"ok      {one.name}: {one.found}"
        click.echo(printable(said))
    works = "1 strategy works" if count == 1 else f"{count} strategies work"
    click.echo(f"{failed} of {count} strategies failed" if failed else works)
    return IncompleteRun.exit_code if failed else 0


def _new_run(options: RunOptions) -> NewRun:
    """The run that the options describe. Raises LabError for options that contradict each other."""
    search = {"conditions": options.find_max, "start": options.find_from, "overload": options.overload}
    overrides = Overrides(
        strategies=options.strategies,
        upstreams=options.upstreams,
        routes=options.routes,
        environments=options.environments or {},
        rounds=options.rounds,
        slices=options.slices,
        budget=options.budget,
        precision=options.precision,
        seed=options.seed,
        ceilings=options.ceilings,
        pin=options.pin,
        rtt=options.rtt or (),
        bandwidth=options.bandwidth or (),
        buffer=options.buffer or (),
        find_max={name: value for name, value in search.items() if value is not None},
        workload=_workload(options),
    )
    return NewRun(
        command=withheld_command(["clientlab", *sys.argv[1:]], options.keep_headers),
        target=_target(options),
        experiment=options.experiment,
        quick=options.quick,
        overrides=overrides,
        time_budget=options.time_budget,
        name=options.name,
        keep_headers=options.keep_headers,
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
        if options.yes:
            raise LabError("--yes without --url: the lab's own upstreams are on this machine; leave it out")
        return Target(testbed=options.testbed)
    if options.faults is not None:
        check_maker(options.faults, "--url with --fault")
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
        name=name, headers=options.headers or {}, url=options.url, path=options.path, testbed=options.testbed
    )


def _show(options: RunOptions, finished: Run, limits: list[Threshold]) -> int:
    """Show the finished run, and write its files. The exit code."""
    show(finished, whole=options.whole, stderr=options.as_json)
    if options.as_json:
        click.echo(finished.model_dump_json(indent=1))
    judged = judge_run(finished, limits, strict=options.strict)
    try:
        draw(finished, options.chart, stderr=options.as_json)
        write_page(finished, options.html, judged, stderr=options.as_json)
        write_flames(finished, options.flame, stderr=options.as_json)
        _write_junit(finished, options, judged)
    except LabError as error:
        raise IncompleteRun(f"{error}; the run is saved in {options.folder / finished.run}") from error
    tell_gate(finished, limits, stderr=options.as_json)
    failed = tell(judged, stderr=options.as_json)
    contradicted = tell_claims(finished.claims, stderr=options.as_json) if options.require_claims else 0
    if finished.status == "incomplete":
        return IncompleteRun.exit_code
    return failed or contradicted


def _write_junit(finished: Run, options: RunOptions, judged: list[ThresholdResult]) -> None:
    """Write JUnit XML, if a path is given, and print the path. Raises LabError."""
    if options.junit is not None:
        with JUNIT.writing(options.junit):
            options.junit.write_text(as_junit.render(finished, judged), encoding="utf-8", errors="replace")
        click.echo(f"junit: {printable(str(options.junit))}", err=options.as_json)
