"""`clientlab run`: measure strategies, as an experiment or the options describe them."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from clientlab.cli.claims import code_of
from clientlab.cli.option_types import PatientConsole
from clientlab.cli.plan import plan_of
from clientlab.cli.report import draw, show
from clientlab.cli.run_options import OPTION_NAMES, RunOptions, run_options, target_options
from clientlab.errors import IncompleteRun, LabError
from clientlab.reports.progress import LiveBar, PlainLines
from clientlab.results.document import Run, Surroundings
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.running.estimate import most_in_flight
from clientlab.running.execute import execute, new_run, resumed, run_name
from clientlab.running.trial_runner import Testbed, TrialRunner
from clientlab.testbeds.compose import ComposeTestbed, check_plain
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.local import LocalTestbed, check_upstreams
from clientlab.testbeds.upstream_process import workers_for

_POLL_SECONDS = 0.5
_WITH_RESUME = ("resume", "folder", "chart", "keep_samples", "as_json", "require_claims", "testbed")


@click.command()
@run_options
def run(options: RunOptions) -> int:
    """Measure strategies: EXPERIMENT is a bundled one (see 'list experiments') or a TOML file.

    Without it, name the strategies with -t. Options win over the experiment's values.
    """
    store, console = Store(options.folder), PatientConsole(stderr=True)
    with contextlib.ExitStack() as stack:
        stored = None if options.resume is None else _stored(options, store, stack)
        if stored is not None:
            options = replace(options, **target_options(stored.experiment.command))
        target = _target_of(options)
        plan = stored.experiment if stored else plan_of(options, target, shlex.join(["clientlab", *sys.argv[1:]]))
        _check(options, plan, target)
        name = stored.run if stored else _claimed(run_name(plan), store, stack)
        if options.testbed == "compose" and target is None:
            stack.enter_context(store.alone(_waiting(console)))
        testbed, servers = _testbed(options, plan, target, store.folder / name / "logs", stack)
        where = _surroundings(plan, servers)
        planned = _go_on(stored, where) if stored else new_run(name, plan, where)
        observer = stack.enter_context(LiveBar(console)) if console.is_terminal else PlainLines(console)
        finished = execute(planned, TrialRunner(testbed, options.keep_samples), store, observer)
    return _show(options, finished)


def _claimed(name: str, store: Store, stack: contextlib.ExitStack) -> str:
    """The name of a new run, which `stack` holds. Raises LabError."""
    store.claim(name)
    stack.enter_context(store.hold(name))
    return name


def _stored(options: RunOptions, store: Store, stack: contextlib.ExitStack) -> Run:
    """The run to go on with, which `stack` holds. Raises LabError where it can't go on."""
    if others := [OPTION_NAMES[field] for field in options.given() if field not in _WITH_RESUME]:
        raise LabError(f"--resume with {others[0]}: the run goes on as it was planned; leave {others[0]} out")
    name = store.inside(options.resume or "")
    stack.enter_context(store.hold(name))
    run = store.read(name)
    if run.status == "done":
        raise LabError(f"--resume {name}: the run is whole; measure another with {run.experiment.command!r}")
    return run


def _go_on(stored: Run, where: Surroundings) -> Run:
    """The run that goes on. What differs from its first surroundings is printed."""
    run = resumed(stored, where)
    for line in run.resumed[-1].differences:
        click.echo(f"clientlab: since the run began: {line}", err=True)
    return run


def _target_of(options: RunOptions) -> ExternalTarget | None:
    """The user's own server; None for the lab's own upstreams. Raises LabError."""
    if options.url is None:
        if options.ca_file is not None:
            raise LabError("--ca-file without --url: the lab's own routes bring their CA; leave it out")
        if options.yes:
            raise LabError("--yes without --url: the lab's own upstreams are on this machine; leave it out")
        return None
    for field in ("upstreams", "routes", "delay", "path"):
        if options.has(field):
            option = OPTION_NAMES[field]
            raise LabError(f"--url with {option}: only the lab's own upstreams have {option}; write it into the URL")
    return ExternalTarget(options.url, options.ca_file, public=options.yes)


def _check(options: RunOptions, plan: Plan, target: ExternalTarget | None) -> None:
    """Raises LabError where the plan cannot be measured on its testbed, or has no claims to require."""
    if options.require_claims and not plan.claims:
        raise LabError(f"--require-claims: experiment {plan.name!r} makes no claims; leave it out")
    if target is not None:
        for workload in {arm.group: plan.workloads[arm.workload] for arm in plan.arms}.values():
            target.probe(workload)
        return
    upstreams = {arm.upstream for arm in plan.arms}
    check_upstreams(upstreams, {arm.route for arm in plan.arms})
    if options.testbed == "compose":
        check_plain(upstreams)


def _testbed(
    options: RunOptions,
    plan: Plan,
    target: ExternalTarget | None,
    logs: Path,
    stack: contextlib.ExitStack,
) -> tuple[Testbed, dict[str, str]]:
    """The testbed, which `stack` stops, and how its servers are served. Raises LabError."""
    if target is not None:
        return target, {}
    if options.testbed == "compose":
        compose = ComposeTestbed(os.environ)
        return compose, compose.programs()
    workers = replace(workers_for(most_in_flight(plan)), **plan.workers)
    local = LocalTestbed({arm.upstream for arm in plan.arms}, {arm.route for arm in plan.arms}, logs, workers)
    return stack.enter_context(local), local.programs()


def _surroundings(plan: Plan, servers: dict[str, str]) -> Surroundings:
    """Versions of what is measured and of what serves. Called when the servers run, since it reads the load."""
    strategies = [arm.strategy for arm in plan.arms]
    return surroundings(distributions_of(strategies), servers | programs_of(strategies))


def _show(options: RunOptions, finished: Run) -> int:
    """Show the finished run. The exit code."""
    show(finished, stderr=options.as_json)
    if options.as_json:
        click.echo(finished.model_dump_json(indent=1))
    try:
        draw(finished, options.chart, stderr=options.as_json)
    except LabError as error:
        raise IncompleteRun(f"{error}; the run is saved in {options.folder / finished.run}") from error
    if finished.status == "incomplete":
        return IncompleteRun.exit_code
    return code_of(finished.claims) if options.require_claims else 0


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
