"""From the tables of an experiment to its arms: every workload, upstream, route, link and point on an axis."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from clientlab.errors import FieldError, FieldKey
from clientlab.experiments.experiment import ArmTable, Experiment, WorkloadTable
from clientlab.nearest import nearest
from clientlab.results.plan import FEWEST_IN_SWEEP, Arm, as_text, suffix_of
from clientlab.workload.link import link_of, part_text
from clientlab.workload.workload import Workload

_Pair = tuple[Arm, Workload]


def expand(experiment: Experiment, replaced: Mapping[str, str], left_out: Collection[str]) -> list[_Pair]:
    """Return every arm with its workload: by workload, upstream and route, then in the order of the file.

    `replaced`: strategy → the strategy that replaces it. `left_out`: listed strategies that make no arms.
    """
    listed = [replaced.get(name, name) for name in experiment.strategies if name not in left_out]
    tables = [(name, ArmTable(strategy=name)) for name in listed]
    for name, table in experiment.arms.items():
        strategy = replaced.get(table.strategy, table.strategy)
        tables.append((name, table.model_copy(update={"strategy": strategy})))
    shared: dict[str, list[str]] = {
        "workload": list(experiment.workloads),
        "upstream": experiment.upstreams,
        "route": list(experiment.routes),
    }
    every = []
    for part, choices in shared.items():
        own = [getattr(table, part) for _, table in tables]  # that single arms choose
        every.append(dict.fromkeys([*choices, *(name for name in own if name is not None)]))
    found: list[_Pair] = []
    for way in itertools.product(*every):
        at = dict(zip(shared, way, strict=True))
        for name, table in tables:
            free = [part for part in shared if getattr(table, part) is None]
            fixed = {part: getattr(table, part) for part in shared if part not in free}
            if fixed.items() <= at.items() and all(at[part] in shared[part] for part in free):
                varied = ", ".join(at[part] for part in free if len(shared[part]) > 1)
                full_name = f"{name} ({varied})" if varied else name
                arms = _arms(name, full_name, table, at, experiment.workloads[at["workload"]])
                found += _in_environments(list(arms), table, experiment.environments)
    return found


def _arms(
    name: str, full_name: str, table: ArmTable, at: Mapping[str, str], workload: WorkloadTable
) -> Iterator[_Pair]:
    """Yield one arm for each point on the axes of the workload, of the link and of the table."""
    fields: dict[str, Any] = dict(workload.axes)
    if table.concurrency is not None:
        fields["concurrency"] = table.concurrency
    link_parts = workload.link_parts | table.link_parts
    axes = {
        key for given in (fields, link_parts, table.settings) for key, value in given.items() if isinstance(value, list)
    }
    for changes, link, settings in itertools.product(*map(_points, (fields, link_parts, table.settings))):
        shown = {part: part_text(part, value) for part, value in link.items()}
        point = {key: value for key, value in {**changes, **shown, **settings}.items() if key in axes}
        joint = "&" if "?" in table.strategy else "?"
        query = "&".join(f"{key}={as_text(value)}" for key, value in settings.items())
        arm = Arm(
            name=full_name + suffix_of(point),
            label=name + suffix_of(point),
            strategy=table.strategy + (joint + query if query else ""),
            workload=at["workload"] + suffix_of(changes),
            upstream=at["upstream"],
            route=at["route"],
            group=at["workload"],
            axes=point,
            sweep=full_name if point else None,
            control=table.control,
            link=link_of(link.get("rtt"), link.get("bandwidth")),
        )
        yield arm, workload.at(changes)


def _points(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of the values. One value is an axis of one point."""
    values = (value if isinstance(value, list) else [value] for value in axes.values())
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*values)]


def _in_environments(arms: Sequence[_Pair], table: ArmTable, environments: Collection[str]) -> Iterator[_Pair]:
    """Yield the arms in each environment, with its name in theirs; or in the one that there is or the table chooses."""
    if table.environment is not None or len(environments) < 2:
        only = table.environment or next(iter(environments), None)
        yield from ((arm.model_copy(update={"environment": only}), workload) for arm, workload in arms)
        return
    for environment, (arm, workload) in itertools.product(environments, arms):
        names = {"name": arm.name, "label": arm.label, "sweep": arm.sweep}
        full_names = {field: f"{name} in {environment}" for field, name in names.items() if name is not None}
        yield arm.model_copy(update={"environment": environment, **full_names}), workload


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
