"""From what an experiment names to its arms: every workload, upstream, route and place on an axis."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clientlab.errors import LabError
from clientlab.runs.document import Arm, AxisValue
from clientlab.runs.document_check import FEWEST_IN_SWEEP
from clientlab.runs.toml_lines import Key
from clientlab.workload import Workload

Axes = Mapping[str, Sequence[AxisValue]]


class BadExperiment(LabError):
    """An experiment that can't be; `key` is where in its file."""

    def __init__(self, key: Key, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Asked:
    """Arms as they are asked for. What is None of workload, upstream and route is every one of the experiment's.

    Lists among `settings`, and as `concurrency`, are axes.
    """

    name: str
    strategy: str
    settings: Mapping[str, AxisValue | list[AxisValue]]
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: str | None = None
    control: bool = False


def expand(
    asked: Sequence[Asked],
    workloads: Mapping[str, Workload],
    axes: Mapping[str, Axes],
    upstreams: Sequence[str],
    routes: Sequence[str],
) -> list[tuple[Arm, Workload]]:
    """Every arm and the workload that it does: by workload, upstream and route, then in the order asked."""
    parts: tuple[Sequence[str], ...] = (tuple(workloads), upstreams, routes)
    found: list[tuple[Arm, Workload]] = []
    for way in itertools.product(*(_with_own(part, asked, place) for place, part in enumerate(parts))):
        for one in asked:
            own = (one.workload, one.upstream, one.route)
            if all(mine in (None, its) for mine, its in zip(own, way, strict=True)) and _wanted(own, way, parts):
                varied = [
                    its for its, mine, part in zip(way, own, parts, strict=True) if mine is None and len(part) > 1
                ]
                found += _swept(one, way, varied, workloads[way[0]], axes.get(way[0], {}))
    return found


def _with_own(part: Sequence[str], asked: Sequence[Asked], place: int) -> list[str]:
    """The experiment's workloads, upstreams or routes, and those that single arms name besides."""
    own = [(one.workload, one.upstream, one.route)[place] for one in asked]
    return list(dict.fromkeys([*part, *(name for name in own if name is not None)]))


def _wanted(own: Sequence[str | None], way: Sequence[str], parts: Sequence[Sequence[str]]) -> bool:
    """Whether each part of the way is the arm's own, or one of the experiment's."""
    return all(mine is not None or its in part for mine, its, part in zip(own, way, parts, strict=True))


def _swept(
    one: Asked, way: tuple[str, ...], varied: list[str], workload: Workload, axes: Axes
) -> Iterator[tuple[Arm, Workload]]:
    """An arm for each place on the axes of the workload, and on the arm's own."""
    of_workload = dict(axes)
    if one.concurrency is not None:
        of_workload["concurrency"] = _listed(one.concurrency)
    of_settings = {key: _listed(value) for key, value in one.settings.items()}
    swept = {key for key, value in one.settings.items() if isinstance(value, list)} | set(axes)
    swept |= {"concurrency"} if isinstance(one.concurrency, list) else set()
    own_name = f"{one.name} ({', '.join(varied)})" if varied else one.name
    for asks in _combinations(of_workload):
        for settings in _combinations(of_settings):
            place = {key: value for key, value in {**asks, **settings}.items() if key in swept}
            arm = Arm(
                name=own_name + _suffix(place),
                label=one.name + _suffix(place),
                strategy=_with_settings(one.strategy, settings),
                workload=way[0] + _suffix(asks),
                upstream=way[1],
                route=way[2],
                group=way[0],
                axes=place,
                sweep=own_name if place else None,
                control=one.control,
            )
            yield arm, replace(workload, **asks)


def curve_of(arm: Arm, axis: str) -> str:
    """What the arms of a sweep that differ along `axis` alone have in common."""
    others = {key: value for key, value in arm.axes.items() if key != axis}
    return (arm.sweep or arm.name) + _suffix(others)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _combinations(axes: Axes) -> Iterator[dict[str, Any]]:
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _suffix(place: Mapping[str, AxisValue]) -> str:
    return f"[{', '.join(f'{key}={_word(value)}' for key, value in place.items())}]" if place else ""


def _with_settings(strategy: str, settings: Mapping[str, AxisValue]) -> str:
    if not settings:
        return strategy
    joint = "&" if "?" in strategy else "?"
    return strategy + joint + "&".join(f"{key}={_word(value)}" for key, value in settings.items())


def _word(value: AxisValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def resolve(name: str, arms: Sequence[Arm], key: Key) -> str:
    """The arm of that name, or the first or last of a sweep: ``NAME[first]``. Raises BadExperiment at `key`."""
    names = [arm.name for arm in arms]
    if name in names:
        return name
    base, _, end = name.removesuffix("]").partition("[")
    sweep = [arm.name for arm in arms if arm.sweep == base]
    if sweep and end in ("first", "last"):
        return sweep[0 if end == "first" else -1]
    raise BadExperiment(key, f"no arm is named {name!r}{_nearest(name, names)}")


def sweep_of(name: str, arms: Sequence[Arm], key: Key) -> list[str]:
    """The arms of a sweep, in its order. Raises BadExperiment where they are no sweep along one axis."""
    sweep = [arm for arm in arms if arm.sweep == name]
    if not sweep:
        raise BadExperiment(key, f"no sweep is named {name!r}{_nearest(name, [a.sweep for a in arms if a.sweep])}")
    if len(sweep[0].axes) > 1 or len(sweep) < FEWEST_IN_SWEEP:
        axes = ", ".join(sweep[0].axes)
        raise BadExperiment(
            key, f"{name!r} has {len(sweep)} arms along {axes}; an optimum needs one axis of {FEWEST_IN_SWEEP} or more"
        )
    return [arm.name for arm in sweep]


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
    return f"; nearest: {', '.join(near)}" if near else ""
