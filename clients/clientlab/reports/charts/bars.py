"""Bars: how long each arm takes, and its other costs. A bar is the figure of the table, a dot one round."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from clientlab import units
from clientlab.analysis.ratios import typical_figure
from clientlab.reports.charts.chart_data import ChartArm, ChartGroup, Look, looks_of
from clientlab.reports.charts.shapes import Bar, BarChart, Scale, even, logarithmic
from clientlab.reports.charts.sweeps import REQUESTS, ChartedSeconds, sweeps_of
from clientlab.reports.rows import Group, Row
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES

NOTE = (
    "The bar is the typical time over the rounds, the line on it its 95 % confidence interval, a dot one round. "
    "With fewer than three rounds, no interval is computed. The fastest arm without errors is in bold, of those with "
    "equal c (requests in flight)."
)

UNLIKE = "Compare arms of equal c: where arms wait for the server, one with twice the c takes half the time."
"""The note of a chart whose arms have unlike concurrency."""

_FAR = 5.0  # from this ratio of the slowest rounds of two charts on, each has its own scale
_REACH = 1.5  # how far beyond the slowest round an interval is drawn

_FAR_APART = 20.0
"""If the largest value of a chart is this many times the least, dots on a logarithmic axis replace the bars.

The shortest bars of a linear axis would have a twentieth of its length, and no difference between them could be seen.
"""

LOGARITHMIC = "The axis is logarithmic, so dots replace the bars. The text beside them is the typical value."
"""The note of such a chart."""

_TICK_SIZES: dict[units.Unit, int] = {"bytes": 1 << 20}
"""Ticks are round multiples of this size. Without a size: of the unit itself."""


def times(run: Run, groups: Sequence[Group]) -> list[BarChart]:
    """A chart for each group. Those of one workload have one scale, unless the bars of some would be too short.

    Arms that stand on the curves of sweeps have no bar, unless other arms of their group have one.
    """
    looks = looks_of(run)
    on_curves = {point.arm for sweep in sweeps_of(run) for curve in sweep.curves for point in curve.points}
    drawn = [one for one in groups if not all(trial.arm in on_curves for row in one.rows for trial in row.trials)]
    workloads = itertools.groupby(drawn, lambda group: group.key.workload)
    return [chart for _, some in workloads for chart in _alike(list(some), looks)]


def _alike(groups: list[Group], looks: dict[str, Look]) -> Iterator[BarChart]:
    counts = {group.requests for group in groups}
    requests = groups[0].requests or REQUESTS if len(counts) == 1 else REQUESTS
    charted = ChartedSeconds(None if groups[0].open_load else requests)
    slowest = [max(max(row.costs) for row in group.rows) for group in groups]
    if max(slowest) > _FAR * min(slowest):
        for group in groups:
            yield _chart(group, charted, _scale([group], charted), looks, ["This chart has its own scale."])
    else:
        scale = _scale(groups, charted)
        yield from (_chart(group, charted, scale, looks, []) for group in groups)


def _scale(groups: list[Group], charted: ChartedSeconds) -> Scale:
    rows = [row for group in groups for row in group.rows]
    ends = [end for row in rows for end in _ends(row, charted)]
    return scale_of([charted.of(cost) for row in rows for cost in row.costs], ends)


def scale_of(values: Sequence[float], ends: Iterable[float] = ()) -> Scale:
    """A scale from 0, or a logarithmic one for values far apart. `ends`: of intervals, which may reach beyond it."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) >= _FAR_APART * min(positive):
        low, high = min(positive) / _REACH, max(positive) * _REACH
        found = logarithmic([*positive, *(min(max(end, low), high) for end in ends)])
        if found is not None:
            return found
    largest = max(values, default=0.0)
    return even([largest, min(max(ends, default=0.0), largest * _REACH)])


def beyond(scale: Scale, intervals: Mapping[str, Sequence[float]]) -> list[str]:
    """A note on the intervals (name → both ends, or none) that end beyond the scale; empty without one."""
    names = [name for name, ends in intervals.items() if any(not scale.low <= end <= scale.high for end in ends)]
    return [f"The interval ends beyond the chart for {', '.join(names)}."] if names else []


def _chart(group: Group, charted: ChartedSeconds, scale: Scale, looks: dict[str, Look], notes: list[str]) -> BarChart:
    concurrencies = {row.concurrency for row in group.rows}
    faulty = [row.name for row in group.rows if row.errors]
    notes = [
        *([LOGARITHMIC] if scale.log else []),
        *notes,
        *([f"Requests failed with {', '.join(faulty)}: look at the errors before the speed."] if faulty else []),
        *([UNLIKE] if len(concurrencies) > 1 else []),
        *beyond(scale, {row.name: _ends(row, charted) for row in group.rows}),
    ]
    load = "" if len(concurrencies) > 1 else f", c={group.rows[0].concurrency}"
    better = " (logarithmic); further left is better" if scale.log else "; shorter is better"
    return BarChart(
        title=group.title,
        rows=[_bar(row, group, charted, scale, looks[row.strategy]) for row in group.rows],
        ticks=scale.ticks_across(units.time),
        axis=f"{charted.label}{load}{better}",
        notes=notes,
    )


def _bar(row: Row, group: Group, charted: ChartedSeconds, scale: Scale, look: Look) -> Bar:
    seconds = [charted.of(cost) for cost in row.costs]
    ends = _ends(row, charted)
    typical = charted.of(row.level)
    title = f"{row.name}: {units.time(typical)} over {len(seconds)} rounds ({', '.join(map(units.time, seconds))})"
    if ends:
        title += f"; 95 % confidence interval {' to '.join(map(units.time, ends))}"
    return Bar(
        name=group.name_of(row),
        look=look,
        value=units.time(typical) + (" ⚠ errors" if row.errors else ""),
        title=title,
        length=None if scale.log else scale.position(typical),
        span=(scale.position(ends[0]), scale.position(ends[1])) if ends else None,
        dots=[scale.position(value) for value in seconds],
        first=row.first,
    )


def _ends(row: Row, charted: ChartedSeconds) -> list[float]:
    """Both ends of the interval over the rounds, in the chart's seconds; empty without one."""
    found = typical_figure(dict(enumerate(row.costs)))
    return [charted.of(end) for end in (found and found.with_value(row.level).interval) or ()]


def costs(group: ChartGroup) -> list[BarChart]:
    """A chart of each cost that the trials of a group have."""
    shown = (one for one in FIGURES if one.cost and (one.column is None or group.shows(one, one.column.when)))
    return [bars for figure in shown if (bars := _cost_chart(group, figure))]


def _cost_chart(group: ChartGroup, figure: Figure) -> BarChart | None:
    size = _TICK_SIZES.get(figure.unit, 1)
    found = [(arm, [value / size for value in values]) for arm in group.arms if (values := figure.values(arm.trials))]
    if not found:
        return None

    def text(value: float) -> str:
        return units.of_unit(value * size, figure.unit)

    scale = scale_of([value for _, values in found for value in values])
    return BarChart(
        title=figure.title,
        rows=[_cost_bar(arm, figure, values, text, scale) for arm, values in found],
        ticks=scale.ticks_across(text),
        axis=f"{figure.description}{' (logarithmic)' if scale.log else ''}",
    )


def _cost_bar(arm: ChartArm, figure: Figure, values: list[float], text: Callable[[float], str], scale: Scale) -> Bar:
    """Return a bar as long as the figure in the table, with a dot for each round."""
    shown = arm.row.figures.get(figure.key)
    typical = median(values) if shown is None else shown / _TICK_SIZES.get(figure.unit, 1)
    rounds = ", ".join(map(text, values))
    return Bar(
        name=arm.name,
        look=arm.look,
        value=text(typical),
        title=f"{arm.name}: {text(typical)} over {len(values)} rounds ({rounds})",
        length=None if scale.log else scale.position(typical),
        dots=[scale.position(value) for value in values],
        first=arm.row.first,
    )
