"""What was changed in an experiment before it was planned, as the run file and its reports state it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.workload.link import LINK_PARTS, part_text
from clientlab.workload.withheld import withheld
from clientlab.workload.workload import NOT_MEASURED, Workload


def changes_between(base: Experiment, changed: Experiment, kept: Collection[str] = ()) -> list[str]:
    """What was replaced, each in a phrase. Rounds, seed and deadline do not count: they measure the same.

    `kept`: names of headers and query parameters whose values are shown although they are secrets.
    """
    found = [
        f"{name}: {', '.join(before)} → {', '.join(after)}"
        for name in ("strategies", "upstreams", "routes")
        if (before := getattr(base, name)) != (after := getattr(changed, name))
    ]
    found += _of_searches(base, changed)
    for name, table in base.workloads.items():
        found += _of_links(table, changed.workloads[name])
        found += _of_workloads(table.first, changed.workloads[name].first, kept)
    return list(dict.fromkeys(found))


def _of_searches(base: Experiment, changed: Experiment) -> Iterator[str]:
    one, two = ({} if each.find_max is None else each.find_max.model_dump(mode="json") for each in (base, changed))
    for name, after in two.items():
        if one.get(name) != after:
            yield f"find_max.{name}: {one.get(name, 'none')} → {after}"


def _of_links(one: WorkloadTable, two: WorkloadTable) -> Iterator[str]:
    before, after = ({part: _link_text(part, table) for part in LINK_PARTS} for table in (one, two))
    yield from (f"{part}: {before[part]} → {after[part]}" for part in LINK_PARTS if before[part] != after[part])


def _link_text(part: str, table: WorkloadTable) -> str:
    value = table.link_parts.get(part)
    values = [] if value is None else value if isinstance(value, list) else [value]
    return ", ".join(part_text(part, one) for one in values) or "none"


def _of_workloads(one: Workload, two: Workload, kept: Collection[str]) -> Iterator[str]:
    before, after = withheld(one, kept), withheld(two, kept)
    for name in (field.name for field in fields(Workload)):
        if name not in {"seed", *NOT_MEASURED} and getattr(one, name) != getattr(two, name):
            yield f"{name}: {_shown(getattr(before, name))} → {_shown(getattr(after, name))}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
