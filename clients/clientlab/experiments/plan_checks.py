"""Checks of a plan before anything starts: its strategies load, and fit their
workloads, routes and this machine.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from math import inf

from clientlab import strategies
from clientlab.errors import FieldError, LabError, PluginError, UnavailableStrategy
from clientlab.experiments.experiment import Experiment
from clientlab.experiments.planning import table_of
from clientlab.results.plan import Arm, Plan
from clientlab.settings import find_upstream
from clientlab.workload.load import check_load, expected_requests, is_open
from clientlab.workload.recordings import read_recorded_requests
from clientlab.workload.refusals import check_shards, check_workload, spell_path
from clientlab.workload.workload import (
    Workload,
    take_share,
)

Say = Callable[[LabError | str], None]  # prints a line for the user, on standard error

_OWN_PAGES = (
    "/faults",
    "/healthz",
    "/metrics",
)  # of the lab's upstreams, which count no requests for them
# Files that a process opens besides its connections: libraries, logs, pipes, event
# loops.
_OWN_FILES = 64


def check_upstreams(experiment: Experiment) -> None:
    """Raise FieldError for an upstream that the lab does not have."""
    named = [(["upstreams"], name) for name in experiment.upstreams]
    named += [
        (["arms", name, "upstream"], arm.upstream)
        for name, arm in experiment.arms.items()
        if arm.upstream
    ]
    for key, upstream in named:
        try:
            find_upstream(upstream)
        except LabError as error:
            raise FieldError(key, str(error)) from error


def check_plan(
    plan: Plan,
    experiment: Experiment,
    is_secure: Callable[[Arm], bool],
    *,
    own_servers: bool = False,
) -> None:
    """Raise FieldError for an unknown strategy, an impossible workload, or parts that
    do not fit each other.

    The error names the field of the `experiment`. `is_secure`: whether the requests of
    an arm use TLS. `own_servers`: whether the user's own servers are measured.
    """
    for arm in plan.arms:
        workload = plan.workloads[arm.workload]
        try:
            check_workload(workload)
            check_load(workload)
            if not own_servers:
                _check_pages(workload)
            _check_strategy(arm, workload, secure=is_secure(arm))
            if lack := _find_lack_of_files(arm, workload):
                raise FieldError(["concurrency"], f"strategy {arm.strategy!r}: {lack}")
        except FieldError as error:
            if plan.find_max is not None and error.key == ("rate",):
                message = (
                    f"strategy {arm.strategy!r} cannot send at a given rate; leave"
                    " it out"
                )
                raise FieldError(["find_max"], message) from error
            raise error.within(*table_of(experiment, arm, error.key[0])) from error
        except PluginError:
            raise  # it names the plug-in's file and line
        except LabError as error:
            raise FieldError(table_of(experiment, arm), str(error)) from error


def _check_pages(workload: Workload) -> None:
    """Raise FieldError for a page of the upstream itself, also a recorded one."""
    field = "path"
    urls = [spell_path(workload.request.path)]
    if workload.replay is not None:
        field = "replay"
        recorded = read_recorded_requests(workload.replay)
        urls = [request.url for request in recorded.requests]
    paths = {url.partition("?")[0] for url in urls}
    for page in _OWN_PAGES:
        if page in paths:
            message = (
                "the lab's upstreams do not count requests for their own pages; leave"
                " it out, or use `url`"
            )
            raise FieldError([field], message, value=f"with {page}")


def check_concurrency(plan: Plan, given: int | None, say: Say) -> None:
    """Raise FieldError if no arm can have `given` requests in flight.

    If some can, say which strategies cannot.
    """
    found = [
        strategies.find(name)
        for name in dict.fromkeys(arm.strategy for arm in plan.arms)
    ]
    serial = [
        one for one in found if not strategies.executor_spec(one.executor).concurrent
    ]
    if given in {None, 1} or not serial:
        return
    if len(serial) < len(found):
        names = ", ".join(one.name for one in serial)
        say(f"{names}: one request at a time, while the others have {given} in flight")
        return
    other = strategies.suggest_concurrent(serial[0])
    advice = f"write {other}, or leave it out" if other else "leave it out"
    raise FieldError(
        ["concurrency"],
        f"strategy {serial[0].name!r} sends one request at a time; {advice}",
        value=given,
    )


def part_for_this_machine(plan: Plan) -> Plan:
    """Return the plan of a bundled experiment without the arms that this machine cannot
    run.

    The plan names these arms. If the baseline is one of them, there is no baseline.
    Claims stay, and those about a missing arm are inconclusive. Raise LabError if no
    arm is left.
    """
    unavailable = {}
    for arm in plan.arms:
        error = (
            _find_error(arm.strategy) if arm.environment is None else None
        )  # an environment has its own libraries
        reason = error.reason if isinstance(error, UnavailableStrategy) else None
        if reason := reason or _find_lack_of_files(arm, plan.workloads[arm.workload]):
            unavailable[arm.name] = reason
    arms = [arm for arm in plan.arms if arm.name not in unavailable]
    if not arms:
        lacks = ", ".join(dict.fromkeys(unavailable.values()))
        raise LabError(
            f"experiment {plan.name!r}: this machine can run none of its arms: {lacks}"
        )
    workloads, measured = {arm.workload for arm in arms}, {arm.strategy for arm in arms}
    changes = {
        "arms": arms,
        "workloads": {
            name: workload
            for name, workload in plan.workloads.items()
            if name in workloads
        },
        "baseline": None if plan.baseline in unavailable else plan.baseline,
        "replaced": {
            name: other for name, other in plan.replaced.items() if other in measured
        },
        "unavailable_arms": unavailable,
    }
    return plan.updated(**changes)


def plugin_faults(names: Iterable[str], say: Say) -> dict[str, PluginError]:
    """Return the errors in the code of plug-ins, by the names of their strategies.

    `check_plan` finds other errors.

    If no strategy is left, say all errors but the first, and raise the first.
    """
    errors = {name: _find_error(name) for name in names}
    faults = {
        name: error for name, error in errors.items() if isinstance(error, PluginError)
    }
    if faults and len(faults) == len(errors):
        first, *others = faults.values()
        for fault in others:
            say(fault)
        raise first
    return faults


def _find_error(name: str) -> LabError | None:
    try:
        strategies.check_settings(strategies.find(name))
    except LabError as error:
        return error
    return None


def most_open_files() -> float:
    """Return the hard limit on open files, to which trials and servers raise their own
    limits.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return inf if hard == resource.RLIM_INFINITY else hard


def more_files(files: int) -> str:
    """Return the command that lets the programs of a shell open at least this many
    files.
    """
    enough = 1 << (files - 1).bit_length()
    return f"prlimit --pid $$ --nofile={enough}:{enough}"


def _find_lack_of_files(arm: Arm, workload: Workload) -> str | None:
    """Return that the arm needs more open files than a process may have, and what to
    do; None if there are enough.

    A closed load opens a connection for each request in flight. Arms that may open
    fewer are not checked: HTTP/2, an open load, a pool with its own size, and several
    processes.
    """
    strategy, count = strategies.find(arm.strategy), expected_requests(workload)
    client, executor = (
        strategies.client_spec(strategy.client),
        strategies.executor_spec(strategy.executor),
    )
    own_pool = {"pool", "library_defaults"} & strategy.settings.keys()
    several = (
        executor.size == "processes"
        or strategy.executor == "async-processes"
        or workload.shards > 1
    )
    if (
        client.http == "2"
        or is_open(workload)
        or own_pool
        or executor.unbounded
        or several
    ):
        return None
    in_flight = strategy.in_flight(workload.load.concurrency, count)
    files, limit = (
        _OWN_FILES + (in_flight if count is None else min(in_flight, count)),
        most_open_files(),
    )
    if files <= limit:
        return None
    advice = f"lower -c, or raise the limit of this shell as root: {more_files(files)}"
    return f"{files:,} open files are needed, and the hard limit is {limit:,}; {advice}"


def _check_strategy(arm: Arm, workload: Workload, *, secure: bool) -> None:
    strategy, count = strategies.find(arm.strategy), expected_requests(workload)
    client, executor = (
        strategies.client_spec(strategy.client),
        strategies.executor_spec(strategy.executor),
    )
    if (
        arm.environment is None
    ):  # otherwise `running.environments` checks the libraries of the environment
        strategies.check_settings(strategy)
        strategies.check_capabilities(strategy, workload)
    if executor.needs_count and count is None:
        message = (
            f"strategy {arm.strategy!r} starts all its requests at once and cannot run"
            " for a duration"
        )
        raise FieldError(
            ["duration"],
            f"{message}; set `requests` instead",
            value=f"{workload.load.duration:g}",
        )
    if client.program and secure:
        raise LabError(
            f"strategy {arm.strategy!r}: {client.program} verifies no certificate; use"
            " a route without TLS"
        )
    if client.http == "2" and not secure:
        message = (
            f"strategy {arm.strategy!r} speaks HTTP/2, which needs TLS, and the route"
            f" {arm.route} has none"
        )
        raise LabError(f"{message}; use the route proxy-tls alone, or an https:// URL")
    in_flight = strategy.in_flight(workload.load.concurrency, count)
    if "concurrency" in arm.axes and in_flight != workload.load.concurrency:
        message = (
            f"it is an axis, but strategy {arm.strategy!r} always has {in_flight:,}"
            " requests in flight"
        )
        raise FieldError(["concurrency"], message)
    if workload.shards > 1:
        _check_division(strategy, workload, in_flight)


def _check_division(
    strategy: strategies.Strategy, workload: Workload, in_flight: int
) -> None:
    """Raise FieldError if the load of a trial cannot be divided into its shards."""
    client = strategies.client_spec(strategy.client)
    count = expected_requests(workload)
    check_shards(workload.shards, count, in_flight, strategy.name)
    if client.program:
        message = (
            f"strategy {strategy.name!r} is a program, whose load is not divided; leave"
            " it out"
        )
        raise FieldError(["shards"], message)
    share = take_share(workload, 0, in_flight)
    asked = share.load.concurrency
    if strategy.in_flight(asked, expected_requests(share)) != asked:
        message = (
            f"a setting of strategy {strategy.name!r} fixes its {in_flight:,} requests"
            " in flight"
        )
        raise FieldError(["shards"], f"{message}; leave out one", value=workload.shards)
