"""Latencies of the arms: by percentile, as distributions, and the overhead over the delay and a round trip."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from clientlab import units
from clientlab.analysis.latencies import BoundedValue, Latencies, median_of
from clientlab.reports.charts.chart_data import MOST_LINES, ChartArm, ChartGroup, coloured_and_grey, notes_of_waits
from clientlab.reports.charts.shapes import Bar, BarChart, DataTable, Line, LineChart, Scale, Tick, logarithmic, placed
from clientlab.results.trial import quantile_of

_POINTS, _FAINT_POINTS = 80, 24
_LABELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_BINS = 90
_TAIL = 0.999  # up to where areas are drawn


def percentiles(groups: Sequence[ChartGroup]) -> list[LineChart]:
    """A plot for each group that has latencies."""
    return [plot for group in groups if (plot := _percentiles(group))]


def _percentiles(group: ChartGroup) -> LineChart | None:
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
        x_ticks=[Tick(x.position(_rarity(percent / 100)), f"{percent:g}") for percent in _TICKS if _fits(percent, x)],
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
    """The position on the axis: 90 % at 1, 99 % at 2, 99.9 % at 3."""
    return -math.log10(1 - share)


def _fits(percent: float, x: Scale) -> bool:
    return _rarity(percent / 100) <= x.high * 1.001


def _quantiles(found: Latencies) -> list[str]:
    return [_time(found.quantile(share)) for share in _LABELS.values()]


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


def distributions(groups: Sequence[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has latencies."""
    return [bars for group in groups if (bars := _distribution(group))]


def overheads(groups: Sequence[ChartGroup]) -> list[BarChart]:
    """A chart for each group that has a delay or a link."""
    return [bars for group in groups if (bars := _overhead(group))]


def _distribution(group: ChartGroup) -> BarChart | None:
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
        rings=[scale.position(one.value) for one in (p50, p99) if not one.at_least],
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
        span=None if p50.at_least or p99.at_least else (scale.position(p50.value), scale.position(p99.value)),
        dots=[scale.position(one.value) for one in p50s if not one.at_least],
        rings=[scale.position(one.value) for one in p99s if not one.at_least],
        first=arm.row.first,
    )


def _overheads(arm: ChartArm, name: str) -> list[BoundedValue]:
    """That quantile of the overhead of each trial that has it."""
    known = ((trial, quantile_of(trial.overhead_seconds, name)) for trial in arm.trials)
    return [
        BoundedValue(value, name in trial.bounds(trial.overhead_seconds)) for trial, value in known if value is not None
    ]


def _time(found: BoundedValue) -> str:
    return units.of_unit(found.value, "seconds", at_least=found.at_least)


def _failed(found: Latencies) -> str:
    return f"; {units.share(found.failed_share)} of the requests failed" if found.failed_share else ""
