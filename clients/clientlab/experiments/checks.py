"""Whether a plan can be carried out: its strategies load, and fit their workloads and routes."""

from __future__ import annotations

import resource
from collections.abc import Callable, Collection, Iterable
from math import inf

from clientlab import strategies
from clientlab.errors import FieldError, LabError, PluginError, UnavailableStrategy
from clientlab.experiments.expansion import key_of, table_of
from clientlab.experiments.experiment import Experiment
from clientlab.results.plan import Arm, Plan
from clientlab.workload.load import check_load, expected_requests, is_open
from clientlab.workload.shard_workload import check_shards, share_of
from clientlab.workload.workload import Workload, check

TLS_ROUTES = frozenset({"proxy-tls"})

_OWN_FILES = 64
"""Files that a process opens beside its connections: libraries, logs, pipes, event loops."""


def check_plan(plan: Plan, experiment: Experiment, secure: Collection[str] = TLS_ROUTES) -> None:
    """Raises FieldError for an unknown strategy, an impossible workload, or parts that do not fit each other.

    The error names the field of the `experiment`. `secure`: the routes that have TLS.
    """
    for arm in plan.arms:
        workload = plan.workloads[arm.workload]
        try:
            check(workload)
            check_load(workload)
            _check_strategy(arm, workload, secure)
            if lack := lack_of_files(arm, workload):
                raise FieldError(["concurrency"], f"strategy {arm.strategy!r}: {lack}")
        except FieldError as error:
            if plan.find_max is not None and error.key == ("rate",):
                message = f"strategy {arm.strategy!r} follows no rate; leave it out"
                raise FieldError(["find_max"], message) from error
            raise error.within(*key_of(experiment, arm, error.key[0])) from error
        except PluginError:
            raise  # it names the plug-in's file and line
        except LabError as error:
            raise FieldError(table_of(experiment, arm), str(error)) from error


def check_concurrency(plan: Plan, given: int | None, say: Callable[[str], None]) -> None:
    """Raises FieldError if no arm can have as many requests in flight as the user has `given` for all.

    If some arms can, says which strategies cannot.
    """
    found = [strategies.find(name) for name in dict.fromkeys(arm.strategy for arm in plan.arms)]
    serial = [one for one in found if not strategies.executor_spec(one.executor).concurrent]
    if given is None or given == 1 or not serial:
        return
    if len(serial) < len(found):
        names = ", ".join(one.name for one in serial)
        say(f"{names}: one request after the other, whatever the concurrency of the others ({given})")
        return
    other = strategies.with_several(serial[0])
    message = f"strategy {serial[0].name!r} sends one request after the other; "
    message += f"write {other}, or leave it out" if other else "leave it out"
    raise FieldError(["concurrency"], message, value=given)


def available_part(plan: Plan) -> Plan:
    """Return the plan of a bundled experiment without the arms that this machine cannot run, which it names.

    A baseline that is left out is none any more. Claims stay: those about such an arm are inconclusive. Loads the
    strategies. Raises LabError if no arm is left.
    """
    unavailable = {}
    for arm in plan.arms:
        error = _error_of(arm.strategy) if arm.environment is None else None  # else its libraries are that Python's
        reason = error.reason if isinstance(error, UnavailableStrategy) else None
        if reason := reason or lack_of_files(arm, plan.workloads[arm.workload]):
            unavailable[arm.name] = reason
    if not unavailable:
        return plan
    arms = [arm for arm in plan.arms if arm.name not in unavailable]
    if not arms:
        lacks = ", ".join(dict.fromkeys(unavailable.values()))
        raise LabError(f"experiment {plan.name!r}: this machine can run none of its arms: {lacks}")
    workloads, measured = {arm.workload for arm in arms}, {arm.strategy for arm in arms}
    return Plan.model_validate(
        {
            **dict(plan),
            "arms": arms,
            "workloads": {name: workload for name, workload in plan.workloads.items() if name in workloads},
            "baseline": None if plan.baseline in unavailable else plan.baseline,
            "replaced": {name: other for name, other in plan.replaced.items() if other in measured},
            "unavailable_arms": unavailable,
        }
    )


def plugin_faults(names: Iterable[str], say: Callable[[LabError], None]) -> dict[str, PluginError]:
    """Return the errors in the code of plug-ins by name. Other errors in a name are found by other checks.

    If no strategy is left, say all errors but the first, and raise the first: there is nothing to measure.
    """
    known = list(dict.fromkeys(names))
    faults = {name: fault for name in known if isinstance(fault := _error_of(name), PluginError)}
    if faults and len(faults) == len(known):
        first, *others = faults.values()
        for fault in others:
            say(fault)
        raise first
    return faults


def _error_of(name: str) -> LabError | None:
    """Return why the strategy cannot be loaded with its settings; None if it can."""
    try:
        strategies.check_settings(strategies.find(name))
    except LabError as error:
        return error
    return None


def replacements(experiment: Experiment) -> dict[str, str]:
    """Return the strategies that are not installed, with those that the experiment names instead."""
    return {name: other for name, other in experiment.instead.items() if strategies.unavailable(strategies.find(name))}


def most_open_files() -> float:
    """Return the hard limit of open files: a process may raise its own limit that far, and trials and servers do."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return inf if hard == resource.RLIM_INFINITY else hard


def more_files(files: int) -> str:
    """Return the command that lets the programs of a shell open at least so many files."""
    enough = 1 << (files - 1).bit_length()
    return f"prlimit --pid $$ --nofile={enough}:{enough}"


def lack_of_files(arm: Arm, workload: Workload) -> str | None:
    """Return why the arm needs more open files than a process may have, and what to do; None if it has enough.

    A closed load opens a connection for each request in flight. Arms that may open fewer are not judged: those over
    HTTP/2, of an open load, with a pool of their own size, and of several processes.
    """
    strategy, count = strategies.find(arm.strategy), expected_requests(workload)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    own_pool = {"pool", "library_defaults"} & strategy.settings.keys()
    several = executor.size == "processes" or strategy.executor == "async-processes" or workload.shards > 1
    if client.http == "2" or is_open(workload) or own_pool or executor.unbounded or several:
        return None
    in_flight = strategy.in_flight(workload.concurrency, count)
    files, limit = _OWN_FILES + (in_flight if count is None else min(in_flight, count)), most_open_files()
    if files <= limit:
        return None
    return (
        f"{files:,} open files are needed, and the hard limit is {limit:,}; lower -c, or raise the limit of this shell "
        f"as root: {more_files(files)}"
    )


def _check_strategy(arm: Arm, workload: Workload, secure: Collection[str]) -> None:
    strategy, count = strategies.find(arm.strategy), expected_requests(workload)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    if arm.environment is None:  # else the libraries are the environment's, where `running.environments` checks them
        strategies.check_settings(strategy)
        strategies.check_capabilities(strategy, workload)
    if executor.needs_count and count is None:
        message = f"strategy {arm.strategy!r} starts all its requests at once and cannot run for a duration"
        raise FieldError(["duration"], f"{message}; set `requests` instead", value=f"{workload.duration:g}")
    if client.program and arm.route in secure:
        raise LabError(f"strategy {arm.strategy!r}: {client.program} verifies no certificate; use a route without TLS")
    if arm.route not in secure and client.http == "2":
        raise LabError(
            f"strategy {arm.strategy!r} speaks HTTP/2, which needs TLS, and the route {arm.route} has none; "
            "use the route proxy-tls alone, or an https:// URL"
        )
    in_flight = strategy.in_flight(workload.concurrency, count)
    if "concurrency" in arm.axes and in_flight != workload.concurrency:
        message = f"it is an axis, but strategy {arm.strategy!r} always has {in_flight:,} requests in flight"
        raise FieldError(["concurrency"], message)
    if workload.shards == 1:
        return
    check_shards(workload.shards, count, in_flight, strategy.name)
    if client.program:
        message = f"strategy {strategy.name!r} is a program, whose load is not divided; leave it out"
        raise FieldError(["shards"], message)
    for place in (0, workload.shards - 1):
        share = share_of(workload, place, in_flight)
        if strategy.in_flight(share.concurrency, expected_requests(share)) != share.concurrency:
            message = f"a setting of strategy {strategy.name!r} fixes its {in_flight:,} requests in flight"
            raise FieldError(["shards"], f"{message}; leave out one", value=workload.shards)
