"""The plan of a new run: of a bundled experiment, of a file's, or of strategies alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from math import ceil

from clientlab import units
from clientlab.errors import FieldError, LabError
from clientlab.experiments.checks import (
    TLS_ROUTES,
    available_part,
    check_concurrency,
    check_plan,
    plugin_faults,
    replacements,
)
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import path_of, read_experiment
from clientlab.experiments.overrides import Overrides, changes_between, overridden
from clientlab.experiments.planning import make_plan
from clientlab.results.plan import Plan
from clientlab.running.due import DEFAULT_TIME_BUDGET, round_seconds
from clientlab.standalone.requests import NewRun
from clientlab.strategies import plugins
from clientlab.testbeds.compose import for_stack
from clientlab.testbeds.external import ExternalTarget
from clientlab.workload import replay
from clientlab.workload.workload import Workload

_QUESTION = "Which of these strategies is fastest here?"
_RATE_QUESTION = "How many requests per second does each of these strategies hold here?"

Say = Callable[[LabError | str], None]
"""Prints a line for the user, beside the results."""


def plan_of(request: NewRun, external: ExternalTarget | None, say: Say) -> Plan:
    """The plan to carry out, checked. `external`: the user's own server. Raises LabError."""
    file = read_experiment(path_of(request.experiment), quick=request.quick) if request.experiment else None
    base = file.experiment if file else _without_file(request)
    arms = (arm.strategy for arm in base.arms.values())
    plugins.admit([*request.overrides.strategies, *base.strategies, *arms, *base.instead, *base.instead.values()])
    base, left_out = _for_testbed(base, request)
    experiment = _overridden(base, request.overrides, external)
    _tell_left_out(request.overrides, say)
    # A strategy that a file's claims or baseline may name cannot be left out.
    optional = bool(request.overrides.strategies) or not (experiment.claims or experiment.baseline)
    faults = plugin_faults(experiment.strategies, say) if optional else {}
    try:
        plan = make_plan(
            experiment,
            command=request.command,
            shortened=list(file.shortened) if file else [],
            changed=[*left_out, *changes_between(base, experiment)] if file else [],
            replaced=replacements(experiment),
            left_out={name: ": ".join(str(fault).split("\n")) for name, fault in faults.items()},
            precision=request.overrides.precision,
            time_budget=_time_budget(request.overrides),
        )
        if file and file.is_bundled and not request.overrides.strategies:
            plan = available_part(plan)
        check_plan(plan, experiment, _secure_routes(plan, external))
        check_concurrency(plan, request.overrides.concurrency, say)
        _check_budget(plan)
    except FieldError as error:
        if file and not request.given.intersection(error.fields):
            raise file.located(error) from error
        raise
    for fault in faults.values():
        say(fault)
    if plan.unavailable_arms:
        say(f"left out: {plan.unavailable_among(plan.unavailable_arms)}")
    return plan


def _without_file(request: NewRun) -> Experiment:
    if request.quick:
        raise LabError("--quick: only an experiment has a quick form; name one, or reduce the work with -n and --delay")
    if not request.overrides.strategies:
        raise LabError("nothing to measure: name an experiment ('clientlab run demo') or strategies with -t")
    return Experiment(
        name="run",
        question=_question(request.overrides),
        strategies=list(request.overrides.strategies),
        workloads={"workload": WorkloadTable(first=Workload())},
    )


def _question(given: Overrides) -> str:
    """The question of strategies alone; with two environments, which of them is slower than the first."""
    if given.find_max is not None:
        return _RATE_QUESTION
    if len(given.environments) != 2:
        return _QUESTION
    old, new = given.environments
    return f"Is `{new}` slower than `{old}`?"


def _for_testbed(experiment: Experiment, request: NewRun) -> tuple[Experiment, list[str]]:
    """The experiment as the testbed measures it with these overrides, and what that changed. Raises LabError."""
    if request.overrides.link:
        return experiment.without_linked_controls()
    if request.target.testbed == "compose":
        return for_stack(experiment)
    return experiment, []


def _overridden(base: Experiment, given: Overrides, external: ExternalTarget | None) -> Experiment:
    """The experiment with the given values, against the user's own server if there is one. Raises LabError."""
    if external is None:
        return overridden(base, given)
    _check_no_delay(base)
    fields = {**given.workload, **_path_of(base, external, replayed="replay" in given.workload)}
    given = replace(given, upstreams=(external.name,), routes=("direct",), workload=fields)
    experiment = overridden(base, given)
    if not experiment.has_link:
        return experiment
    tables = {
        name: table.model_copy(update={"first": external.named_in(table.first)})
        for name, table in experiment.workloads.items()
    }
    return experiment.changed(workloads=tables)


def _path_of(base: Experiment, external: ExternalTarget, *, replayed: bool) -> dict[str, str]:
    """The path of the URL, unless the requests have paths of their own. Raises LabError for both."""
    if not replayed and all(table.first.replay is None for table in base.workloads.values()):
        return {"path": external.path}
    if external.path != "/":
        message = "recorded requests have their own paths; name scheme and host alone"
        raise FieldError(["url"], message, value=f"with {external.path}")
    return {}


def _check_no_delay(base: Experiment) -> None:
    delayed = next((name for name, table in base.workloads.items() if table.first.delay is not None), None)
    if delayed is not None:
        raise LabError(
            f"--url with experiment {base.name!r}: workload {delayed!r} needs a delay, which only the lab's own "
            "upstreams can add; name its strategies with -t"
        )


def _tell_left_out(given: Overrides, say: Say) -> None:
    if (path := given.workload.get("replay")) is not None and (left_out := replay.read(path).left_out):
        say(f"{left_out:,} entries of {path} are no HTTP requests, and are left out")


def _secure_routes(plan: Plan, external: ExternalTarget | None) -> Collection[str]:
    if external is None:
        return TLS_ROUTES
    return {arm.route for arm in plan.arms} if external.secure else ()


def _check_budget(plan: Plan) -> None:
    needed = round_seconds(plan)
    if plan.budget is not None and plan.budget < needed:
        message = f"one round of {len(plan.arms)} arms takes about {units.time(needed)}; write {ceil(needed)}s or more"
        raise FieldError(["budget"], message, value=units.time(plan.budget))


def _time_budget(given: Overrides) -> float | None:
    """Return the seconds after which a run with a precision adds no round; None without a precision."""
    return None if given.precision is None else given.budget or DEFAULT_TIME_BUDGET
