"""The sweep: time against an axis of the experiment, with the interval of its rounds, and where it stops to pay."""

from __future__ import annotations

from clientlab.analysis.sweeps import Value
from clientlab.reports import units
from clientlab.reports.curves import Curve, Place, Sweep, is_far, sweeps_of
from clientlab.reports.html.palette import Look, distinct, looks_of
from clientlab.reports.html.plot import Figures, Line, Plot, band_of, dots_of, path_of
from clientlab.reports.html.scale import Scale, Tick, even, logarithmic, shortened
from clientlab.runs.document import Run

_ROOM = 9.0  # per cent of the axis that a tick needs

_NOTE = (
    "The line joins the medians of the rounds; a dot is a round, the band the 95 % interval of their mean. "
    "The ring is the knee, by the means of the rounds without an error: more than that brings less than 5 % in all."
)


def charts(run: Run) -> list[Plot]:
    """A plot for each sweep."""
    looks = looks_of(run)
    return [_plot(sweep, distinct(looks[curve.strategy] for curve in sweep.curves)) for sweep in sweeps_of(run)]


def _plot(sweep: Sweep, looks: list[Look]) -> Plot:
    values = sweep.values
    x, x_ticks, across = _across(values)
    y = _upright([value for curve in sweep.curves for place in curve.places for value in place.rounds])
    return Plot(
        title=f"{sweep.axis} · {sweep.where}",
        lines=[_line(curve, look, x, y, across) for curve, look in zip(sweep.curves, looks, strict=True)],
        x_ticks=x_ticks,
        y_ticks=y.ticks(units.time),
        x_axis=sweep.axis + (" (logarithmic)" if x.log else ""),
        y_axis=f"time for {sweep.requests:,} requests" + (" (logarithmic)" if y.log else ""),
        told=" ".join(curve.told for curve in sweep.curves),
        notes=[_NOTE],
        figures=_figures(sweep.axis, values, sweep.curves),
    )


def _across(values: list[Value]) -> tuple[Scale, list[Tick], dict[Value, float]]:
    """The axis, its ticks, and where each value stands on it: words stand at even distances."""
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        x = Scale(-0.2, len(values) - 0.8)
        across = {value: float(place) for place, value in enumerate(values)}
        return x, [Tick(x.place(across[value]), str(value)) for value in values], across
    x = Scale(numbers[0], numbers[-1], log=is_far(numbers))
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
    return (logarithmic(values, 1.15) if is_far(sorted(values)) else None) or even(values)


def _line(curve: Curve, look: Look, x: Scale, y: Scale, across: dict[Value, float]) -> Line:
    places = curve.places
    banded = [
        (across[p.at], p.mean.low, p.mean.high) for p in places if p.mean.low is not None and p.mean.high is not None
    ]
    return Line(
        name=f"{curve.name}: knee at {curve.knee.at}",
        look=look,
        path=path_of([(across[place.at], place.middle) for place in places], x, y),
        title=curve.told,
        band=band_of(banded, x, y) if banded else None,
        dots=dots_of([(across[place.at], value) for place in places for value in place.rounds], x, y),
        ring=dots_of([(across[curve.knee.at], curve.knee.middle)], x, y),
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
