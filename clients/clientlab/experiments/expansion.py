"""From the tables of an experiment to its arms: every workload, upstream, route, link and point on an axis."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from clientlab.errors import FieldError, FieldKey
from clientlab.experiments.experiment import ArmTable, Experiment, WorkloadTable
from clientlab.nearest import nearest
from clientlab.results.plan import FEWEST_IN_SWEEP, Arm, AxisValue, as_text, suffix_of
from clientlab.workload.link import link_of, part_text
from clientlab.workload.workload import Workload

_Way = tuple[str, str, str]
"""A workload, an upstream and a route, by name."""
_Pair = tuple[Arm, Workload]
_Parts = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""Those of the experiment."""


def expand(
    experiment: Experiment, replaced: Mapping[str, str], left_out: Collection[str]
) -> list[tuple[Arm, Workload]]:
    """Every arm with its workload: by workload, upstream and route, then in the order of the file.

    `replaced`: strategy → the strategy that replaces it. `left_out`: listed strategies that make no arms.
    """
    listed = [replaced.get(name, name) for name in experiment.strategies if name not in left_out]
    tables = [(name, ArmTable(strategy=name)) for name in listed]
    tables += [
        (name, table.model_copy(update={"strategy": replaced.get(table.strategy, table.strategy)}))
        for name, table in experiment.arms.items()
    ]
    parts: _Parts = (list(experiment.workloads), experiment.upstreams, experiment.routes)
    every = [_with_own(part, [_own(table)[index] for _, table in tables]) for index, part in enumerate(parts)]
    found: list[tuple[Arm, Workload]] = []
    for workload, upstream, route in itertools.product(*every):
        way = (workload, upstream, route)
        for name, table in tables:
            if _runs(table, way, parts):
                arms = list(_arms(name, table, way, parts, experiment.workloads[workload]))
                found += _in_environments(arms, table, experiment.environments)
    return found


def _in_environments(arms: Sequence[_Pair], table: ArmTable, environments: Collection[str]) -> Iterator[_Pair]:
    """The arms in each environment, with its name in theirs; in the only one, or the one that the table chooses."""
    if table.environment is not None or len(environments) < 2:
        only = table.environment or next(iter(environments), None)
        yield from ((arm.model_copy(update={"environment": only}), workload) for arm, workload in arms)
        return
    for environment, (arm, workload) in itertools.product(environments, arms):
        names = {"name": arm.name, "label": arm.label, "sweep": arm.sweep}
        full_names = {field: f"{name} in {environment}" for field, name in names.items() if name is not None}
        yield arm.model_copy(update={"environment": environment, **full_names}), workload


def _own(table: ArmTable) -> tuple[str | None, str | None, str | None]:
    return table.workload, table.upstream, table.route


def _with_own(part: Sequence[str], own: Sequence[str | None]) -> list[str]:
    """The experiment's workloads, upstreams or routes, and those that only single arms choose."""
    return list(dict.fromkeys([*part, *(name for name in own if name is not None)]))


def _runs(table: ArmTable, way: _Way, parts: _Parts) -> bool:
    """Whether each part of the way is the one that the table chooses, or else one of the experiment's."""
    triples = zip(way, _own(table), parts, strict=True)
    return all(name == own if own is not None else name in part for name, own, part in triples)


def _arms(
    name: str, table: ArmTable, way: _Way, parts: _Parts, workload: WorkloadTable
) -> Iterator[tuple[Arm, Workload]]:
    """One arm for each point on the axes of the workload, of the link and of the table."""
    triples = zip(way, _own(table), parts, strict=True)
    varied = [part for part, own, choices in triples if own is None and len(choices) > 1]
    full_name = f"{name} ({', '.join(varied)})" if varied else name
    fields: dict[str, list[Any]] = dict(workload.axes)
    if table.concurrency is not None:
        fields["concurrency"] = _values(table.concurrency)
    link_parts = workload.link_parts | table.link_parts
    own = {"concurrency": table.concurrency, **link_parts, **table.settings}
    axes = {*workload.axes, *(key for key, value in own.items() if isinstance(value, list))}
    links, settings_axes = (_axes(one) for one in (link_parts, table.settings))
    for changes, link, settings in itertools.product(*map(_points, (fields, links, settings_axes))):
        shown = {part: part_text(part, value) for part, value in link.items()}
        point = {key: value for key, value in {**changes, **shown, **settings}.items() if key in axes}
        arm = Arm(
            name=full_name + suffix_of(point),
            label=name + suffix_of(point),
            strategy=_with_settings(table.strategy, settings),
            workload=way[0] + suffix_of(changes),
            upstream=way[1],
            route=way[2],
            group=way[0],
            axes=point,
            sweep=full_name if point else None,
            control=table.control,
            link=link_of(link.get("rtt"), link.get("bandwidth")),
        )
        yield arm, workload.at(changes)


def _axes(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {key: _values(value) for key, value in values.items()}


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _points(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _with_settings(strategy: str, settings: Mapping[str, AxisValue]) -> str:
    if not settings:
        return strategy
    joint = "&" if "?" in strategy else "?"
    return strategy + joint + "&".join(f"{key}={as_text(value)}" for key, value in settings.items())


def table_of(experiment: Experiment, arm: Arm) -> FieldKey:
    """Where an arm stands in the file: its table, or the list of strategies."""
    entry = entry_of(arm)
    return ("arms", entry) if entry in experiment.arms else ("strategies",)


def entry_of(arm: Arm) -> str:
    """The name of an arm in the file: without its point on axes."""
    label = arm.label or ""
    if arm.environment is not None:
        label = label.removesuffix(f" in {arm.environment}")
    return label.partition("[")[0]


def resolve(name: str, arms: Sequence[Arm], key: FieldKey) -> str:
    """The arm of that name, or the first or last of a sweep: ``NAME[first]``. Raises FieldError at `key`."""
    names = [arm.name for arm in arms]
    if name in names:
        return name
    base, _, end = name.removesuffix("]").partition("[")
    sweep = [arm.name for arm in arms if arm.sweep == base]
    if sweep and end in ("first", "last"):
        return sweep[0 if end == "first" else -1]
    raise FieldError(key, f"no arm is named {name!r}{nearest(name, names)}")


def sweep_of(name: str, arms: Sequence[Arm], key: FieldKey) -> list[str]:
    """The arms of a sweep, in its order. Raises FieldError where they are no sweep along one axis."""
    sweep = [arm for arm in arms if arm.sweep == name]
    if not sweep:
        raise FieldError(key, f"no sweep is named {name!r}{nearest(name, [a.sweep for a in arms if a.sweep])}")
    if len(sweep[0].axes) > 1 or len(sweep) < FEWEST_IN_SWEEP:
        axes = ", ".join(sweep[0].axes)
        raise FieldError(
            key, f"{name!r} has {len(sweep)} arms along {axes}; an optimum needs one axis of {FEWEST_IN_SWEEP} or more"
        )
    return [arm.name for arm in sweep]


def key_of(experiment: Experiment, arm: Arm, field: str | int) -> FieldKey:
    """The table of the file that holds a field of the arm's workload."""
    table = experiment.arms.get(entry_of(arm))
    if table is not None and table.concurrency is not None and field == "concurrency":
        return ("arms", entry_of(arm))
    return ("workloads", arm.group or arm.workload)
