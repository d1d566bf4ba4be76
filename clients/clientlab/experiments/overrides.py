"""Values that replace those of an experiment, the rules by which they do, and what they changed.

The command line and the service use them. A broken rule is a FieldError with the name of the field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from clientlab.analysis.precision import FEWEST_ROUNDS
from clientlab.errors import FieldError
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.refusals import checked
from clientlab.redaction import mask_headers
from clientlab.results.conditions import Conditions
from clientlab.results.plan import EnvironmentSpec
from clientlab.workload import replay
from clientlab.workload.link import LINK_PARTS, part_text
from clientlab.workload.workload import NOT_MEASURED, Workload

_SEARCH_SECONDS = 5.0
"""Length of each trial of a search, if the command line does not give it."""


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Values in place of an experiment's own. None, False and empty ones replace nothing.

    `environments`: name → folder. `rtt` (seconds), `bandwidth` (bits per second): one value, or an axis of several.
    `rounds` or `precision` replaces the experiment's budget. With `precision`, `budget` limits the time of all rounds.
    `workload`: fields of each workload. `precision`: for which rounds are added.
    """

    strategies: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    environments: Mapping[str, str] = field(default_factory=dict)
    rounds: int | None = None
    budget: float | None = None
    precision: float | None = None
    seed: int | None = None
    pin: bool = False
    rtt: tuple[float, ...] = ()
    bandwidth: tuple[float, ...] = ()
    find_max: Conditions | None = None
    workload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def concurrency(self) -> int | None:
        """Requests in flight of every arm; None: each workload's own."""
        number: int | None = self.workload.get("concurrency")
        return number

    @property
    def link(self) -> dict[str, float | list[float]]:
        """The parts of the link: one value, or an axis."""
        given = {part: getattr(self, part) for part in LINK_PARTS}
        return {part: values[0] if len(values) == 1 else list(values) for part, values in given.items() if values}


def overridden(base: Experiment, given: Overrides) -> Experiment:
    """The experiment with the given values. Raises FieldError for one that contradicts it, or another one."""
    base = _without_replaced_arms(base, given)
    changes = _changes(given)
    fields = _workload_fields(given)
    _check_axes(base, {*fields, *given.link})
    _check_one_of_each(base, given)
    _check_arms(base, {*changes, *fields, *given.link}, given.routes)
    tables = {
        name: table.model_copy(update={"first": replace(table.first, **fields), **given.link})
        for name, table in base.workloads.items()
    }
    changes |= {"workloads": tables, "rounds": _rounds(base, given)}
    return checked(lambda values: base.changed(**values), changes)


def _without_replaced_arms(base: Experiment, given: Overrides) -> Experiment:
    """The experiment without named arms in whose place others are given: all, by strategies, or those of other routes.

    Only where no claim and no baseline is about them, and strategies are named beside them.
    """
    if base.claims or base.baseline or not base.strategies:
        return base
    arms = {} if given.strategies else base.arms
    if given.routes:
        arms = {name: arm for name, arm in arms.items() if arm.route is None or arm.route in given.routes}
    return base.model_copy(update={"arms": arms})


def _changes(given: Overrides) -> dict[str, Any]:
    """Fields of the experiment that are replaced, without its workloads and rounds."""
    changes: dict[str, Any] = {
        name: list(names) for name in ("strategies", "upstreams", "routes") if (names := getattr(given, name))
    }
    if given.strategies:
        changes["instead"] = {}  # the named strategies and no others
    if given.environments:
        changes["environments"] = {
            name: EnvironmentSpec(folder=str(Path(path).expanduser().absolute()))
            for name, path in given.environments.items()
        }
    changes |= {"pin": True} if given.pin else {}
    changes |= {} if given.find_max is None else {"find_max": given.find_max}
    if given.precision is not None or (given.rounds is not None and given.budget is None):
        changes["budget"] = None
    elif given.budget is not None:
        changes["budget"] = given.budget
    if given.seed is not None:
        changes["seed"] = given.seed
    return changes


def _workload_fields(given: Overrides) -> dict[str, Any]:
    """Fields of the workload that are replaced.

    A number of requests and a duration replace each other, and so do a rate and stages. Recorded requests are sent once
    each, if no number of requests is given and they are not drawn by weight.
    """
    fields = dict(given.workload)
    for one, other in (("rate", "stages"), ("stages", "rate")):
        if one in fields:
            fields.setdefault(other, None)
    if (path := fields.get("replay")) is not None and "duration" not in fields:
        recorded = replay.read(path)
        if not recorded.weighted:
            fields.setdefault("requests", len(recorded.requests))
    if given.find_max is not None:
        fields.setdefault("duration", _SEARCH_SECONDS)
    if "duration" in fields:
        fields.setdefault("requests", None)
    elif "requests" in fields:
        fields["duration"] = None
    return fields


def _rounds(base: Experiment, given: Overrides) -> int:
    rounds = base.rounds if given.rounds is None else given.rounds
    return rounds if given.precision is None else max(FEWEST_ROUNDS, rounds)


def _check_axes(base: Experiment, fields: set[str]) -> None:
    """Raises FieldError for a field that is an axis of a workload."""
    for name, table in base.workloads.items():
        axes = [*table.axes, *(part for part, value in table.link_parts.items() if isinstance(value, list))]
        if swept := next((axis for axis in axes if axis in fields), None):
            raise FieldError([swept], f"{swept} is an axis of workload {name!r}; change it in a file")


def _check_one_of_each(base: Experiment, given: Overrides) -> None:
    """Raises FieldError for strategies beside named arms, and for an axis of arms that claims or a baseline name."""
    value = f"with experiment {base.name!r}"
    if given.strategies and base.arms:
        message = "it names its arms; leave out `strategies`, or change it in a file"
        raise FieldError(["strategies"], message, value=value)
    several = [part for part, parts in given.link.items() if isinstance(parts, list)]
    several += ["environments"] if len(given.environments) > 1 else []
    if several and (base.claims or base.baseline):
        message = (
            "its claims and its baseline name arms, and each of several would have them; name one, or strategies with "
            "`strategies`"
        )
        raise FieldError([several[0]], message, value=value)


def _check_arms(base: Experiment, fields: set[str], routes: Collection[str]) -> None:
    """Raises FieldError for a field of which a named arm has a value of its own, except its route if that is given."""
    for name, arm in base.arms.items():
        route = None if arm.route in routes else arm.route
        own: dict[str, Any] = {"upstreams": arm.upstream, "routes": route, "concurrency": arm.concurrency}
        own |= {"environments": arm.environment, **arm.link_parts}
        if fixed := next((one for one, value in own.items() if value and one in fields), None):
            raise FieldError([fixed], f"arm {name!r} has its own value; change it in a file")


def changes_between(base: Experiment, changed: Experiment) -> list[str]:
    """What was replaced, each in a phrase. Rounds, seed and deadline do not count: they measure the same."""
    found = [
        f"{name}: {', '.join(before)} → {', '.join(after)}"
        for name in ("strategies", "upstreams", "routes")
        if (before := getattr(base, name)) != (after := getattr(changed, name))
    ]
    if base.find_max != changed.find_max:
        found.append(f"find_max: {_shown(base.find_max)} → {changed.find_max}")
    for name, table in base.workloads.items():
        found += _of_links(table, changed.workloads[name])
        found += _of_workloads(table.first, changed.workloads[name].first)
    return list(dict.fromkeys(found))


def _of_links(one: WorkloadTable, two: WorkloadTable) -> Iterator[str]:
    before, after = ({part: _link_text(part, table) for part in LINK_PARTS} for table in (one, two))
    yield from (f"{part}: {before[part]} → {after[part]}" for part in LINK_PARTS if before[part] != after[part])


def _link_text(part: str, table: WorkloadTable) -> str:
    value = table.link_parts.get(part)
    values = [] if value is None else value if isinstance(value, list) else [value]
    return ", ".join(part_text(part, one) for one in values) or "none"


def _of_workloads(one: Workload, two: Workload) -> Iterator[str]:
    before, after = (replace(each, headers=mask_headers(each.headers)) for each in (one, two))
    for name in (one_field.name for one_field in fields(Workload)):
        if name not in {"seed", *NOT_MEASURED} and getattr(one, name) != getattr(two, name):
            yield f"{name}: {_shown(getattr(before, name))} → {_shown(getattr(after, name))}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
