"""How latencies are spread, an area an arm; and the overhead apart from the delay that was asked for."""

from __future__ import annotations

from statistics import median

import numpy as np

from clientlab.reports import units
from clientlab.reports.html.entries import Entry, Way
from clientlab.reports.html.plot import Bar, Bars, area_of
from clientlab.reports.html.scale import Scale, logarithmic
from clientlab.runs.document import Quantiles

_BINS = 90
_TAIL = 0.999  # up to where areas are drawn


def charts(ways: list[Way]) -> list[Bars]:
    """The latencies of each way that has some."""
    return [bars for way in ways if (bars := _chart(way))]


def overheads(ways: list[Way]) -> list[Bars]:
    """The overhead of each way of which a delay was asked."""
    return [bars for way in ways if (bars := _overhead(way))]


def _chart(way: Way) -> Bars | None:
    found = [latencies for entry in way.entries if (latencies := entry.latencies)]
    tails = [float(latencies.quantiles(np.array([_TAIL]))[0]) for latencies in found]
    scale = logarithmic([*tails, *(float(latencies.seconds[0]) for latencies in found)])
    if scale is None:
        return None
    delay = f" It holds the delay asked of the upstream: {way.delay}." if way.delay else ""
    return Bars(
        title=way.title,
        rows=[_area(entry, scale) for entry in way.entries if entry.latencies],
        ticks=scale.ticks_across(units.time),
        axis=f"latency of a request, to its {_TAIL:.1%} quantile".replace("%", " %"),
        notes=[f"The figures are p50 · p99 of all rounds together.{delay}"],
    )


def _area(entry: Entry, scale: Scale) -> Bar:
    latencies = entry.latencies
    if latencies is None:
        raise ValueError(f"{entry.name} has no latencies")
    p50, p99 = latencies.quantiles(np.array([0.5, 0.99])).tolist()
    shares = latencies.shares(np.geomspace(scale.low, scale.high, _BINS + 1))
    value = f"{units.time(p50)} · {units.time(p99)}"
    return Bar(
        name=entry.name,
        look=entry.look,
        value=value,
        title=f"{entry.name}: half of all requests within {units.time(p50)}, 99 % within {units.time(p99)}",
        rings=[scale.place(p50), scale.place(p99)],
        area=area_of(shares.tolist()),
        first=entry.row.fastest,
    )


def _overhead(way: Way) -> Bars | None:
    known = [entry for entry in way.entries if _quantiles(entry)]
    values = [value for entry in known for found in _quantiles(entry) for value in (found.p50, found.p99)]
    scale = logarithmic(values)
    if scale is None:
        return None
    return Bars(
        title=way.title,
        rows=[_range(entry, scale) for entry in known],
        ticks=scale.ticks_across(units.time),
        axis=f"latency less the delay of {way.delay} that was asked for",
        notes=["A dot is the median of a round, a ring its p99; the figures are p50 · p99, medians of the rounds."],
    )


def _range(entry: Entry, scale: Scale) -> Bar:
    found = _quantiles(entry)
    p50, p99 = median(one.p50 for one in found), median(one.p99 for one in found)
    return Bar(
        name=entry.name,
        look=entry.look,
        value=f"{units.time(p50)} · {units.time(p99)}",
        title=f"{entry.name}: overhead p50 {units.time(p50)}, p99 {units.time(p99)} (medians of {len(found)} rounds)",
        span=(scale.place(p50), scale.place(p99)),
        dots=[scale.place(one.p50) for one in found],
        rings=[scale.place(one.p99) for one in found],
        first=entry.row.fastest,
    )


def _quantiles(entry: Entry) -> list[Quantiles]:
    return [trial.overhead_seconds for trial in entry.trials if trial.overhead_seconds]
