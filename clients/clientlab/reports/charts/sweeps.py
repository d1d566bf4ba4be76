"""Sweeps: curves of time along an axis of the experiment, each with its knee, and their plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from clientlab import units
from clientlab.analysis.ratios import Ratio, typical_figure
from clientlab.analysis.sweeps import TurningPoint, Value, in_order, turning_point
from clientlab.judging.claim_verdicts import knee_text
from clientlab.judging.ranking import shortfall
from clientlab.reports.charts.chart_data import Look, distinct, looks_of
from clientlab.reports.charts.shapes import (
    DataTable,
    Line,
    LineChart,
    Scale,
    Tick,
    even,
    logarithmic,
    placed,
    shortened,
)
from clientlab.results.document import Run
from clientlab.results.figures import cost_of, ranked_by
from clientlab.results.plan import Arm, number_on
from clientlab.workload.link import LINK_PARTS
from clientlab.workload.load import is_open

REQUESTS = 1000
"""Charts show the time for this many requests where trials sent unlike numbers of requests."""

_FEWEST_POINTS = 3

_EASIEST_AT_AN_END = frozenset({"rate", "stages", "rtt", "bandwidth"})
"""Axes along which the load grows, or the link gets slower: one end is the easiest, and no point is an optimum."""

_ROOM = 9.0  # per cent of the axis that a tick needs
_FAR = 10.0  # from this ratio of its ends on, an axis is logarithmic

_NOTE = (
    "The line joins the medians of the rounds. A dot is one round. The band is the 95 % confidence interval of the "
    "median. The ring is the knee: the first point whose typical time, of rounds without an error, is within 5 % of "
    "the least. If the 95 % intervals of all pairs leave several points, the knee lies between them and has no ring."
)
_NOTE_OF_LOADS = _NOTE.partition(" The ring is")[0]


@dataclass(frozen=True)
class ChartedSeconds:
    """What the seconds of a chart are: the time for so many requests, or of an open load what its arms are ranked by.

    `requests`: None for an open load.
    """

    requests: int | None

    def of(self, cost: float) -> float:
        """The seconds of an arm that is ranked by `cost`."""
        return cost if self.requests is None else cost * self.requests

    @property
    def label(self) -> str:
        """The axis of the chart."""
        if self.requests is None:
            return f"{ranked_by(open_load=True).label}, from the planned start"
        return f"time for {self.requests:,} requests"


@dataclass(frozen=True)
class SweepPoint:
    """An arm of a sweep at its `value` on the axis: seconds as its sweep charts them.

    `number`: that of the value, where it has one. `typical`: the median of all `rounds`, with its 95 % confidence
    interval. `clean`: round → seconds, of the rounds without an error, by which claims are judged.
    """

    value: Value
    number: float | None
    arm: str
    typical: Ratio
    rounds: list[float]
    clean: dict[int, float]


@dataclass(frozen=True)
class Curve:
    """Arms that differ along one axis only, in its order. `strategy`: of the first of them.

    `concurrency`: of all of them, or None where it differs along the axis. `turns`: whether a least time and a knee
    along the axis mean anything.
    """

    name: str
    strategy: str
    points: list[SweepPoint]
    concurrency: int | None = None
    turns: bool = True

    @property
    def knee(self) -> SweepPoint:
        """The first point that is nearly as good as the best. A claim of this sweep names the same point."""
        points, found = self._turning_point
        return points[found.knee]

    @property
    def knee_text(self) -> str:
        """Where the knee is, or between which values, or that the rounds do not show it."""
        points, found = self._turning_point
        return knee_text([point.value for point in points], found.between)

    @property
    def knee_is_sure(self) -> bool:
        """Whether the rounds leave one point only for the knee."""
        _, found = self._turning_point
        return self.turns and found.between == (found.knee, found.knee)

    @property
    def label(self) -> str:
        """The name, and where the knee is."""
        return f"{self.name}: {self.knee_text}" if self.turns else self.name

    @property
    def summary(self) -> str:
        """The least time and the knee in a sentence; without them, the times at both ends of the axis."""
        if not self.turns:
            ends = (f"{units.time(one.typical.value)} at {one.value}" for one in (self.points[0], self.points[-1]))
            return f"{self.name}: {', '.join(ends)}."
        points, found = self._turning_point
        least = f"least typical time {units.time(found.typical[found.best])} at {points[found.best].value}"
        return f"{self.name}: {least}, {self.knee_text}."

    @cached_property
    def _turning_point(self) -> tuple[list[SweepPoint], TurningPoint]:
        """The points with a round without an error, or all where none has one, and where they turn."""
        points = [point for point in self.points if point.clean] or self.points
        return points, turning_point([point.clean or dict(enumerate(point.rounds)) for point in points])


@dataclass(frozen=True)
class Sweep:
    """The curves along one axis on one upstream, route and link, and what their seconds are."""

    axis: str
    where: str
    curves: list[Curve]
    charted: ChartedSeconds

    def name_of(self, curve: Curve) -> str:
        """The curve's name, with its concurrency where the curves differ in it and the name does not have it."""
        unlike = len({one.concurrency for one in self.curves}) > 1 and curve.concurrency is not None
        named = f"concurrency={curve.concurrency}" in curve.name
        return f"{curve.name} (c={curve.concurrency})" if unlike and not named else curve.name

    @property
    def numbers(self) -> dict[Value, float | None]:
        """All values on the axis, in its order, with the number of each that has one."""
        return _ordered({point.value: point.number for curve in self.curves for point in curve.points})


def sweeps_of(run: Run) -> list[Sweep]:
    """A sweep for each axis, upstream, route and link, with a curve for all arms with at least three values on it."""
    found = []
    for (axis, where, _), named in _series(run).items():
        charted = _charted(run, [arm for arms in named.values() for arm in arms])
        values = list(_ordered({arm.axes[axis]: number_on(axis, arm) for arms in named.values() for arm in arms}))
        curves = []
        for name, arms in named.items():
            points = [point for arm in arms if (point := _point(run, arm, axis, charted))]
            if len(points) >= _FEWEST_POINTS:
                points.sort(key=lambda point: values.index(point.value))
                turns = axis not in _EASIEST_AT_AN_END
                curves.append(Curve(name, arms[0].strategy, points, _concurrency(run, arms), turns))
        if curves:
            found.append(Sweep(axis, where, curves, charted))
    return found


def _series(run: Run) -> dict[tuple[str, str, bool], dict[str, list[Arm]]]:
    """Axis with upstream, route and link, and whether the load is open → name of a curve → its arms."""
    found: dict[tuple[str, str, bool], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        by_schedule = is_open(run.experiment.workloads[arm.workload])
        for axis in arm.axes:
            others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
            curves = found.setdefault((axis, _where(arm), by_schedule), {})
            curves.setdefault(", ".join([arm.sweep or _without(arm.strategy, arm.axes), *others]), []).append(arm)
    return found


def _where(arm: Arm) -> str:
    """Upstream and route, and the link unless its parts are axes: then the names of curves have them."""
    parts = [f"{arm.upstream} upstream", arm.route]
    if arm.link is not None and not arm.axes.keys() & set(LINK_PARTS):
        parts.append(f"link of {arm.link}")
    return " · ".join(parts)


def _ordered(numbers: dict[Value, float | None]) -> dict[Value, float | None]:
    """The values of an axis: by number where all have one, else in the order of the experiment."""
    if None in numbers.values():
        return {value: numbers[value] for value in in_order(list(numbers))}
    return dict(sorted(numbers.items(), key=lambda item: item[1] or 0.0))


def _concurrency(run: Run, arms: list[Arm]) -> int | None:
    found = {trial.concurrency for arm in arms for trial in run.trials_of(arm.name)}
    return found.pop() if len(found) == 1 else None


def _without(strategy: str, axes: Iterable[str]) -> str:
    """The strategy's name without those of its settings that are axes (``aiohttp@workers?pool=8``)."""
    name, _, settings = strategy.partition("?")
    kept = [setting for setting in settings.split("&") if setting.partition("=")[0] not in axes]
    return "?".join(filter(None, (name, "&".join(kept))))


def _charted(run: Run, arms: list[Arm]) -> ChartedSeconds:
    workloads = [run.experiment.workloads[arm.workload] for arm in arms]
    if any(map(is_open, workloads)):  # then all are
        return ChartedSeconds(None)
    counts = {workload.requests for workload in workloads}
    return ChartedSeconds(counts.pop() or REQUESTS if len(counts) == 1 else REQUESTS)


def _point(run: Run, arm: Arm, axis: str, charted: ChartedSeconds) -> SweepPoint | None:
    """Return None for an arm that is not ranked: it is no place for a least time or a knee."""
    trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
    rounds = {trial.round: charted.of(cost_of(trial)) for trial in trials}
    typical = typical_figure(rounds)
    if typical is None or shortfall(trials):
        return None
    clean = {trial.round: rounds[trial.round] for trial in trials if not trial.errors}
    return SweepPoint(arm.axes[axis], number_on(axis, arm), arm.name, typical, list(rounds.values()), clean)


def charts(run: Run) -> list[LineChart]:
    """A plot for each sweep."""
    looks = looks_of(run)
    return [_plot(sweep, distinct(looks[curve.strategy] for curve in sweep.curves)) for sweep in sweeps_of(run)]


def _plot(sweep: Sweep, looks: list[Look]) -> LineChart:
    curves = [replace(curve, name=sweep.name_of(curve)) for curve in sweep.curves]
    x, x_ticks, across = _across(sweep.numbers)
    y = _upright([seconds for curve in sweep.curves for point in curve.points for seconds in point.rounds])
    return LineChart(
        title=f"{sweep.axis} · {sweep.where}",
        lines=[_line(curve, look, x, y, across) for curve, look in zip(curves, looks, strict=True)],
        x_ticks=x_ticks,
        y_ticks=y.ticks(units.time),
        x_axis=sweep.axis + (" (logarithmic)" if x.log else ""),
        y_axis=sweep.charted.label + (" (logarithmic)" if y.log else ""),
        summary=" ".join(curve.summary for curve in curves),
        notes=[_NOTE if any(curve.turns for curve in curves) else _NOTE_OF_LOADS],
        table=_table(sweep.axis, across, curves),
    )


def _across(numbers: dict[Value, float | None]) -> tuple[Scale, list[Tick], dict[Value, float]]:
    """The axis, its ticks, and where each value stands on it: texts without a number stand at even distances."""
    across = {value: number for value, number in numbers.items() if number is not None}
    if len(across) < len(numbers):
        x = Scale(-0.2, len(numbers) - 0.8)
        across = {value: float(index) for index, value in enumerate(numbers)}
        return x, [Tick(x.position(across[value]), str(value)) for value in numbers], across
    ordered = list(across.values())
    x = Scale(ordered[0], ordered[-1], log=_is_far(ordered))
    return x, _apart(x, across), across


def _apart(x: Scale, across: dict[Value, float]) -> list[Tick]:
    """The values themselves, from the last one down, without those that would touch the one after."""
    ticks: list[Tick] = []
    for value, number in reversed(across.items()):
        room = _ROOM if len(ticks) > 1 else 1.5 * _ROOM  # the text of the last tick ends at its position
        if not ticks or ticks[-1].position - x.position(number) >= room:
            text = value if isinstance(value, str) else shortened(units.digits(number))
            ticks.append(Tick(x.position(number), text))
    return ticks


def _upright(values: list[float]) -> Scale:
    return (logarithmic(values, 1.15) if _is_far(sorted(values)) else None) or even(values)


def _is_far(values: list[float]) -> bool:
    """Whether an axis with these values, in rising order, is better logarithmic."""
    return values[0] > 0 and values[-1] / values[0] >= _FAR


def _line(curve: Curve, look: Look, x: Scale, y: Scale, across: dict[Value, float]) -> Line:
    intervals = [(across[point.value], point.typical.interval) for point in curve.points]
    return Line(
        name=curve.label,
        look=look,
        points=placed([(across[point.value], point.typical.value) for point in curve.points], x, y),
        title=curve.summary,
        band=[(x.position(at), y.position(ends[0]), y.position(ends[1])) for at, ends in intervals if ends],
        dots=[(x.position(across[point.value]), y.position(value)) for point in curve.points for value in point.rounds],
        ring=_ring(curve, x, y, across),
    )


def _ring(curve: Curve, x: Scale, y: Scale, across: dict[Value, float]) -> tuple[float, float] | None:
    """Around the knee, if the rounds leave no other point for it."""
    if not curve.knee_is_sure:
        return None
    return x.position(across[curve.knee.value]), y.position(curve.knee.typical.value)


def _table(axis: str, values: Iterable[Value], curves: list[Curve]) -> DataTable:
    cells = {(curve.name, point.value): _cell(point) for curve in curves for point in curve.points}
    rows = [[str(value), *(cells.get((curve.name, value), units.UNKNOWN) for curve in curves)] for value in values]
    return DataTable([axis, *(curve.name for curve in curves)], rows)


def _cell(point: SweepPoint) -> str:
    text = units.time(point.typical.value)
    ends = point.typical.interval
    return f"{text} ({' to '.join(map(units.time, ends))})" if ends else text
