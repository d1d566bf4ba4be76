"""A run, from its request to its finished document: planned, checked, measured and saved, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache

from rich.console import Console

from clientlab.cluster.measurement import ClusterMeasurement
from clientlab.cluster.workers import DaskCluster, check_portable, connected
from clientlab.judging.thresholds import check_limits
from clientlab.reports.progress import LiveBar, PlainLines
from clientlab.results.document import Run, Surroundings
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.running.due import seconds_left, seconds_of
from clientlab.running.environments import opened
from clientlab.running.execute import execute, new_run, resumed, run_name
from clientlab.running.trial_runner import TrialRunner
from clientlab.running.tryout import try_functions
from clientlab.standalone.planning import Say, plan_of
from clientlab.standalone.requests import NewRun, ResumedRun, RunSettings
from clientlab.standalone.resumption import completed_plan, stored_run, target_of
from clientlab.testbeds.opening import Servers


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
    with contextlib.ExitStack() as stack:
        if isinstance(request, NewRun):
            stored, name = None, None if request.name is None else store.new_name(request.name)
            servers = Servers.of(request.target, settings.permits_public)
            plan = plan_of(request, servers.external, say)
            name = name or run_name(plan)
        else:
            stored = stored_run(request, store, stack)
            name, plan = stored.run, completed_plan(stored, request)
            servers = Servers.of(target_of(stored, settings.cluster), settings.permits_public)
        servers.check(plan)
        cluster: DaskCluster | None = None
        if settings.cluster is not None:
            check_portable(plan, servers.target, keep_samples=settings.keep_samples)
            cluster = stack.enter_context(connected(settings.cluster, plan, servers.target))
        check_limits(list(settings.limits), plan)
        placement = servers.placement(plan)
        confirm(plan, seconds_of(plan) if stored is None else seconds_left(stored))
        environments = stack.enter_context(opened(plan))
        if stored is None:
            store.claim(name)
            stack.enter_context(store.hold(name))

        def begun(where: Surroundings) -> Run:
            if stored is None:
                return new_run(name, plan, servers.target, where)
            run = resumed(stored, where)
            for line in run.resumed[-1].differences:
                say(f"since the run began: {line}")
            return run

        def observer() -> LiveBar | PlainLines:
            return stack.enter_context(LiveBar(console)) if console.is_terminal else PlainLines(console)

        if cluster is not None:
            announce = cache(lambda: console.print("the lab is measuring another run; this one begins after it"))
            stack.enter_context(cluster.alone(announce))
            run = begun(cluster.surroundings())
            return execute(run, ClusterMeasurement(cluster, run), store, observer(), whole=plan)
        if placement is not None:
            say(f"pinned: {placement}")
        testbed, links, programs = servers.opened(plan, placement, store.folder / name / "logs", stack)
        try_functions(plan, testbed, environments.interpreters)
        runner = TrialRunner(
            testbed, settings.keep_samples, interpreters=environments.interpreters, links=links, placement=placement
        )
        # Read while the servers run, since it holds the load of the machine.
        own = distributions_of([arm.strategy for arm in plan.arms if arm.environment is None])
        programs |= programs_of(arm.strategy for arm in plan.arms)
        run = begun(surroundings(own, programs, environments.held, placement))
        return execute(run, runner, store, observer(), whole=plan, by_turns=runner.by_turns)
