"""Curves along an axis of the experiment: what the report's sweep and the chart's are drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.analysis.sweeps import Turn, Value, in_order, turn
from clientlab.reports import units
from clientlab.runs.document import Arm, Run
from clientlab.runs.ranking import seconds_a_request

_FEWEST_PLACES = 3
_FAR = 10.0  # from this ratio of its ends on, an axis is logarithmic
_REQUESTS = 1000  # where trials did unlike numbers of requests


@dataclass(frozen=True)
class Place:
    """An arm of a sweep: seconds for the requests, as median and as mean with its interval, and by round.

    `clean`: of the rounds without an error alone, which are those that claims are judged by.
    """

    at: Value
    middle: float
    mean: Ratio
    rounds: list[float]
    clean: dict[int, float]


@dataclass(frozen=True)
class Curve:
    """Arms that differ along one axis only, in its order. `strategy`: of the first of them."""

    name: str
    strategy: str
    places: list[Place]

    @property
    def knee(self) -> Place:
        """The first place that is nearly as good as the best, as a claim of this sweep names it."""
        places, found = self._turn()
        return places[found.knee]

    @property
    def told(self) -> str:
        """What it shows, in a sentence."""
        places, found = self._turn()
        best, knee = ((places[at].at, units.time(found.middles[at])) for at in (found.best, found.knee))
        return f"{self.name}: least mean time {best[1]} at {best[0]}, knee at {knee[0]} with {knee[1]}."

    def _turn(self) -> tuple[list[Place], Turn]:
        """The places that had a round without an error, or all where none had, and where they turn."""
        clean = [place for place in self.places if place.clean]
        places = clean or self.places
        return places, turn([place.clean or dict(enumerate(place.rounds)) for place in places])


@dataclass(frozen=True)
class Sweep:
    """The curves along one axis on one way; `requests`: that their seconds are for."""

    axis: str
    where: str
    curves: list[Curve]
    requests: int

    @property
    def values(self) -> list[Value]:
        """All places of the axis, in its order."""
        return in_order(place.at for curve in self.curves for place in curve.places)


def sweeps_of(run: Run) -> list[Sweep]:
    """A sweep for each axis on each way, with a curve for all arms that have at least three places on it."""
    found = []
    for (axis, where), named in _series(run).items():
        requests = _requests(run, [arm for arms in named.values() for arm in arms])
        values = in_order(arm.axes[axis] for arms in named.values() for arm in arms)
        curves = []
        for name, arms in named.items():
            places = [place for arm in arms if (place := _place(run, arm, axis, requests))]
            if len(places) >= _FEWEST_PLACES:
                curves.append(Curve(name, arms[0].strategy, sorted(places, key=lambda place: values.index(place.at))))
        if curves:
            found.append(Sweep(axis, where, curves, requests))
    return found


def is_far(values: list[float]) -> bool:
    """Whether an axis with these values, in rising order, is better logarithmic."""
    return values[0] > 0 and values[-1] / values[0] >= _FAR


def _series(run: Run) -> dict[tuple[str, str], dict[str, list[Arm]]]:
    """Axis and way → name of a curve → its arms."""
    found: dict[tuple[str, str], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        for axis in arm.axes:
            others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
            curves = found.setdefault((axis, f"{arm.upstream} upstream · {arm.route}"), {})
            curves.setdefault(", ".join([arm.sweep or _without(arm.strategy, arm.axes), *others]), []).append(arm)
    return found


def _without(strategy: str, axes: Iterable[str]) -> str:
    """The strategy's name without those of its settings that are axes (``aiohttp@workers?pool=8``)."""
    name, _, settings = strategy.partition("?")
    kept = [setting for setting in settings.split("&") if setting.partition("=")[0] not in axes]
    return "?".join(filter(None, (name, "&".join(kept))))


def _requests(run: Run, arms: list[Arm]) -> int:
    counts = {run.experiment.workloads[arm.workload].requests for arm in arms}
    return counts.pop() or _REQUESTS if len(counts) == 1 else _REQUESTS


def _place(run: Run, arm: Arm, axis: str, requests: int) -> Place | None:
    trials = [trial for trial in run.trials if trial.arm == arm.name and trial.status == "done"]
    rounds = {trial.round: seconds_a_request(trial) * requests for trial in trials}
    mean = paired_ratio(rounds, dict.fromkeys(rounds, 1.0))  # to 1 s: their geometric mean and its interval
    if mean is None:
        return None
    clean = {trial.round: rounds[trial.round] for trial in trials if not trial.errors}
    return Place(arm.axes[axis], median(rounds.values()), mean, list(rounds.values()), clean)
