"""Distributions: latencies as one area per arm, and the overhead, which is the latency less the requested delay."""

from __future__ import annotations

from statistics import median

import numpy as np

from clientlab import units
from clientlab.reports.charts.scale import Scale, logarithmic
from clientlab.reports.charts.shapes import Bar, BarChart
from clientlab.reports.html.chart_data import ChartArm, ChartGroup
from clientlab.results.trial import Quantiles

_BINS = 90
_TAIL = 0.999  # up to where areas are drawn


def charts(groups: list[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has latencies."""
    return [bars for group in groups if (bars := _chart(group))]


def overheads(groups: list[ChartGroup]) -> list[BarChart]:
    """A chart for each group whose requests asked for a delay."""
    return [bars for group in groups if (bars := _overhead(group))]


def _chart(group: ChartGroup) -> BarChart | None:
    found = [latencies for arm in group.arms if (latencies := arm.latencies)]
    tails = [float(latencies.quantiles(np.array([_TAIL]))[0]) for latencies in found]
    scale = logarithmic([*tails, *(float(latencies.seconds[0]) for latencies in found)])
    if scale is None:
        return None
    delay = f" They include the requested delay of the upstream, {group.delay}." if group.delay else ""
    return BarChart(
        title=group.title,
        rows=[_area(arm, scale) for arm in group.arms if arm.latencies],
        ticks=scale.ticks_across(units.time),
        axis=f"latency up to the {_TAIL:.1%} quantile".replace("%", " %"),
        notes=[f"The numbers are p50 · p99 of all rounds together.{delay}"],
    )


def _area(arm: ChartArm, scale: Scale) -> Bar:
    latencies = arm.latencies
    if latencies is None:
        raise ValueError(f"{arm.name} has no latencies")
    p50, p99 = latencies.quantiles(np.array([0.5, 0.99])).tolist()
    shares = latencies.shares(np.geomspace(scale.low, scale.high, _BINS + 1))
    value = f"{units.time(p50)} · {units.time(p99)}"
    return Bar(
        name=arm.name,
        look=arm.look,
        value=value,
        title=f"{arm.name}: half of all requests within {units.time(p50)}, 99 % within {units.time(p99)}",
        rings=[scale.place(p50), scale.place(p99)],
        area=(shares / shares.max()).tolist(),
        first=arm.row.fastest,
    )


def _overhead(group: ChartGroup) -> BarChart | None:
    known = [arm for arm in group.arms if _quantiles(arm)]
    values = [value for arm in known for found in _quantiles(arm) for value in (found.p50, found.p99)]
    scale = logarithmic(values)
    if scale is None:
        return None
    return BarChart(
        title=group.title,
        rows=[_range(arm, scale) for arm in known],
        ticks=scale.ticks_across(units.time),
        axis=f"latency less the requested delay of {group.delay}",
        notes=["A dot is the median of a round, a ring its p99. The numbers are p50 · p99, as medians of the rounds."],
    )


def _range(arm: ChartArm, scale: Scale) -> Bar:
    found = _quantiles(arm)
    p50, p99 = median(one.p50 for one in found), median(one.p99 for one in found)
    return Bar(
        name=arm.name,
        look=arm.look,
        value=f"{units.time(p50)} · {units.time(p99)}",
        title=f"{arm.name}: overhead p50 {units.time(p50)}, p99 {units.time(p99)} (medians of {len(found)} rounds)",
        span=(scale.place(p50), scale.place(p99)),
        dots=[scale.place(one.p50) for one in found],
        rings=[scale.place(one.p99) for one in found],
        first=arm.row.fastest,
    )


def _quantiles(arm: ChartArm) -> list[Quantiles]:
    return [trial.overhead_seconds for trial in arm.trials if trial.overhead_seconds]
