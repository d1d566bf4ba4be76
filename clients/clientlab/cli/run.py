"""`clientlab run`: measure strategies, as an experiment or the options describe them."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import click

from clientlab import own_folder
from clientlab.cli.claims import code_of
from clientlab.cli.exports import limits_of, tell
from clientlab.cli.option_types import PatientConsole
from clientlab.cli.permission import admit, check_permitted
from clientlab.cli.placement import announce, placement_of
from clientlab.cli.plan import plan_of
from clientlab.cli.report import draw, show, write_page
from clientlab.cli.run_options import OPTION_NAMES, RunOptions, run_options, target_options
from clientlab.cli.testbed import check_testbed, opened_testbed, target_of
from clientlab.cli.withheld_values import with_given_values
from clientlab.errors import IncompleteRun, LabError
from clientlab.judging.run_thresholds import judge_run
from clientlab.judging.threshold_checks import check_limits
from clientlab.judging.thresholds import Threshold, ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_junit
from clientlab.reports.files import JUNIT
from clientlab.reports.progress import LiveBar, PlainLines
from clientlab.results import leftovers
from clientlab.results.document import Placement, Run, Surroundings
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.withheld_plan import withheld_command
from clientlab.running.ceilings import measured_ceilings
from clientlab.running.environments import Environments, opened
from clientlab.running.execute import execute, new_run, resumed, run_name
from clientlab.running.preflight import check_system
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.workload import pinned

_POLL_SECONDS = 0.5
_WITH_RESUME = (
    "resume",
    "folder",
    "chart",
    "keep_samples",
    "as_json",
    "require_claims",
    "testbed",
    "yes",
    "allowed",
    "allowed_environments",
    "fail_on",
    "strict",
    "html",
    "junit",
    "headers",  # values that the run file does not hold: `with_given_values`
    "url",
    "path",
)


@click.command()
@run_options
def run(options: RunOptions) -> int:
    """Measure strategies: EXPERIMENT is a bundled one (see 'list experiments') or a TOML file.

    Without it, name the strategies with -t. Options win over the experiment's values.

    A bundled experiment leaves out the arms whose library or program is missing, and names them.
    """
    store, console = Store(options.folder), PatientConsole(stderr=True)
    limits = limits_of(options.fail_on, strict=options.strict)
    admit(options)
    leftovers.sweep(store)
    own_folder.sweep()
    with contextlib.ExitStack() as stack:
        stored = None if options.resume is None else _stored(options, store, stack)
        command = withheld_command(["clientlab", *sys.argv[1:]], options.keep_headers)
        given = options
        if stored is not None:
            options = replace(options, path=None, **target_options(stored.experiment.command))
        target = target_of(options)
        plan = with_given_values(stored, given) if stored else plan_of(options, target, command)
        check_permitted(plan, options)
        check_testbed(options, plan, target)
        own_servers = target is None and options.testbed == "local"
        placement = placement_of(plan, options.testbed, foreign=target is not None)
        check_limits(limits, plan, strict=options.strict)
        check_system(plan, options.folder, {arm.upstream for arm in plan.arms} if own_servers else (), announce)
        environments = stack.enter_context(opened(plan))
        name = stored.run if stored else run_name(plan)
        if stored is None:
            stack.enter_context(leftovers.begun(store, name))
        if options.testbed == "compose" and target is None:
            stack.enter_context(store.alone(_waiting(console)))
        logs = store.folder / name / "logs"
        testbed, links, servers = opened_testbed(options, (plan, placement), target, logs, stack)
        where = _surroundings(plan, servers, environments, placement)
        planned = _go_on(stored, where) if stored else new_run(name, plan, where, options.keep_headers)
        if plan.ceilings and not planned.ceilings:
            ceilings = measured_ceilings(plan, testbed, console.print, placement)
            planned = planned.model_copy(update={"ceilings": ceilings})
        observer = stack.enter_context(LiveBar(console)) if console.is_terminal else PlainLines(console)
        runner = TrialRunner(
            testbed,
            options.keep_samples,
            interpreters=environments.interpreters,
            links=links,
            ceilings=planned.ceilings,
            placement=placement,
        )
        finished = execute(planned, runner, store, observer, whole=plan)
    return _show(options, finished, limits)


def _stored(options: RunOptions, store: Store, stack: contextlib.ExitStack) -> Run:
    """The run to go on with, which `stack` holds. Raises LabError where it can't go on."""
    if others := [OPTION_NAMES[field] for field in options.given() if field not in _WITH_RESUME]:
        raise LabError(f"--resume with {others[0]}: the run goes on as it was planned; leave {others[0]} out")
    name = store.inside(options.resume or "")
    stack.enter_context(store.hold(name))
    run = store.read(name)
    if run.status == "done":
        raise LabError(f"--resume {name}: the run is whole; measure another with {run.experiment.command!r}")
    for workload in run.experiment.workloads.values():
        pinned(workload)
    return run


def _go_on(stored: Run, where: Surroundings) -> Run:
    """The run that goes on. What differs from its first surroundings is printed."""
    run = resumed(stored, where)
    for line in run.resumed[-1].differences:
        announce(f"since the run began: {line}")
    return run


def _surroundings(
    plan: Plan, servers: dict[str, str], environments: Environments, placement: Placement | None
) -> Surroundings:
    """Versions of what is measured and of what serves. Called when the servers run, since it reads the load."""
    programs = programs_of(arm.strategy for arm in plan.arms)
    own = [arm.strategy for arm in plan.arms if arm.environment is None]
    return surroundings(distributions_of(own), servers | programs, environments.held, placement)


def _show(options: RunOptions, finished: Run, limits: list[Threshold]) -> int:
    """Show the finished run, and write its files. The exit code."""
    show(finished, stderr=options.as_json)
    if options.as_json:
        click.echo(finished.model_dump_json(indent=1))
    judged = judge_run(finished, limits, strict=options.strict)
    try:
        draw(finished, options.chart, stderr=options.as_json)
        write_page(finished, options.html, judged, stderr=options.as_json)
        _write_junit(finished, options, judged)
    except LabError as error:
        raise IncompleteRun(f"{error}; the run is saved in {options.folder / finished.run}") from error
    failed = tell(judged, stderr=options.as_json)
    if finished.status == "incomplete":
        return IncompleteRun.exit_code
    return failed or (code_of(finished.claims) if options.require_claims else 0)


def _write_junit(finished: Run, options: RunOptions, judged: list[ThresholdResult]) -> None:
    """Write JUnit XML, if a path is given, and print the path. Raises LabError."""
    if options.junit is not None:
        with JUNIT.writing(options.junit):
            options.junit.write_text(as_junit.render(finished, judged), encoding="utf-8", errors="replace")
        click.echo(f"junit: {printable(str(options.junit))}", err=options.as_json)


def _waiting(console: PatientConsole) -> Callable[[], None]:
    """A function that waits a moment, and prints the reason at its first call."""
    announced = False

    def wait() -> None:
        nonlocal announced
        if not announced:
            announced = True
            console.print("the lab is measuring another run; this one begins after it")
        time.sleep(_POLL_SECONDS)

    return wait
