"""The plan of a new run: of a bundled experiment, of a file's, or of strategies alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from clientlab import units
from clientlab.errors import FieldError, LabError
from clientlab.experiments.checks import available_part, check_concurrency, check_plan, plugin_faults, replacements
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import bundled, path_of, read_experiment
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

Say = Callable[[LabError | str], None]
"""Prints a line for the user, beside the results."""


def plan_of(request: NewRun, external: ExternalTarget | None, say: Say) -> Plan:
    """Return the plan to carry out, checked. `external`: the user's own server. Raises LabError."""
    given = request.overrides
    file = read_experiment(path_of(request.experiment), quick=request.quick) if request.experiment else None
    base = file.experiment if file else _without_file(request)
    arms = (arm.strategy for arm in base.arms.values())
    plugins.admit([*given.strategies, *base.strategies, *arms, *base.instead, *base.instead.values()])
    changed: list[str] = []
    if given.link:
        base, changed = base.without_linked_controls()
    elif request.target.testbed == "compose":
        base, changed = for_stack(base)
    experiment = overridden(base, given) if external is None else _on_own_server(base, given, external)
    path = given.workload.get("replay")
    if path is not None and (left_out := replay.read(path).left_out):
        say(f"{left_out:,} entries of {path} are no HTTP requests, and are left out")
    # A strategy that a file's claims or baseline may name cannot be left out.
    optional = bool(given.strategies) or not (experiment.claims or experiment.baseline)
    faults = plugin_faults(experiment.strategies, say) if optional else {}
    try:
        plan = make_plan(
            experiment,
            command=request.command,
            shortened=list(file.shortened) if file else [],
            changed=[*changed, *changes_between(base, experiment)] if file else [],
            replaced=replacements(experiment),
            left_out={name: ": ".join(str(fault).split("\n")) for name, fault in faults.items()},
            precision=given.precision,
            time_budget=None if given.precision is None else given.budget or DEFAULT_TIME_BUDGET,
        )
        if file and file.path in bundled().values() and not given.strategies:
            plan = available_part(plan)
        if external is None:
            check_plan(plan, experiment)
        else:
            check_plan(plan, experiment, {arm.route for arm in plan.arms} if external.secure else ())
        check_concurrency(plan, given.workload.get("concurrency"), say)
        _check_budget(plan)
    except FieldError as error:
        if file and not request.given.intersection(error.fields):
            raise LabError(f"{file.path}: {error}") from error
        raise
    for fault in faults.values():
        say(fault)
    if plan.unavailable_arms:
        say(f"left out: {plan.unavailable_among(plan.unavailable_arms)}")
    return plan


def _check_budget(plan: Plan) -> None:
    needed = round_seconds(plan)
    if plan.budget is not None and plan.budget < needed:
        message = f"one round of {len(plan.arms)} arms takes about {units.time(needed)}; write {ceil(needed)}s or more"
        raise FieldError(["budget"], message, value=units.time(plan.budget))


def _without_file(request: NewRun) -> Experiment:
    """Return the experiment of strategies alone. With two environments, it asks which of them is slower."""
    given = request.overrides
    if request.quick:
        raise LabError("--quick: only an experiment has a quick form; name one, or reduce the work with -n and --delay")
    if not given.strategies:
        raise LabError("nothing to measure: name an experiment ('clientlab run demo') or strategies with -t")
    question = "Which of these strategies is fastest here?"
    if given.find_max is not None:
        question = "How many requests per second does each of these strategies hold here?"
    elif len(given.environments) == 2:
        old, new = given.environments
        question = f"Is `{new}` slower than `{old}`?"
    tables = {"workload": WorkloadTable(first=Workload())}
    return Experiment(name="run", question=question, strategies=list(given.strategies), workloads=tables)


def _on_own_server(base: Experiment, given: Overrides, external: ExternalTarget) -> Experiment:
    """Return the experiment with the given values, against the user's own server. Raises LabError."""
    delayed = next((name for name, table in base.workloads.items() if table.first.delay is not None), None)
    if delayed is not None:
        raise LabError(
            f"--url with experiment {base.name!r}: workload {delayed!r} needs a delay, which only the lab's own "
            "upstreams can add; name its strategies with -t"
        )
    fields = dict(given.workload)
    if "replay" not in fields and all(table.first.replay is None for table in base.workloads.values()):
        fields["path"] = external.path
    elif external.path != "/":
        message = "recorded requests have their own paths; name scheme and host alone"
        raise FieldError(["url"], message, value=f"with {external.path}")
    given = replace(given, upstreams=(external.name,), routes=("direct",), workload=fields)
    experiment = overridden(base, given)
    if not experiment.has_link:
        return experiment
    tables = {
        name: table.model_copy(update={"first": external.named_in(table.first)})
        for name, table in experiment.workloads.items()
    }
    return experiment.changed(workloads=tables)
