"""A run, from its request to its finished document: planned, checked, measured and saved, in this process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from rich.console import Console

from clientlab.cluster.measurement import ClusterMeasurement
from clientlab.cluster.workers import DaskCluster, check_portable, connected
from clientlab.errors import FieldError
from clientlab.judging.run_thresholds import check_limits
from clientlab.reports.progress import LiveBar, PlainLines
from clientlab.results.document import Placement, Run, Surroundings
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.target import Target
from clientlab.running.due import seconds_left, seconds_of
from clientlab.running.environments import Environments, opened
from clientlab.running.execute import execute, new_run, resumed, run_name
from clientlab.running.trial_runner import TrialRunner
from clientlab.running.tryout import try_functions
from clientlab.standalone.planning import Say, plan_of
from clientlab.standalone.requests import NewRun, ResumedRun, RunSettings
from clientlab.standalone.resumption import completed_plan, stored_run, target_of
from clientlab.testbeds.opening import Servers

_POLL_SECONDS = 0.5


def measured(
    request: NewRun | ResumedRun,
    settings: RunSettings,
    console: Console,
    say: Say,
    confirm: Callable[[Plan, float], None],
) -> Run:
    """Measure a run, and return it with its verdicts. `console`: for the progress. Raises LabError.

    Each trial is saved when it ends. `confirm` gets the plan and the estimated seconds before anything is started; it
    may raise LabError.
    """
    store = Store(settings.folder)
    name = store.new_name(request.name) if isinstance(request, NewRun) and request.name is not None else None
    with contextlib.ExitStack() as stack:
        plan, servers, stored = _planned(request, settings, store, stack, say)
        servers.check(plan)
        cluster = _connected(settings, plan, servers.target, stack)
        check_limits(list(settings.limits), plan)
        placement = servers.placement(plan)
        confirm(plan, seconds_of(plan) if stored is None else seconds_left(stored))
        environments = stack.enter_context(opened(plan))
        name = stored.run if stored else name or run_name(plan)
        if stored is None:
            store.claim(name)
            stack.enter_context(store.hold(name))
        if cluster is not None:
            stack.enter_context(cluster.alone(_waiting(console)))
            where = cluster.surroundings()
            run = _resumed(stored, where, say) if stored else new_run(name, plan, servers.target, where)
            measure = ClusterMeasurement(cluster, run)
            return execute(run, measure, store, _observer(console, stack), whole=plan)
        if placement is not None:
            say(f"pinned: {placement}")
        testbed, links, programs = servers.opened(plan, placement, store.folder / name / "logs", stack)
        try_functions(plan, testbed, environments.interpreters)
        where = _surroundings(plan, programs, environments, placement)
        run = _resumed(stored, where, say) if stored else new_run(name, plan, servers.target, where)
        runner = TrialRunner(
            testbed,
            settings.keep_samples,
            interpreters=environments.interpreters,
            links=links,
            placement=placement,
        )
        return execute(run, runner, store, _observer(console, stack), whole=plan, by_turns=runner.by_turns)


def _observer(console: Console, stack: contextlib.ExitStack) -> LiveBar | PlainLines:
    return stack.enter_context(LiveBar(console)) if console.is_terminal else PlainLines(console)


def _planned(
    request: NewRun | ResumedRun, settings: RunSettings, store: Store, stack: contextlib.ExitStack, say: Say
) -> tuple[Plan, Servers, Run | None]:
    """The plan, its servers, and the run that goes on, which `stack` holds; None for a new one. Raises LabError."""
    if isinstance(request, NewRun):
        servers = Servers.of(request.target, settings.permits_public)
        return plan_of(request, servers.external, say), servers, None
    stored = stored_run(request, store, stack)
    plan = completed_plan(stored, request)
    return plan, Servers.of(target_of(stored, settings.cluster), settings.permits_public), stored


def _connected(settings: RunSettings, plan: Plan, target: Target, stack: contextlib.ExitStack) -> DaskCluster | None:
    """Connect to the cluster whose workers measure, if there is one. Raise LabError if they cannot measure the plan."""
    if settings.cluster is None:
        return None
    if settings.keep_samples:
        raise FieldError(["keep_samples"], "samples stay on the workers; leave it out", also=["cluster"])
    check_portable(plan, target)
    return stack.enter_context(connected(settings.cluster, plan, target))


def _resumed(stored: Run, where: Surroundings, say: Say) -> Run:
    """The run that goes on. What differs from its first surroundings is printed."""
    run = resumed(stored, where)
    for line in run.resumed[-1].differences:
        say(f"since the run began: {line}")
    return run


def _surroundings(
    plan: Plan, servers: dict[str, str], environments: Environments, placement: Placement | None
) -> Surroundings:
    """Versions of what is measured and of what serves. Called when the servers run, since it reads the load."""
    programs = programs_of(arm.strategy for arm in plan.arms)
    own = [arm.strategy for arm in plan.arms if arm.environment is None]
    return surroundings(distributions_of(own), servers | programs, environments.held, placement)


def _waiting(console: Console) -> Callable[[], None]:
    """A function that waits a moment, and prints the reason at its first call."""
    announced = False

    def wait() -> None:
        nonlocal announced
        if not announced:
            announced = True
            console.print("the lab is measuring another run; this one begins after it")
        time.sleep(_POLL_SECONDS)

    return wait
