"""Samples over time: every trial's throughput and latency from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clientlab.reports import units
from clientlab.reports.html.entries import Entry, Way
from clientlab.reports.html.plot import Line, Plot, path_of
from clientlab.reports.html.scale import FEW_TICKS, HALF, Scale, Words, even, logarithmic
from clientlab.runs.document import Trial

MOST_TRIALS = 240
"""Trials that are drawn in one report; each takes 2 kB or so."""

_STEADY = 8  # requests that a point of throughput is made of, on average
_JOINED = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)  # slices of 60 that a point may take


@dataclass(frozen=True)
class Pair:
    """An arm's trials: their throughput and their latency."""

    name: str
    throughput: Plot
    latency: Plot | None


@dataclass(frozen=True)
class Course:
    """The arms of a way over time."""

    title: str
    pairs: list[Pair]


def courses(ways: list[Way]) -> tuple[list[Course], int]:
    """Of each way, and how many trials are not drawn."""
    left, found, omitted = MOST_TRIALS, [], 0
    for way in ways:
        pairs = []
        for entry in way.entries:
            trials = [trial for trial in entry.trials if trial.over_time and trial.wall_seconds]
            drawn = trials[:left]
            left -= len(drawn)
            omitted += len(trials) - len(drawn)
            if drawn:
                pairs.append(_pair(entry, drawn))
        if pairs:
            found.append(Course(way.title, pairs))
    return found, omitted


def _pair(entry: Entry, trials: Sequence[Trial]) -> Pair:
    x = Scale(0.0, max(trial.wall_seconds or 0.0 for trial in trials))
    rates = [list(_throughput(trial)) for trial in trials]
    y = even(rate for points in rates for _, rate in points)
    lines = [
        Line(f"round {trial.round}", entry.look, path_of(points, x, y), f"{entry.name}, round {trial.round}")
        for trial, points in zip(trials, rates, strict=True)
    ]
    every = [rate for points in rates for _, rate in points]
    told = f"{entry.name}: {len(trials)} rounds, from {units.rate(min(every))} to {units.rate(max(every))} requests/s."
    throughput = _plot("requests/s", lines, x, (y, units.rate), told)
    return Pair(entry.name, throughput, _latency(entry, trials, x))


def _latency(entry: Entry, trials: Sequence[Trial], x: Scale) -> Plot | None:
    p50s = [value for trial in trials for part in trial.over_time if (value := part.p50) is not None]
    p99s = [value for trial in trials for part in trial.over_time if (value := part.p99) is not None]
    y = logarithmic([*p50s, *p99s])
    if y is None:
        return None
    lines = []
    for trial in trials:
        half = _length(trial) / 2
        late = path_of(((part.at + half, part.p99) for part in trial.over_time), x, y)
        middle = path_of(((part.at + half, part.p50) for part in trial.over_time), x, y)
        where = f"{entry.name}, round {trial.round}"
        lines.append(Line("p99", entry.look, late, f"{where}: p99", thin=True))
        lines.append(Line("p50", entry.look, middle, f"{where}: p50"))
    told = (
        f"{entry.name}: p50 from {units.time(min(p50s))} to {units.time(max(p50s))}, "
        f"p99 from {units.time(min(p99s))} to {units.time(max(p99s))}."
    )
    return _plot("latency: p50, thin p99", lines, x, (y, units.time), told)


def _plot(title: str, lines: list[Line], x: Scale, upright: tuple[Scale, Words], told: str) -> Plot:
    y, words = upright
    return Plot(title, lines, x.ticks_across(units.time, HALF), y.ticks(words, FEW_TICKS), "", "", told, small=True)


def _throughput(trial: Trial) -> Iterator[tuple[float, float]]:
    """Middle and requests a second of as many slices together as make it steady."""
    parts, length = trial.over_time, _length(trial)
    mean = sum(part.requests for part in parts) / len(parts)
    joined = next((count for count in _JOINED if count * mean >= _STEADY), _JOINED[-1])
    for place in range(0, len(parts), joined):
        some = parts[place : place + joined]
        width = length * len(some)
        yield some[0].at + width / 2, sum(part.requests for part in some) / width


def _length(trial: Trial) -> float:
    return (trial.wall_seconds or 0.0) / len(trial.over_time)
