"""Distributions: latencies as one area per arm, and the overhead: the latency less the delay and a round trip."""

from __future__ import annotations

import numpy as np

from clientlab import units
from clientlab.analysis.bounded import BoundedValue, median_of
from clientlab.analysis.latencies import Latencies
from clientlab.reports.charts.scale import Scale, logarithmic
from clientlab.reports.charts.shapes import Bar, BarChart
from clientlab.reports.html.chart_data import ChartArm, ChartGroup, notes_of_waits

_BINS = 90
_TAIL = 0.999  # up to where areas are drawn


def charts(groups: list[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has latencies."""
    return [bars for group in groups if (bars := _chart(group))]


def overheads(groups: list[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has a delay or a link."""
    return [bars for group in groups if (bars := _overhead(group))]


def _chart(group: ChartGroup) -> BarChart | None:
    found = [latencies for arm in group.arms if (latencies := arm.latencies)]
    tails = [float(latencies.answered.quantiles(np.array([_TAIL]))[0]) for latencies in found]
    scale = logarithmic([*tails, *(float(latencies.answered.seconds[0]) for latencies in found)])
    if scale is None:
        return None
    delay = f" They include {_unavoidable(group)}." if _unavoidable(group) else ""
    return BarChart(
        title=group.title,
        rows=[_area(arm, scale) for arm in group.arms if arm.latencies],
        ticks=scale.ticks_across(units.time),
        axis=f"latency of successful requests, up to their {_TAIL:.1%} quantile".replace("%", " %"),
        notes=[f"The numbers are p50 · p99 of all rounds together.{delay}", *notes_of_waits(group.arms)],
    )


def _area(arm: ChartArm, scale: Scale) -> Bar:
    latencies = arm.latencies
    if latencies is None:
        raise ValueError(f"{arm.name} has no latencies")
    p50, p99 = latencies.quantile(0.5), latencies.quantile(0.99)
    shares = latencies.answered.shares(np.geomspace(scale.low, scale.high, _BINS + 1))
    mark = arm.row.mark
    return Bar(
        name=arm.name,
        look=arm.look,
        value=f"{_time(p50)}{mark} · {_time(p99)}{mark}",
        title=f"{arm.name}: p50 {_time(p50)}{mark}, p99 {_time(p99)}{mark}{_failed(latencies)}",
        rings=[scale.place(one.value) for one in (p50, p99) if not one.at_least],
        area=(shares / shares.max()).tolist(),
        first=arm.row.first,
    )


def _overhead(group: ChartGroup) -> BarChart | None:
    known = [arm for arm in group.arms if _overheads(arm, "p50")]
    values = [one.value for arm in known for name in ("p50", "p99") for one in _overheads(arm, name)]
    scale = logarithmic(values)
    if scale is None:
        return None
    return BarChart(
        title=group.title,
        rows=[_range(arm, scale) for arm in known],
        ticks=scale.ticks_across(units.time),
        axis=f"latency less {_unavoidable(group)}",
        notes=["A dot is the median of a round, a ring its p99. The numbers are p50 · p99, as medians of the rounds."],
    )


def _unavoidable(group: ChartGroup) -> str:
    """What the overhead leaves out; empty without a delay and a link."""
    parts = [f"the requested delay of {group.delay}"] if group.delay else []
    return " and ".join([*parts, *([f"a round trip of the link of {group.key.link}"] if group.key.link else [])])


def _range(arm: ChartArm, scale: Scale) -> Bar:
    p50s, p99s = _overheads(arm, "p50"), _overheads(arm, "p99")
    p50, p99 = median_of(p50s), median_of(p99s)
    return Bar(
        name=arm.name,
        look=arm.look,
        value=f"{_time(p50)} · {_time(p99)}",
        title=f"{arm.name}: overhead p50 {_time(p50)}, p99 {_time(p99)} (medians of {len(p50s)} rounds)",
        span=None if p50.at_least or p99.at_least else (scale.place(p50.value), scale.place(p99.value)),
        dots=[scale.place(one.value) for one in p50s if not one.at_least],
        rings=[scale.place(one.value) for one in p99s if not one.at_least],
        first=arm.row.first,
    )


def _overheads(arm: ChartArm, name: str) -> list[BoundedValue]:
    """That quantile of the overhead of each trial that has it."""
    known = ((trial, trial.quantile(trial.overhead_seconds, name)) for trial in arm.trials)
    return [
        BoundedValue(value, name in trial.bounds(trial.overhead_seconds)) for trial, value in known if value is not None
    ]


def _time(found: BoundedValue) -> str:
    return units.of_unit(found.value, "seconds", at_least=found.at_least)


def _failed(found: Latencies) -> str:
    return f"; {units.share(found.failed_share)} of the requests failed" if found.failed_share else ""
