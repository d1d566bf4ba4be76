"""Values that replace those of an experiment, the rules by which they do, and what they changed.

A broken rule is a FieldError with the name of the field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from clientlab.analysis.decisions import FEWEST_SEQUENTIAL_ROUNDS
from clientlab.errors import FieldError
from clientlab.experiments.experiment import Experiment
from clientlab.redaction import mask_headers
from clientlab.results.conditions import Conditions
from clientlab.results.plan import EnvironmentSpec
from clientlab.validation import validated
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
    def link(self) -> dict[str, float | list[float]]:
        """The parts of the link: one value, or an axis."""
        given = {part: getattr(self, part) for part in LINK_PARTS}
        return {part: values[0] if len(values) == 1 else list(values) for part, values in given.items() if values}


def overridden(base: Experiment, given: Overrides) -> Experiment:
    """Return the experiment with the given values. Raises FieldError for one that contradicts it, or another one."""
    base = _without_replaced_arms(base, given)
    changes, fields = _changes(base, given), _workload_fields(given)
    _check_conflicts(base, given, {*changes, *fields, *given.link})
    changes["workloads"] = {
        name: table.model_copy(update={"first": replace(table.first, **fields), **given.link})
        for name, table in base.workloads.items()
    }
    return validated(lambda values: base.changed(**values), changes)


def _without_replaced_arms(base: Experiment, given: Overrides) -> Experiment:
    """Return the experiment without the named arms that given strategies replace, or that have other routes.

    Only if no claim and no baseline is about them, and strategies are named beside them.
    """
    if base.claims or base.baseline or not base.strategies:
        return base
    arms = {} if given.strategies else base.arms
    if given.routes:
        arms = {name: arm for name, arm in arms.items() if arm.route is None or arm.route in given.routes}
    return base.model_copy(update={"arms": arms})


def _changes(base: Experiment, given: Overrides) -> dict[str, Any]:
    """Return the fields of the experiment that are replaced, without its workloads."""
    found: dict[str, Any] = {
        name: list(names) for name in ("strategies", "upstreams", "routes") if (names := getattr(given, name))
    }
    if given.strategies:
        found["instead"] = {}  # the named strategies and no others
    if given.environments:
        found["environments"] = {
            name: EnvironmentSpec(folder=str(Path(path).expanduser().absolute()))
            for name, path in given.environments.items()
        }
    single = {"pin": given.pin or None, "find_max": given.find_max, "seed": given.seed, "rounds": given.rounds}
    found |= {name: value for name, value in single.items() if value is not None}
    if given.precision is not None:
        found["rounds"] = max(FEWEST_SEQUENTIAL_ROUNDS, found.get("rounds", base.rounds))
    if given.precision is not None or given.rounds is not None or given.budget is not None:
        found["budget"] = None if given.precision is not None else given.budget
    return found


def _workload_fields(given: Overrides) -> dict[str, Any]:
    """Return the fields of the workload that are replaced.

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


def _check_conflicts(base: Experiment, given: Overrides, changed: Collection[str]) -> None:
    """Raise FieldError for a changed field that is an axis of the experiment, or of which its arms have their own."""
    for name, table in base.workloads.items():
        axes = [*table.axes, *(part for part, value in table.link_parts.items() if isinstance(value, list))]
        if swept := next((axis for axis in axes if axis in changed), None):
            raise FieldError([swept], f"{swept} is an axis of workload {name!r}; change it in a file")
    with_experiment = f"with experiment {base.name!r}"
    if given.strategies and base.arms:
        message = "it names its arms; leave out `strategies`, or change it in a file"
        raise FieldError(["strategies"], message, value=with_experiment)
    several = [part for part, parts in given.link.items() if isinstance(parts, list)]
    several += ["environments"] if len(given.environments) > 1 else []
    if several and (base.claims or base.baseline):
        message = "its claims and its baseline name single arms; name one value, or strategies with `strategies`"
        raise FieldError([several[0]], message, value=with_experiment)
    for name, arm in base.arms.items():
        own: dict[str, Any] = {"upstreams": arm.upstream, "concurrency": arm.concurrency, **arm.link_parts}
        own |= {"environments": arm.environment, "routes": None if arm.route in given.routes else arm.route}
        if fixed := next((one for one, value in own.items() if value and one in changed), None):
            raise FieldError([fixed], f"arm {name!r} has its own value; change it in a file")


def changes_between(base: Experiment, changed: Experiment) -> list[str]:
    """Return what was replaced, each in a phrase. Rounds, seed and deadline do not count: they measure the same."""

    def values(one: Experiment, name: str) -> Iterator[tuple[str, object]]:
        table = one.workloads[name]
        for part in LINK_PARTS:
            value = table.link_parts.get(part, [])
            parts = value if isinstance(value, list) else [value]
            yield part, ", ".join(part_text(part, each) for each in parts) or None
        for one_field in fields(Workload):
            if one_field.name not in {"seed", *NOT_MEASURED}:
                yield one_field.name, getattr(table.first, one_field.name)

    pairs: list[tuple[str, object, object]] = [
        (name, ", ".join(getattr(base, name)), ", ".join(getattr(changed, name)))
        for name in ("strategies", "upstreams", "routes")
    ]
    pairs += [("find_max", base.find_max, changed.find_max)]
    for workload in base.workloads:
        both = zip(values(base, workload), values(changed, workload), strict=True)
        pairs += [(name, before, after) for (name, before), (_, after) in both]
    found = [f"{name}: {_shown(before)} → {_shown(after)}" for name, before, after in pairs if before != after]
    return list(dict.fromkeys(found))


def _shown(value: object) -> str:
    """Return a value without credentials."""
    return "none" if value is None else str(mask_headers(value) if isinstance(value, dict) else value)
