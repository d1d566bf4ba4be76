"""Timelines: throughput and latency of every trial from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clientlab import units
from clientlab.reports.charts.chart_data import ChartArm, ChartGroup
from clientlab.reports.charts.shapes import (
    FEW_TICKS,
    HALF,
    ChartPanel,
    Formatter,
    Line,
    LineChart,
    Scale,
    even,
    logarithmic,
    placed,
)
from clientlab.results.trial import Slice, Trial

MOST_TRIALS = 240
"""Trials that are drawn in one report. Each takes about 2 kB."""

_STEADY = 8  # requests in a point of throughput, on average
_JOINED = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)  # slices of 60 in a point


def timelines(groups: Sequence[ChartGroup]) -> list[ChartPanel]:
    """A panel for each group, with one for each arm: its throughput and latency, and of an open load its backlog."""
    left, found = MOST_TRIALS, []
    for group in groups:
        arms = []
        for arm in group.arms:
            drawn = _with_timeline(arm)[:left]
            left -= len(drawn)
            if drawn:
                arms.append(_timeline(arm, drawn))
        if arms:
            found.append(ChartPanel(group.title, panels=arms))
    return found


def omitted(groups: Sequence[ChartGroup]) -> int:
    """The number of trials that are not drawn."""
    return max(0, sum(len(_with_timeline(arm)) for group in groups for arm in group.arms) - MOST_TRIALS)


def _with_timeline(arm: ChartArm) -> list[Trial]:
    return [trial for trial in arm.trials if trial.over_time and trial.wall_seconds]


def _timeline(arm: ChartArm, trials: Sequence[Trial]) -> ChartPanel:
    x = Scale(0.0, max(trial.wall_seconds or 0.0 for trial in trials))
    rates = [list(_throughput(trial)) for trial in trials]
    y = even(rate for points in rates for _, rate in points)
    lines = [
        Line(f"round {trial.round}", arm.look, placed(points, x, y), f"{arm.name}, round {trial.round}")
        for trial, points in zip(trials, rates, strict=True)
    ]
    every = [rate for points in rates for _, rate in points]
    summary = f"{arm.name}: {len(trials)} rounds, from {units.rate(min(every))} to {units.rate(max(every))} requests/s."
    throughput = _plot("requests/s", lines, x, (y, units.rate), summary)
    charts = (throughput, _latency(arm, trials, x), _backlog(arm, trials, x))
    return ChartPanel(arm.name, [chart for chart in charts if chart is not None])


def _latency(arm: ChartArm, trials: Sequence[Trial], x: Scale) -> LineChart | None:
    p50s = [value for trial in trials for part in trial.over_time if (value := _known(part, "p50")) is not None]
    p99s = [value for trial in trials for part in trial.over_time if (value := _known(part, "p99")) is not None]
    y = logarithmic([*p50s, *p99s])
    if y is None:
        return None
    lines = []
    for trial in trials:
        half = _length(trial) / 2
        late = placed(((part.at + half, _known(part, "p99")) for part in trial.over_time), x, y)
        middle = placed(((part.at + half, _known(part, "p50")) for part in trial.over_time), x, y)
        where = f"{arm.name}, round {trial.round}"
        lines.append(Line("p99", arm.look, late, f"{where}: p99", thin=True))
        lines.append(Line("p50", arm.look, middle, f"{where}: p50"))
    ranges = [
        f"{name} from {units.time(min(values))} to {units.time(max(values))}"
        for name, values in (("p50", p50s), ("p99", p99s))
        if values
    ]
    summary = f"{arm.name}: {', '.join(ranges)}."
    return _plot("latency: p50, and p99 as a thin line", lines, x, (y, units.time), summary)


def _backlog(arm: ChartArm, trials: Sequence[Trial], x: Scale) -> LineChart | None:
    """Requests that were due and neither sent nor dropped, at the end of each sixtieth of a trial."""
    kept = [(trial, trial.open_load.over_time) for trial in trials if trial.open_load and trial.open_load.over_time]
    if not kept:
        return None
    most = max(part.backlog for _, parts in kept for part in parts)
    y = even([float(max(1, most))])
    lines = []
    for trial, parts in kept:
        wall, length = trial.wall_seconds or 0.0, _length(trial)
        points = placed(((min(part.at + length, wall), float(part.backlog)) for part in parts), x, y)
        lines.append(Line("backlog", arm.look, points, f"{arm.name}, round {trial.round}: backlog"))
    summary = f"{arm.name}: a backlog of up to {units.count(most)} requests."
    return _plot("backlog: requests due and not sent", lines, x, (y, units.count), summary)


def _known(part: Slice, name: str) -> float | None:
    """The quantile; None if it falls on a failed request."""
    found: float | None = getattr(part, name)
    return found


def _plot(title: str, lines: list[Line], x: Scale, upright: tuple[Scale, Formatter], summary: str) -> LineChart:
    y, text = upright
    return LineChart(
        title, lines, x.ticks_across(units.time, HALF), y.ticks(text, FEW_TICKS), "", "", summary, small=True
    )


def _throughput(trial: Trial) -> Iterator[tuple[float, float]]:
    """Points of time and requests per second. A point joins so many slices that its value is steady."""
    parts, length = trial.over_time, _length(trial)
    mean = sum(part.requests for part in parts) / len(parts)
    joined = next((count for count in _JOINED if count * mean >= _STEADY), _JOINED[-1])
    for index in range(0, len(parts), joined):
        some = parts[index : index + joined]
        width = min(length * len(some), (trial.wall_seconds or 0.0) - some[0].at)
        if width > 0:  # slices of a divided trial begin at the agreed start, a moment before its wall time does
            yield some[0].at + width / 2, sum(part.requests for part in some) / width


def _length(trial: Trial) -> float:
    """Seconds of a slice. The last one of a divided trial is cut short by its end."""
    parts = trial.over_time
    return parts[1].at - parts[0].at if len(parts) > 1 else trial.wall_seconds or 0.0
