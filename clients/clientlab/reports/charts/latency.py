"""Latencies of the arms: by percentile, and as distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from clientlab import units
from clientlab.analysis.histogram import Distribution, merged
from clientlab.analysis.latencies import BoundedValue, medians_of
from clientlab.reports.charts.chart_data import MOST_LINES, ChartArm, ChartGroup, coloured_and_grey, notes_of_waits
from clientlab.reports.charts.shapes import Bar, BarChart, DataTable, Line, LineChart, Scale, Tick, logarithmic, placed
from clientlab.results.figures import BY_KEY

_POINTS, _FAINT_POINTS = 80, 24
_FURTHER = {"p90": 0.9, "p99.9": 0.999, "max": 1.0}
"""Columns of a chart's table beside those figures that the run's table has as well."""
_P50, _P99 = BY_KEY["p50"], BY_KEY["p99"]
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_BINS = 90
_TAIL = 0.999  # up to where areas are drawn


def percentiles(groups: Sequence[ChartGroup]) -> list[LineChart]:
    """A plot for each group that has latencies."""
    return [plot for group in groups if (plot := _percentiles(group))]


def _percentiles(group: ChartGroup) -> LineChart | None:
    arms = [arm for arm in group.arms if arm.latencies]
    if not arms:
        return None
    coloured, grey = coloured_and_grey(arms)
    x = Scale(0.0, max(math.log10(_requests(arm)) for arm in arms))
    found = {arm.name: _points(arm, faint=arm in grey) for arm in arms}
    y = logarithmic([seconds for points in found.values() for _, seconds in points if seconds is not None])
    if y is None:
        return None
    return LineChart(
        title=group.title,
        lines=[
            Line(_name(arm), arm.look, placed(found[arm.name], x, y), f"{_name(arm)}: {_text(arm)}", arm in grey)
            for arm in [*grey, *coloured]
        ],
        x_ticks=[Tick(x.position(_rarity(percent / 100)), f"{percent:g}") for percent in _TICKS if _fits(percent, x)],
        y_ticks=y.ticks(units.time),
        x_axis="percentile of the requests of a round, the median of the rounds",
        y_axis="latency",
        summary=_summary(arms),
        notes=[*_failures(arms), *notes_of_waits(arms), *_notes(grey)],
        table=DataTable(["strategy", "requests", "p50", "p99", *_FURTHER], [_row(arm) for arm in arms]),
    )


def _name(arm: ChartArm) -> str:
    return f"{arm.name}{arm.row.mark}"


def _requests(arm: ChartArm) -> float:
    """Of a typical round, 2 at least."""
    return max(2.0, float(median(one.recorded.total for one in arm.latencies)))


def _points(arm: ChartArm, *, faint: bool) -> list[tuple[float, float | None]]:
    """Rarity and quantile of an arm. They end where failed requests begin."""
    total = _requests(arm)
    rarities = np.linspace(0.0, math.log10(total), _FAINT_POINTS if faint else _POINTS)
    shares = np.minimum(1 - 10**-rarities, 1 - 1 / total)
    shares[-1] = 1.0  # the slowest of a round
    found = medians_of(arm.latencies, shares)
    return [(rarity, None if one.at_least else one.value) for rarity, one in zip(rarities.tolist(), found, strict=True)]


def _rarity(share: float) -> float:
    """The position on the axis: 90 % at 1, 99 % at 2, 99.9 % at 3."""
    return -math.log10(1 - share)


def _fits(percent: float, x: Scale) -> bool:
    return _rarity(percent / 100) <= x.high * 1.001


def _row(arm: ChartArm) -> list[str]:
    """Of one arm: name, requests of all rounds, and quantiles."""
    requests = sum(one.recorded.total for one in arm.latencies)
    further = map(_time, medians_of(arm.latencies, np.array(list(_FURTHER.values()))))
    return [_name(arm), f"{requests:,}", arm.row.text(_P50), arm.row.text(_P99), *further]


def _text(arm: ChartArm) -> str:
    _, _, *quantiles = _row(arm)
    return ", ".join(f"{label} {value}" for label, value in zip(("p50", "p99", *_FURTHER), quantiles, strict=True))


def _summary(arms: Sequence[ChartArm]) -> str:
    known = [arm for arm in arms if arm.row.figures[_P99.key] is not None]
    lines = f"{len(arms)} lines rise from the fastest request to the slowest."
    if not known:
        return lines
    order = sorted(known, key=lambda arm: (_P99.key in arm.row.bounds, arm.row.figures[_P99.key]))
    best, worst = order[0], order[-1]
    return (
        f"{lines} At the 99th percentile, {_name(best)} is lowest with {best.row.text(_P99)} and {_name(worst)} is "
        f"highest with {worst.row.text(_P99)}."
    )


def _failures(arms: Sequence[ChartArm]) -> list[str]:
    """Where lines end before the last percentile."""
    shares = {_name(arm): _failed_share(arm) for arm in arms}
    return [
        f"{units.share(share)} of the requests of {name} failed: its line ends there."
        for name, share in shares.items()
        if share
    ]


def _failed_share(arm: ChartArm) -> float:
    recorded = sum(one.recorded.total for one in arm.latencies)
    return 1 - sum(one.answered.total for one in arm.latencies) / recorded


def _notes(grey: list[ChartArm]) -> list[str]:
    if not grey:
        return []
    return [
        f"The {MOST_LINES} fastest arms are in colour, {len(grey)} others are grey.",
        "Point at a line to see its name, or read the table below.",
    ]


def distributions(groups: Sequence[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has latencies."""
    return [bars for group in groups if (bars := _distribution(group))]


def _distribution(group: ChartGroup) -> BarChart | None:
    found = {arm.name: merged([one.answered for one in arm.latencies]) for arm in group.arms if arm.latencies}
    tails = [float(answered.quantiles(np.array([_TAIL]))[0]) for answered in found.values()]
    scale = logarithmic([*tails, *(float(answered.seconds[0]) for answered in found.values())])
    if scale is None:
        return None
    delay = f" They include {_unavoidable(group)}." if _unavoidable(group) else ""
    return BarChart(
        title=group.title,
        rows=[_area(arm, found[arm.name], scale) for arm in group.arms if arm.name in found],
        ticks=scale.ticks_across(units.time),
        axis=f"latency of successful requests of all rounds, up to their {_TAIL:.1%} quantile".replace("%", " %"),
        notes=[f"The numbers are p50 · p99, those of the table.{delay}", *notes_of_waits(group.arms)],
    )


def _area(arm: ChartArm, answered: Distribution, scale: Scale) -> Bar:
    shares = answered.shares(np.geomspace(scale.low, scale.high, _BINS + 1))
    texts = [arm.row.text(figure) for figure in (_P50, _P99)]
    shown = [value for one in (_P50, _P99) if one.key not in arm.row.bounds and (value := arm.row.figures[one.key])]
    failed = _failed_share(arm)
    return Bar(
        name=arm.name,
        look=arm.look,
        value=" · ".join(texts),
        title=f"{arm.name}: p50 {texts[0]}, p99 {texts[1]}"
        + (f"; {units.share(failed)} of the requests failed" if failed else ""),
        rings=[scale.position(value) for value in shown],
        area=(shares / shares.max()).tolist(),
        first=arm.row.first,
    )


def _unavoidable(group: ChartGroup) -> str:
    """What every latency includes; empty without a delay and a link."""
    parts = [f"the requested delay of {group.delay}"] if group.delay else []
    return " and ".join([*parts, *([f"a round trip of the link of {group.key.link}"] if group.key.link else [])])


def _time(found: BoundedValue) -> str:
    return units.of_unit(found.value, "seconds", at_least=found.at_least)
