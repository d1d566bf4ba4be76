"""Sweeps as plots: time against an axis of the experiment, with the interval of its rounds and the knee."""

from __future__ import annotations

from dataclasses import replace

from clientlab import units
from clientlab.analysis.sweeps import Value
from clientlab.reports.charts.curves import Curve, Sweep, SweepPoint, sweeps_of
from clientlab.reports.charts.palette import Look, distinct, looks_of
from clientlab.reports.charts.scale import Scale, Tick, even, logarithmic, shortened
from clientlab.reports.charts.shapes import DataTable, Line, LineChart, placed
from clientlab.results.document import Run
from clientlab.results.plan import number_on

_ROOM = 9.0  # per cent of the axis that a tick needs
_FAR = 10.0  # from this ratio of its ends on, an axis is logarithmic

_NOTE = (
    "The line joins the medians of the rounds. A dot is one round. The band is the 95 % confidence interval of the "
    "median. The ring is the knee: the first point whose typical time, of rounds without an error, is within 5 % of "
    "the least. If the 95 % intervals of all pairs leave several points, the knee lies between them and has no ring."
)
_NOTE_OF_LOADS = _NOTE.partition(" The ring is")[0]


def charts(run: Run) -> list[LineChart]:
    """A plot for each sweep."""
    looks = looks_of(run)
    return [_plot(sweep, distinct(looks[curve.strategy] for curve in sweep.curves)) for sweep in sweeps_of(run)]


def _plot(sweep: Sweep, looks: list[Look]) -> LineChart:
    values = sweep.values
    curves = [replace(curve, name=sweep.name_of(curve)) for curve in sweep.curves]
    x, x_ticks, across = _across(sweep.axis, values)
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
        table=_table(sweep.axis, values, curves),
    )


def _across(axis: str, values: list[Value]) -> tuple[Scale, list[Tick], dict[Value, float]]:
    """The axis, its ticks, and where each value stands on it: texts without a number stand at even distances."""
    across = {value: number for value in values if (number := number_on(axis, value)) is not None}
    if len(across) < len(values):
        x = Scale(-0.2, len(values) - 0.8)
        across = {value: float(place) for place, value in enumerate(values)}
        return x, [Tick(x.place(across[value]), str(value)) for value in values], across
    numbers = list(across.values())
    x = Scale(numbers[0], numbers[-1], log=_is_far(numbers))
    return x, _apart(x, across), across


def _apart(x: Scale, across: dict[Value, float]) -> list[Tick]:
    """The values themselves, from the last one down, without those that would touch the one after."""
    ticks: list[Tick] = []
    for value, number in reversed(across.items()):
        room = _ROOM if len(ticks) > 1 else 1.5 * _ROOM  # the text of the last tick ends at its place
        if not ticks or ticks[-1].place - x.place(number) >= room:
            text = value if isinstance(value, str) else shortened(units.digits(number))
            ticks.append(Tick(x.place(number), text))
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
        band=[(x.place(at), y.place(ends[0]), y.place(ends[1])) for at, ends in intervals if ends],
        dots=[(x.place(across[point.value]), y.place(value)) for point in curve.points for value in point.rounds],
        ring=_ring(curve, x, y, across),
    )


def _ring(curve: Curve, x: Scale, y: Scale, across: dict[Value, float]) -> tuple[float, float] | None:
    """Around the knee, if the rounds leave no other point for it."""
    if not curve.knee_is_sure:
        return None
    return x.place(across[curve.knee.value]), y.place(curve.knee.typical.value)


def _table(axis: str, values: list[Value], curves: list[Curve]) -> DataTable:
    cells = {(curve.name, point.value): _cell(point) for curve in curves for point in curve.points}
    rows = [[str(value), *(cells.get((curve.name, value), units.UNKNOWN) for curve in curves)] for value in values]
    return DataTable([axis, *(curve.name for curve in curves)], rows)


def _cell(point: SweepPoint) -> str:
    text = units.time(point.typical.value)
    ends = point.typical.interval
    return f"{text} ({' to '.join(map(units.time, ends))})" if ends else text
