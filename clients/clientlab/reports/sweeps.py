"""Sweeps: curves of time along an axis of the experiment, each with its knee."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.ratios import Ratio, typical_figure
from clientlab.analysis.sweeps import TurningPoint, Value, in_order, turning_point
from clientlab.judging.claim_verdicts import knee_text
from clientlab.judging.ranking import shortfall
from clientlab.reports.colours import colours_of
from clientlab.results.document import Run
from clientlab.results.figures import cost_of, ranked_by
from clientlab.results.plan import Arm, number_on
from clientlab.workload.link import LINK_PARTS
from clientlab.workload.load import is_open

_FEWEST_POINTS = 3
_EASIEST_AT_AN_END = frozenset({"rate", "stages", "rtt", "bandwidth"})
"""Axes along which the load grows or the link gets slower: a knee along them means nothing."""

_NOTE = "The line joins the medians of the rounds. A dot is one round. The band is the 95 % confidence interval."
_KNEE_NOTE = (
    "The ring is the knee: the first point whose typical time is within 5 % of the least. If the 95 % intervals of all "
    "pairs leave several points, the knee lies between them and has no ring."
)


def charted_seconds(requests: int | None, *, open_load: bool) -> tuple[float, str]:
    """Return a factor for the seconds that arms are ranked by, and what a chart calls the product."""
    if open_load:
        return 1.0, f"{ranked_by(open_load=True).label}, from the planned start"
    return float(requests or 1000), f"time for {requests or 1000:,} requests"


@dataclass(frozen=True)
class SweepPoint:
    """An arm at its `value` on the axis, with its seconds by round. `place`: the number of the value."""

    value: Value
    place: float
    arm: str
    typical: Ratio
    rounds: dict[int, float]


@dataclass(frozen=True)
class Curve:
    """Arms that differ along one axis only, in its order. `turn`: None if a knee along the axis means nothing."""

    name: str
    colour: str
    points: list[SweepPoint]
    turn: TurningPoint | None

    @property
    def knee(self) -> SweepPoint | None:
        """The knee, if the rounds leave only one point for it."""
        is_sure = self.turn is not None and self.turn.between == (self.turn.knee, self.turn.knee)
        return self.points[self.turn.knee] if self.turn and is_sure else None

    @property
    def label(self) -> str:
        """The name, and where the knee is."""
        if self.turn is None:
            return self.name
        return f"{self.name}: {knee_text([point.value for point in self.points], self.turn.between)}"


@dataclass(frozen=True)
class Sweep:
    """The curves along one axis on one upstream, route and link. `ticks`: places on the axis with their texts."""

    title: str
    axis: str
    seconds: str
    ticks: dict[float, str]
    numeric: bool
    curves: list[Curve]

    @property
    def notes(self) -> list[str]:
        """How to read the chart."""
        return [_NOTE, *([_KNEE_NOTE] if any(curve.turn for curve in self.curves) else [])]

    @property
    def summary(self) -> str:
        """A description for readers who can't see the chart."""
        lines = (
            f"{curve.label}; {', '.join(f'{units.time(one.typical.value)} at {one.value}' for one in curve.points)}"
            for curve in self.curves
        )
        return f"{self.seconds} by {self.axis}. {'. '.join(lines)}."


def sweeps_of(run: Run) -> list[Sweep]:
    """Return a sweep for each axis, upstream, route and link, with a curve for all arms that have three values on it.

    Rounds in which requests failed are left out, as in claims.
    """
    found: dict[tuple[str, str, bool], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        for axis in arm.axes:
            # If the parts of a link are axes, the names of curves have them.
            link = [] if arm.link is None or arm.axes.keys() & set(LINK_PARTS) else [f"link of {arm.link}"]
            where = " · ".join([axis, f"{arm.upstream} upstream", arm.route, *link])
            strategy, _, settings = arm.strategy.partition("?")
            kept = "&".join(one for one in settings.split("&") if one.partition("=")[0] not in arm.axes)
            others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
            name = ", ".join([arm.sweep or "?".join(filter(None, (strategy, kept))), *others])
            open_load = is_open(run.experiment.workloads[arm.workload])
            found.setdefault((axis, where, open_load), {}).setdefault(name, []).append(arm)
    sweeps = [_sweep(run, axis, title, arms, open_load=by_rate) for (axis, title, by_rate), arms in found.items()]
    return [sweep for sweep in sweeps if sweep.curves]


def _sweep(run: Run, axis: str, title: str, arms_by_name: dict[str, list[Arm]], *, open_load: bool) -> Sweep:
    every = [arm for arms in arms_by_name.values() for arm in arms]
    counts = {run.experiment.workloads[arm.workload].requests for arm in every}
    factor, label = charted_seconds(counts.pop() if len(counts) == 1 else None, open_load=open_load)
    numbers = {arm.axes[axis]: number_on(axis, arm) for arm in every}
    places = {value: number for value, number in numbers.items() if number is not None}
    numeric = len(places) == len(numbers)
    if not numeric:  # texts stand at even distances
        places = {value: float(index) for index, value in enumerate(in_order(list(numbers)))}
    curves = []
    for name, arms in arms_by_name.items():
        points = []
        for arm in arms:
            trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
            rounds = {trial.round: factor * cost_of(trial) for trial in trials if not trial.errors}
            typical = typical_figure(rounds)
            if typical is not None and not shortfall(trials):
                points.append(SweepPoint(arm.axes[axis], places[arm.axes[axis]], arm.name, typical, rounds))
        if len(points) >= _FEWEST_POINTS:
            points.sort(key=lambda point: point.place)
            turn = None if axis in _EASIEST_AT_AN_END else turning_point([point.rounds for point in points])
            curves.append(Curve(name, colours_of(run)[arms[0].strategy], points, turn))
    ticks = {place: value if isinstance(value, str) else units.digits(value) for value, place in places.items()}
    return Sweep(title, axis, label, dict(sorted(ticks.items())), numeric, curves)
