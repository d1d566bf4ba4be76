"""The plan of `clientlab run`: of a bundled experiment, of a file's, or of the options alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from clientlab.analysis.precision import FEWEST_ROUNDS
from clientlab.cli.placement import announce
from clientlab.cli.plugin_errors import faults_of, tell
from clientlab.cli.run_options import OPTION_NAMES, RunOptions
from clientlab.errors import FieldError, LabError
from clientlab.experiments.checks import TLS_ROUTES, available_part, check_plan, replacements
from clientlab.experiments.experiment import LINK_AXES, Experiment, WorkloadTable
from clientlab.experiments.file import bundled, read_experiment
from clientlab.experiments.planning import make_plan
from clientlab.judging.comparison import NOT_MEASURED
from clientlab.results.capacity_search import DEFAULT_SECONDS, CapacitySearch
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN
from clientlab.results.withheld_plan import check_kept
from clientlab.running.stop_rules import DEFAULT_TIME_BUDGET
from clientlab.service.plans import for_stack
from clientlab.testbeds.external import ExternalTarget
from clientlab.workload import replay
from clientlab.workload.withheld import withheld
from clientlab.workload.workload import Workload

_QUESTION = "Which of these strategies is fastest here?"
_CAPACITY_QUESTION = "How many requests per second does each of these strategies hold here?"


def plan_of(options: RunOptions, target: ExternalTarget | None, command: str) -> Plan:
    """The plan to carry out, checked. `target`: the user's own server, with ``--url``. Raises LabError."""
    file = read_experiment(path_of(options.experiment), quick=options.quick) if options.experiment else None
    base = file.experiment if file else _without_file(options)
    base, left_out = _for_testbed(base, options)
    experiment = base.changed(**_changes(base, target, options))
    # A strategy that a file's claims or baseline may name cannot be left out.
    optional = bool(options.strategies) or not (experiment.claims or experiment.baseline)
    faults = faults_of(experiment.strategies) if optional else {}
    try:
        plan = make_plan(
            experiment,
            command=command,
            shortened=list(file.shortened) if file else [],
            changed=[*left_out, *changed(base, experiment, options.keep_headers)] if file else [],
            replaced=replacements(experiment),
            left_out={name: ": ".join(str(fault).split("\n")) for name, fault in faults.items()},
            precision=options.precision,
            time_budget=_time_budget(options),
        )
        if file and file.is_bundled and not options.strategies:
            plan = available_part(plan)
        check_plan(plan, experiment, _secure_routes(plan, target))
    except FieldError as error:
        if file and not any(options.has(field) for field in error.fields):
            raise file.located(error) from error
        raise
    check_kept(plan, options.keep_headers)
    tell(faults.values())
    if plan.unavailable_arms:
        announce(f"left out: {plan.unavailable_among(plan.unavailable_arms)}")
    return plan


def path_of(name: str) -> Path:
    """The file of a bundled experiment's name, or the file of that path. Raises LabError."""
    path = bundled().get(name, Path(name))
    if not path.is_file():
        raise LabError(f"experiment {name!r}: neither a bundled one ({', '.join(bundled())}) nor a file")
    return path


def _without_file(options: RunOptions) -> Experiment:
    return Experiment(
        name="run",
        question=_QUESTION if options.find_max is None else _CAPACITY_QUESTION,
        strategies=_named_strategies(options),
        workloads={"workload": WorkloadTable(first=Workload())},
    )


def _named_strategies(options: RunOptions) -> list[str]:
    """The strategies of a run without an experiment. Raises LabError."""
    if options.quick:
        raise LabError("--quick: only an experiment has a quick form; name one, or reduce the work with -n and --delay")
    if not options.strategies:
        raise LabError("nothing to measure: name an experiment ('clientlab run demo') or strategies with -t")
    return list(options.strategies)


def _secure_routes(plan: Plan, target: ExternalTarget | None) -> Collection[str]:
    if target is None:
        return TLS_ROUTES
    return {arm.route for arm in plan.arms} if target.secure else ()


def _changes(base: Experiment, target: ExternalTarget | None, options: RunOptions) -> dict[str, Any]:
    """Fields of the experiment that the options replace."""
    lists = {"strategies": options.strategies, "upstreams": options.upstreams, "routes": options.routes}
    changes: dict[str, Any] = {field: list(names) for field, names in lists.items() if names}
    if options.strategies:
        changes["instead"] = {}  # the named strategies and no others
    numbers = {"rounds": options.rounds, "seed": options.seed}
    if options.environments:
        changes["environments"] = {name: EnvironmentSpec(folder=path) for name, path in options.environments.items()}
    if options.ceilings:
        changes["ceilings"] = True
    changes |= {field: number for field, number in numbers.items() if number is not None}
    if options.pin:
        changes["pin"] = True
    if (search := _search(base, options)) is not None:
        changes["find_max"] = search
    workload_changes = _workload_changes(options)
    if target is not None:
        changes |= {"upstreams": [target.name], "routes": ["direct"]}
        workload_changes |= _path_of(base, target, replayed=options.replay is not None)
        _check_no_delay(base)
    links = _links(options)
    _check_changes(base, changes, workload_changes | links)
    firsts = {name: replace(table.first, **workload_changes) for name, table in base.workloads.items()}
    if target is not None and (links or base.has_link):
        firsts = {name: target.named_in(first) for name, first in firsts.items()}
    changes["workloads"] = {
        name: table.model_copy(update={"first": firsts[name], **links}) for name, table in base.workloads.items()
    }
    rounds = changes.get("rounds", base.rounds)
    if not 1 <= rounds <= MOST_ROUNDS_OF_A_RUN:
        raise LabError(f"--rounds {rounds}: trials of each strategy; write 1 to {MOST_ROUNDS_OF_A_RUN:,}")
    return changes | {"rounds": rounds if options.precision is None else max(FEWEST_ROUNDS, rounds)}


def _for_testbed(experiment: Experiment, options: RunOptions) -> tuple[Experiment, list[str]]:
    """The experiment as the testbed measures it with these options, and what that changed. Raises LabError."""
    if _links(options):
        return experiment.without_linked_controls()
    if options.testbed == "compose" and options.url is None:
        behind, _, changed = for_stack(experiment)
        return behind, changed
    return experiment, []


def _links(options: RunOptions) -> dict[str, str | list[str]]:
    """The parts of the link that the options replace: one value, or an axis."""
    given = {part: texts for part in LINK_AXES if (texts := getattr(options, part)) is not None}
    return {part: texts[0] if len(texts) == 1 else list(texts) for part, texts in given.items()}


def _search(base: Experiment, options: RunOptions) -> CapacitySearch | None:
    """The search that the options ask for: the experiment's own with their values. Raises LabError."""
    own = {} if base.find_max is None else base.find_max.model_dump()
    given = {"conditions": options.find_max, "start": options.find_from, "overload": options.overload}
    if options.find_max is None and not own:
        for field in ("find_from", "overload"):
            if options.has(field):
                raise LabError(f"{OPTION_NAMES[field]} without --find-max: only a search has it; leave it out")
    merged = own | {field: value for field, value in given.items() if value is not None}
    return CapacitySearch(**merged) if merged else None


def _path_of(base: Experiment, target: ExternalTarget, *, replayed: bool) -> dict[str, Any]:
    """The path of the URL, unless the requests have paths of their own. Raises LabError for both."""
    if not replayed and all(table.first.replay is None for table in base.workloads.values()):
        return {"path": target.path}
    if target.path != "/":
        raise LabError(f"--url with {target.path}: recorded requests have their own paths; name scheme and host alone")
    return {}


def _workload_changes(options: RunOptions) -> dict[str, Any]:
    """Fields of the workload that the options replace.

    A number of requests and a duration replace each other, and so do a rate and stages. Recorded requests are sent once
    each, if no number of requests is named and they are not drawn by weight.
    """
    changes = options.workload_fields()
    for one, other in (("rate", "stages"), ("stages", "rate")):
        if one in changes:
            changes.setdefault(other, None)
    if options.replay is not None:
        changes["replay"] = str(options.replay.resolve())
        recorded = replay.read(changes["replay"])
        if recorded.left_out:
            line = f"{recorded.left_out:,} entries of {options.replay} are no HTTP requests, and are left out"
            click.echo(f"clientlab: {line}", err=True)
        if not recorded.weighted and "duration" not in changes:
            changes.setdefault("requests", len(recorded.requests))
    if options.find_max is not None:
        changes.setdefault("duration", DEFAULT_SECONDS)
    if "duration" in changes:
        changes.setdefault("requests", None)
    elif "requests" in changes:
        changes["duration"] = None
    return changes


def _check_no_delay(base: Experiment) -> None:
    delayed = next((name for name, table in base.workloads.items() if table.first.delay is not None), None)
    if delayed is not None:
        raise LabError(
            f"--url with experiment {base.name!r}: workload {delayed!r} needs a delay, which only the lab's own "
            "upstreams can add; name its strategies with -t"
        )


def _check_changes(base: Experiment, changes: dict[str, Any], workload_changes: dict[str, Any]) -> None:
    """Raises LabError for an option that contradicts the experiment: an axis, or a value of a named arm."""
    for name, table in base.workloads.items():
        axes = {*table.axes, *(part for part in LINK_AXES if isinstance(getattr(table, part), list))}
        if swept := next((field for field in workload_changes if field in axes), None):
            raise LabError(f"{OPTION_NAMES[swept]}: {swept} is an axis of workload {name!r}; change it in a file")
    if "strategies" in changes and base.arms:
        raise LabError(f"-t with experiment {base.name!r}: it names its arms; leave out -t, or change it in a file")
    several = {part: isinstance(workload_changes.get(part), list) for part in LINK_AXES}
    several["environments"] = len(changes.get("environments", ())) > 1
    if (field := next(filter(several.get, several), None)) and (base.claims or base.baseline):
        raise LabError(
            f"{OPTION_NAMES[field]} with experiment {base.name!r}: its claims and its baseline name arms, and each of "
            "several would have them; name one, or strategies with -t"
        )
    for name, arm in base.arms.items():
        own = {"upstreams": arm.upstream, "routes": arm.route, "concurrency": arm.concurrency}
        own |= {"environments": arm.environment, **{part: getattr(arm, part) for part in LINK_AXES}}
        if fixed := next((field for field in own if own[field] and field in {**changes, **workload_changes}), None):
            raise LabError(f"{OPTION_NAMES[fixed]}: arm {name!r} has its own value; change it in a file")


def _time_budget(options: RunOptions) -> float | None:
    """Seconds after which a run with a precision adds no round. Raises LabError for a budget without a precision."""
    if options.precision is not None:
        return DEFAULT_TIME_BUDGET if options.time_budget is None else options.time_budget
    if options.time_budget is not None:
        raise LabError("--time-budget without --until-precision: the number of rounds is fixed; set it with --rounds")
    return None


def changed(base: Experiment, experiment: Experiment, kept: Collection[str] = ()) -> list[str]:
    """What the options changed, for the run file. Rounds, seed and deadline do not count: they measure the same.

    `kept`: names of headers and query parameters whose values are shown although they are secrets.
    """
    found = [
        f"{field}: {', '.join(before)} → {', '.join(after)}"
        for field in ("strategies", "upstreams", "routes")
        if (before := getattr(base, field)) != (after := getattr(experiment, field))
    ]
    searches = [{} if one.find_max is None else one.find_max.model_dump() for one in (base, experiment)]
    found += [
        f"find_max.{field}: {searches[0].get(field, 'none')} → {after}"
        for field, after in searches[1].items()
        if searches[0].get(field) != after
    ]
    for name, table in base.workloads.items():
        parts = ((part, getattr(table, part), getattr(experiment.workloads[name], part)) for part in LINK_AXES)
        found += [f"{part}: {_shown(before)} → {_shown(after)}" for part, before, after in parts if before != after]
        firsts = table.first, experiment.workloads[name].first
        before, after = map(asdict, firsts)
        shown = [asdict(withheld(first, kept)) for first in firsts]
        found += [
            f"{field}: {_shown(shown[0][field])} → {_shown(shown[1][field])}"
            for field in before
            if field not in {"seed", *NOT_MEASURED} and before[field] != after[field]
        ]
    return list(dict.fromkeys(found))


def _shown(value: Any) -> str:
    return "none" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
