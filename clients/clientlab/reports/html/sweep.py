"""The sweep: time against an axis of the experiment, with the interval of its rounds, and where it stops to pay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.analysis.sweeps import KNEE
from clientlab.reports import units
from clientlab.reports.html.palette import Look, distinct, looks_of
from clientlab.reports.html.plot import Figures, Line, Plot, band_of, dots_of, path_of
from clientlab.reports.html.scale import Scale, Tick, even, logarithmic, shortened
from clientlab.runs.document import Arm, Run
from clientlab.runs.ranking import seconds_a_request

_FEWEST_PLACES = 3
_FAR = 10.0  # from this ratio of its ends on, an axis is logarithmic
_REQUESTS = 1000
_ROOM = 9.0  # per cent of the axis that a tick needs

_NOTE = (
    "The line joins the medians of the rounds; a dot is a round, the band the 95 % interval of their mean. "
    "The ring is the knee: more than that brings less than 5 % in all."
)

Value = int | float | str


@dataclass(frozen=True)
class Place:
    """An arm of a sweep: seconds for the requests, as median and as mean with its interval, and by round."""

    at: Value
    middle: float
    mean: Ratio
    rounds: list[float]


@dataclass(frozen=True)
class Curve:
    """Arms that differ along one axis only, in its order."""

    name: str
    look: Look
    places: list[Place]

    @property
    def knee(self) -> Place:
        """The first place that is nearly as good as the best."""
        least = min(place.middle for place in self.places)
        return next(place for place in self.places if place.middle <= KNEE * least)


def charts(run: Run) -> list[Plot]:
    """A plot for each axis on each way, with a curve for all arms that have at least three places on it."""
    requests = _requests(run)
    plots = []
    for (axis, where), named in _series(run).items():
        looks = distinct(looks_of(run)[arms[0].strategy] for arms in named.values())
        values = _ordered([arm.axes[axis] for arms in named.values() for arm in arms])
        curves = []
        for (name, arms), look in zip(named.items(), looks, strict=True):
            places = [place for arm in arms if (place := _place(run, arm, axis, requests))]
            if len(places) >= _FEWEST_PLACES:
                curves.append(Curve(name, look, sorted(places, key=lambda place: values.index(place.at))))
        if curves:
            plots.append(_plot(f"{axis} · {where}", axis, curves, requests))
    return plots


def _ordered(values: list[Value]) -> list[Value]:
    """Each once: numbers by size, words as the experiment has them."""
    once = list(dict.fromkeys(values))
    return once if any(isinstance(value, str) for value in once) else sorted(once, key=float)


def _series(run: Run) -> dict[tuple[str, str], dict[str, list[Arm]]]:
    """Axis and way → name of a curve → its arms."""
    found: dict[tuple[str, str], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        for axis in arm.axes:
            others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
            curves = found.setdefault((axis, f"{arm.upstream} upstream · {arm.route}"), {})
            curves.setdefault(arm.sweep or ", ".join([_without(arm.strategy, arm.axes), *others]), []).append(arm)
    return found


def _without(strategy: str, axes: Iterable[str]) -> str:
    """The strategy's name without those of its settings that are axes (``aiohttp@workers?pool=8``)."""
    name, _, settings = strategy.partition("?")
    kept = [setting for setting in settings.split("&") if setting.partition("=")[0] not in axes]
    return "?".join(filter(None, (name, "&".join(kept))))


def _requests(run: Run) -> int:
    counts = {workload.requests for workload in run.experiment.workloads.values()}
    return counts.pop() or _REQUESTS if len(counts) == 1 else _REQUESTS


def _place(run: Run, arm: Arm, axis: str, requests: int) -> Place | None:
    trials = [trial for trial in run.trials if trial.arm == arm.name and trial.status == "done"]
    rounds = {trial.round: seconds_a_request(trial) * requests for trial in trials}
    mean = paired_ratio(rounds, dict.fromkeys(rounds, 1.0))  # to 1 s: their geometric mean and its interval
    return Place(arm.axes[axis], median(rounds.values()), mean, list(rounds.values())) if mean else None


def _plot(title: str, axis: str, curves: list[Curve], requests: int) -> Plot:
    values = _ordered([place.at for curve in curves for place in curve.places])
    x, x_ticks, across = _across(values)
    y = _upright([value for curve in curves for place in curve.places for value in place.rounds])
    return Plot(
        title=title,
        lines=[_line(curve, x, y, across) for curve in curves],
        x_ticks=x_ticks,
        y_ticks=y.ticks(units.time),
        x_axis=axis + (" (logarithmic)" if x.log else ""),
        y_axis=f"time for {requests:,} requests" + (" (logarithmic)" if y.log else ""),
        told=" ".join(_told(curve) for curve in curves),
        notes=[_NOTE],
        figures=_figures(axis, values, curves),
    )


def _across(values: list[Value]) -> tuple[Scale, list[Tick], dict[Value, float]]:
    """The axis, its ticks, and where each value stands on it: words stand at even distances."""
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        x = Scale(-0.2, len(values) - 0.8)
        across = {value: float(place) for place, value in enumerate(values)}
        return x, [Tick(x.place(across[value]), str(value)) for value in values], across
    far = numbers[0] > 0 and numbers[-1] / numbers[0] >= _FAR
    x = Scale(numbers[0], numbers[-1], log=far)
    return x, _apart(x, numbers), {value: float(value) for value in values}


def _apart(x: Scale, numbers: list[float]) -> list[Tick]:
    """The values themselves, from the last one down, without those that would touch the one after."""
    ticks: list[Tick] = []
    for number in reversed(numbers):
        room = _ROOM if len(ticks) > 1 else 1.5 * _ROOM  # the last one's word ends at its place
        if not ticks or ticks[-1].place - x.place(number) >= room:
            ticks.append(Tick(x.place(number), shortened(units.digits(number))))
    return ticks


def _upright(values: list[float]) -> Scale:
    far = min(values) > 0 and max(values) / min(values) >= _FAR
    return (logarithmic(values, 1.15) if far else None) or even(values)


def _line(curve: Curve, x: Scale, y: Scale, across: dict[Value, float]) -> Line:
    places = curve.places
    banded = [
        (across[p.at], p.mean.low, p.mean.high) for p in places if p.mean.low is not None and p.mean.high is not None
    ]
    return Line(
        name=f"{curve.name}: knee at {curve.knee.at}",
        look=curve.look,
        path=path_of([(across[place.at], place.middle) for place in places], x, y),
        title=_told(curve),
        band=band_of(banded, x, y) if banded else None,
        dots=dots_of([(across[place.at], value) for place in places for value in place.rounds], x, y),
        ring=dots_of([(across[curve.knee.at], curve.knee.middle)], x, y),
    )


def _told(curve: Curve) -> str:
    best = min(curve.places, key=lambda place: place.middle)
    return (
        f"{curve.name}: least time {units.time(best.middle)} at {best.at}, "
        f"knee at {curve.knee.at} with {units.time(curve.knee.middle)}."
    )


def _figures(axis: str, values: list[Value], curves: list[Curve]) -> Figures:
    cells = {(curve.name, place.at): _cell(place) for curve in curves for place in curve.places}
    rows = [[str(value), *(cells.get((curve.name, value), units.NOTHING) for curve in curves)] for value in values]
    return Figures([axis, *(curve.name for curve in curves)], rows)


def _cell(place: Place) -> str:
    text = units.time(place.middle)
    if place.mean.low is None or place.mean.high is None:
        return text
    return f"{text} ({units.time(place.mean.low)} to {units.time(place.mean.high)})"
