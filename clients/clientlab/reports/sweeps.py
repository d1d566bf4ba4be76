"""Sweeps as charts: curves of arms that differ along one axis, with their knees, and
searches for the highest rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter

from clientlab import units
from clientlab.judging.find_max import typical_rate
from clientlab.judging.judgement import knee_text
from clientlab.judging.ranking import arm_key, shortfall
from clientlab.reports.sections import Curve, Sweep, SweepPoint, colours_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, Figure, cost_of, ranked_by
from clientlab.results.plan import Arm, AxisValue, number_on
from clientlab.statistics.ratios import typical_figure
from clientlab.statistics.sweeps import find_turning_point, sort_values
from clientlab.workload.load import is_open
from clientlab.workload.values import LINK_PARTS

_NOTE = (
    "The line joins the medians of the rounds. A dot is one round. The band is the 95 %"
    " confidence interval."
)
_SEARCH_NOTE = (
    "A dot is one trial of the search, and the line joins the medians at each rate. The"
    " numbers are the highest rates that were held. A trial whose p99 is only a lower"
    " bound has no dot."
)
_KNEE_NOTE = (
    "The ring is the knee: the first point whose typical time is within 5 % of the"
    " least. If the 95 % intervals of all pairs leave several points, the knee lies"
    " between them and has no ring."
)
_FEWEST_POINTS = 3  # of a curve
# Along these axes the load grows or the link gets slower, so a knee means nothing.
_EASIEST_AT_AN_END = frozenset({"rate", "stages", "rtt", "bandwidth"})


def sweeps_of(run: Run) -> list[Sweep]:
    """Return the sweeps of a run, with a curve for arms with three values on an axis.

    There is one for each axis, upstream, route and link. Rounds in which requests
    failed are left out, as in claims. Searches for the highest rate are swept along
    rates.
    """
    arms_of: dict[tuple[str, str, bool], list[Arm]] = {}
    for arm in run.experiment.arms:
        workload = run.experiment.workloads[arm.workload]
        for axis in arm.axes:
            key = (axis, _title(arm, axis), is_open(workload))
            arms_of.setdefault(key, []).append(arm)
    sweeps = []
    for (axis, title, _), arms in arms_of.items():
        sweep = _sweep(run, axis, title, arms)
        if sweep.curves:
            sweeps.append(sweep)
    sweeps += _searches_of(run)
    return sweeps


def ranking_label(figure: Figure) -> str:
    """Return the name of a figure that arms are ranked by."""
    if figure.key == "p99":
        return f"{figure.label}, from the planned start"
    return figure.label


def charted_seconds(requests: int | None, figure: Figure) -> tuple[float, str]:
    """Return a factor for the figure that ranks arms, and the name of the product.

    The time per request is multiplied by the `requests` of a trial.
    """
    if figure is not ranked_by():
        return 1.0, ranking_label(figure)
    count = requests or 1000
    what = "the request" if count == 1 else f"{count:,} requests"
    return float(count), f"time for {what}"


def _title(arm: Arm, axis: str) -> str:
    """Return the title of the sweep that an arm belongs to."""
    parts = [axis, f"{arm.upstream} upstream", arm.route]
    # If the parts of a link are axes, the names of curves have them.
    if arm.link is not None and arm.axes.keys().isdisjoint(LINK_PARTS):
        parts.append(f"link of {arm.link}")
    return " · ".join(parts)


def _sweep(run: Run, axis: str, title: str, arms: Sequence[Arm]) -> Sweep:
    """Return the chart of the arms along an axis."""
    workloads = [run.experiment.workloads[arm.workload] for arm in arms]
    counts = {workload.load.requests for workload in workloads}
    requests = counts.pop() if len(counts) == 1 else None
    trials = chain.from_iterable(run.trials_of(arm.name) for arm in arms)
    factor, label = charted_seconds(requests, ranked_by(trials))
    places, numeric = _places(axis, arms)
    arms_of: dict[str, list[Arm]] = {}
    for arm in arms:
        name = _curve_name(arm, axis)
        arms_of.setdefault(name, []).append(arm)
    colours = colours_of(run)
    curves = []
    for name, arms_of_curve in arms_of.items():
        points = list(_points(run, arms_of_curve, axis, places, factor))
        if len(points) >= _FEWEST_POINTS:
            colour = colours[arms_of_curve[0].name]
            curves.append(_curve(name, colour, points, axis))
    ticks = {}
    for value, place in sorted(places.items(), key=itemgetter(1)):
        ticks[place] = value if isinstance(value, str) else units.digits(value)
    notes = [_NOTE]
    if any(curve.turn for curve in curves):
        notes.append(_KNEE_NOTE)
    return Sweep(title, axis, label, ticks, numeric, curves, notes)


def _places(axis: str, arms: Sequence[Arm]) -> tuple[dict[AxisValue, float], bool]:
    """Return where the values of an axis stand on it, and whether all are numbers.

    Texts stand at even distances.
    """
    numbers = {arm.axes[axis]: number_on(axis, arm) for arm in arms}
    places = {value: number for value, number in numbers.items() if number is not None}
    if len(places) == len(numbers):
        return places, True
    values = sort_values(numbers)
    return {value: float(index) for index, value in enumerate(values)}, False


def _curve_name(arm: Arm, axis: str) -> str:
    """Return what an arm has in common with the others of its curve along an axis."""
    others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
    return ", ".join([arm.sweep or arm.strategy, *others])


def _points(
    run: Run,
    arms: Sequence[Arm],
    axis: str,
    places: Mapping[AxisValue, float],
    factor: float,
) -> Iterator[SweepPoint]:
    """Yield the arms of a curve in the order of the axis, unless they fell short."""
    for arm in sorted(arms, key=lambda arm: places[arm.axes[axis]]):
        trials = run.finished_trials_of(arm.name)
        rounds = {
            trial.planned.round: factor * cost_of(trial)
            for trial in trials
            if not trial.has_spoiling_errors
        }
        typical = typical_figure(rounds)
        if typical is not None and not shortfall(trials):
            value = arm.axes[axis]
            yield SweepPoint(value, places[value], arm.name, typical, rounds)


def _curve(name: str, colour: str, points: Sequence[SweepPoint], axis: str) -> Curve:
    """Return the curve of some points, with its knee if the axis can have one."""
    if axis in _EASIEST_AT_AN_END:
        return Curve(name, colour, points, None, None)
    turn = find_turning_point([point.rounds for point in points])
    values = [point.value for point in points]
    text = knee_text(values, turn.between)
    knee = None
    if turn.between == (turn.knee, turn.knee):
        knee = points[turn.knee]
    return Curve(f"{name}: {text}", colour, points, turn, knee)


def _searches_of(run: Run) -> Iterator[Sweep]:
    """Yield the searches of each group: p99 against the rate of each trial."""
    colours = colours_of(run)
    searches: dict[str, list[Curve]] = {}
    for arm in run.experiment.arms:
        points = list(_search_points(run, arm.name))
        if points:
            group, name = arm_key(arm)
            highest = typical_rate(run.trials_of(arm.name))
            label = f"{name}: {units.ratio_of(highest)} requests/s"
            curve = Curve(label, colours[arm.name], points, None, None)
            searches.setdefault(group.title, []).append(curve)
    for title, curves in searches.items():
        drawn = chain.from_iterable(curve.points for curve in curves)
        rates = sorted({point.place for point in drawn})
        ticks = {rate: units.rate(rate) for rate in rates}
        axis = "requests per second"
        label = ranking_label(BY_KEY["p99"])
        yield Sweep(title, axis, label, ticks, True, curves, [_SEARCH_NOTE])


def _search_points(run: Run, arm: str) -> Iterator[SweepPoint]:
    """Yield a point for each rate that a search tried, without lower bounds."""
    p99 = BY_KEY["p99"]
    by_rate: dict[float, dict[int, float]] = {}
    for trial in run.probes:
        planned = trial.planned
        rate = planned.search_rate
        if planned.arm != arm or not rate or p99.has_bounds([trial]):
            continue
        for seconds in p99.values([trial]):
            by_rate.setdefault(rate, {})[planned.order] = seconds
    for rate, series in sorted(by_rate.items()):
        typical = typical_figure(series)
        if typical is not None:
            yield SweepPoint(rate, rate, arm, typical, series)
