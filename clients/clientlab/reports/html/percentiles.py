"""Latency by percentile, as HdrHistogram draws it: the rarer, the further to the right."""

from __future__ import annotations

import math

import numpy as np

from clientlab.analysis.distribution import Distribution
from clientlab.reports import units
from clientlab.reports.html.entries import MOST_LINES, Entry, Way, lined
from clientlab.reports.html.plot import Figures, Line, Plot, path_of
from clientlab.reports.html.scale import Scale, Tick, logarithmic

_POINTS, _FAINT_POINTS = 80, 24
_LABELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


def charts(ways: list[Way]) -> list[Plot]:
    """One for each way that has latencies."""
    return [plot for way in ways if (plot := _chart(way))]


def _chart(way: Way) -> Plot | None:
    known = [(entry, entry.latencies) for entry in way.entries]
    found = {entry.name: latencies for entry, latencies in known if latencies}
    if not found:
        return None
    coloured, grey = lined([entry for entry in way.entries if entry.name in found])
    x = Scale(0.0, max(math.log10(max(2, latencies.total)) for latencies in found.values()))
    y = logarithmic([float(end) for latencies in found.values() for end in latencies.seconds[[0, -1]]])
    if y is None:
        return None
    lines = [_line(entry, found[entry.name], x, y, faint=True) for entry in grey]
    lines += [_line(entry, found[entry.name], x, y) for entry in coloured]
    return Plot(
        title=way.title,
        lines=lines,
        x_ticks=[Tick(x.place(_rarity(percent / 100)), f"{percent:g}") for percent in _TICKS if _fits(percent, x)],
        y_ticks=y.ticks(units.time),
        x_axis="percentile of requests, all rounds of an arm together",
        y_axis="latency",
        told=_told(found),
        notes=_notes(grey),
        figures=_figures(found),
    )


def _line(entry: Entry, found: Distribution, x: Scale, y: Scale, *, faint: bool = False) -> Line:
    rarities = np.linspace(0.0, math.log10(max(2, found.total)), _FAINT_POINTS if faint else _POINTS)
    shares = np.minimum(1 - 10**-rarities, 1 - 1 / found.total)
    shares[-1] = 1.0  # the slowest of all
    points = list(zip(rarities.tolist(), found.quantiles(shares).tolist(), strict=True))
    return Line(entry.name, entry.look, path_of(points, x, y), f"{entry.name}: {_words(found)}", faint)


def _rarity(share: float) -> float:
    """How far to the right: 90 % at 1, 99 % at 2, 99.9 % at 3."""
    return -math.log10(1 - share)


def _fits(percent: float, x: Scale) -> bool:
    return _rarity(percent / 100) <= x.high * 1.001


def _quantiles(found: Distribution) -> list[str]:
    return [units.time(value) for value in found.quantiles(np.array(list(_LABELS.values()))).tolist()]


def _words(found: Distribution) -> str:
    return ", ".join(f"{label} {value}" for label, value in zip(_LABELS, _quantiles(found), strict=True))


def _figures(found: dict[str, Distribution]) -> Figures:
    rows = [[name, f"{latencies.total:,}", *_quantiles(latencies)] for name, latencies in found.items()]
    return Figures(["strategy", "requests", *_LABELS], rows)


def _told(found: dict[str, Distribution]) -> str:
    late = {name: float(latencies.quantiles(np.array([0.99]))[0]) for name, latencies in found.items()}
    best, worst = min(late, key=late.__getitem__), max(late, key=late.__getitem__)
    text = f"{len(late)} lines rise from the fastest request to the slowest. At the 99th percentile {best} is lowest "
    return f"{text}with {units.time(late[best])}, {worst} highest with {units.time(late[worst])}."


def _notes(grey: list[Entry]) -> list[str]:
    if not grey:
        return []
    return [
        f"The {MOST_LINES} fastest are in colour; {len(grey)} others are grey: point at one, or read the table below."
    ]
