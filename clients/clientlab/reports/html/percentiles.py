"""Latency by percentile, with the axis of HdrHistogram: 90 %, 99 % and 99.9 % are equally far apart."""

from __future__ import annotations

import math

import numpy as np

from clientlab import units
from clientlab.analysis.bounded import BoundedValue
from clientlab.analysis.latencies import Latencies
from clientlab.reports.charts.scale import Scale, Tick, logarithmic
from clientlab.reports.charts.shapes import DataTable, Line, LineChart, placed
from clientlab.reports.html.chart_data import MOST_LINES, ChartArm, ChartGroup, coloured_and_grey, notes_of_waits

_POINTS, _FAINT_POINTS = 80, 24
_LABELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


def charts(groups: list[ChartGroup]) -> list[LineChart]:
    """A plot for each group that has latencies."""
    return [plot for group in groups if (plot := _chart(group))]


def _chart(group: ChartGroup) -> LineChart | None:
    arms = [arm for arm in group.arms if arm.latencies]
    found = {_name(arm): latencies for arm in arms if (latencies := arm.latencies)}
    if not found:
        return None
    coloured, grey = coloured_and_grey(arms)
    x = Scale(0.0, max(math.log10(max(2, latencies.recorded.total)) for latencies in found.values()))
    y = logarithmic([float(end) for latencies in found.values() for end in latencies.answered.seconds[[0, -1]]])
    if y is None:
        return None
    lines = [_line(arm, found[_name(arm)], x, y, faint=True) for arm in grey]
    lines += [_line(arm, found[_name(arm)], x, y) for arm in coloured]
    return LineChart(
        title=group.title,
        lines=lines,
        x_ticks=[Tick(x.place(_rarity(percent / 100)), f"{percent:g}") for percent in _TICKS if _fits(percent, x)],
        y_ticks=y.ticks(units.time),
        x_axis="percentile of the requests of all rounds of an arm",
        y_axis="latency",
        summary=_summary(found),
        notes=[*_failures(found), *notes_of_waits(arms), *_notes(grey)],
        table=_table(found),
    )


def _name(arm: ChartArm) -> str:
    return f"{arm.name}{arm.row.mark}"


def _line(arm: ChartArm, found: Latencies, x: Scale, y: Scale, *, faint: bool = False) -> Line:
    """The quantiles of an arm. The line ends where failed requests begin."""
    total = found.recorded.total
    rarities = np.linspace(0.0, math.log10(max(2, total)), _FAINT_POINTS if faint else _POINTS)
    shares = np.minimum(1 - 10**-rarities, 1 - 1 / total)
    shares[-1] = 1.0  # the slowest of all
    points = list(zip(rarities.tolist(), found.known(shares), strict=True))
    return Line(_name(arm), arm.look, placed(points, x, y), f"{_name(arm)}: {_text(found)}", faint)


def _rarity(share: float) -> float:
    """The place on the axis: 90 % at 1, 99 % at 2, 99.9 % at 3."""
    return -math.log10(1 - share)


def _fits(percent: float, x: Scale) -> bool:
    return _rarity(percent / 100) <= x.high * 1.001


def _quantiles(found: Latencies) -> list[str]:
    return [_time(found.quantile(share)) for share in _LABELS.values()]


def _time(found: BoundedValue) -> str:
    return units.of_unit(found.value, "seconds", at_least=found.at_least)


def _text(found: Latencies) -> str:
    return ", ".join(f"{label} {value}" for label, value in zip(_LABELS, _quantiles(found), strict=True))


def _table(found: dict[str, Latencies]) -> DataTable:
    rows = [[name, f"{latencies.recorded.total:,}", *_quantiles(latencies)] for name, latencies in found.items()]
    return DataTable(["strategy", "requests", *_LABELS], rows)


def _summary(found: dict[str, Latencies]) -> str:
    late = {name: latencies.quantile(0.99) for name, latencies in found.items()}
    order = sorted(late, key=lambda name: (late[name].at_least, late[name].value))
    best, worst = order[0], order[-1]
    return (
        f"{len(late)} lines rise from the fastest request to the slowest. At the 99th percentile, {best} is lowest "
        f"with {_time(late[best])} and {worst} is highest with {_time(late[worst])}."
    )


def _failures(found: dict[str, Latencies]) -> list[str]:
    """Where lines end before the last percentile."""
    return [
        f"{units.share(latencies.failed_share)} of the requests of {name} failed: its line ends there."
        for name, latencies in found.items()
        if latencies.failed_share
    ]


def _notes(grey: list[ChartArm]) -> list[str]:
    if not grey:
        return []
    return [
        f"The {MOST_LINES} fastest arms are in colour, {len(grey)} others are grey.",
        "Point at a line to see its name, or read the table below.",
    ]
