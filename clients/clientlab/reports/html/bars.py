"""The articles' picture: a bar a strategy with its seconds and their interval; every round is a dot."""

from __future__ import annotations

import itertools
from statistics import median

from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.reports import units
from clientlab.reports.html.entries import Entry, Way
from clientlab.reports.html.plot import Bar, Bars
from clientlab.reports.html.scale import Scale, even

_REQUESTS = 1000  # where trials did unlike numbers of requests
_FAR = 5.0  # from this ratio of the slowest of two ways on, each has its own scale
_REACH = 1.5  # how far beyond the slowest round an interval is drawn


def charts(ways: list[Way]) -> list[Bars]:
    """One a way, in seconds for the requests of its workload."""
    workloads = itertools.groupby(ways, lambda way: way.group.workload)
    return [chart for _, alike in workloads for chart in _alike(list(alike))]


def _alike(ways: list[Way]) -> list[Bars]:
    """Those of one workload have one scale, so that they can be compared by eye; unless some would then be lost."""
    counts = {way.group.requests for way in ways}
    requests = ways[0].group.requests or _REQUESTS if len(counts) == 1 else _REQUESTS
    slowest = [_slowest(way) for way in ways]
    if max(slowest) > _FAR * min(slowest):
        return [_chart(way, requests, _scale([way], requests), ["This picture has its own scale."]) for way in ways]
    scale = _scale(ways, requests)
    return [_chart(way, requests, scale, []) for way in ways]


def _slowest(way: Way) -> float:
    return max(max(entry.row.costs) for entry in way.entries)


def _scale(ways: list[Way], requests: int) -> Scale:
    slowest = max(map(_slowest, ways)) * requests
    found = [_interval(entry) for way in ways for entry in way.entries]
    ends = [one.high * requests for one in found if one and one.high]
    return even([slowest, min(max(ends, default=0.0), slowest * _REACH)])


def _chart(way: Way, requests: int, scale: Scale, notes: list[str]) -> Bars:
    faulty = [entry.name for entry in way.entries if entry.row.errors]
    if faulty:
        notes = [*notes, f"Errors were made by {', '.join(faulty)}: see them before the speed."]
    wide = [entry.name for entry in way.entries if (found := _interval(entry)) and _beyond(found, requests, scale)]
    if wide:
        notes = [*notes, f"The interval goes on beyond the picture for {', '.join(wide)}."]
    return Bars(
        title=way.title,
        rows=[_bar(entry, requests, scale) for entry in way.entries],
        ticks=scale.ticks_across(units.time),
        axis=f"seconds for {requests:,} requests; shorter is better",
        notes=notes,
    )


def _bar(entry: Entry, requests: int, scale: Scale) -> Bar:
    seconds = [cost * requests for cost in entry.row.costs]
    middle, found = median(seconds), _interval(entry)
    rounds = ", ".join(map(units.time, seconds))
    title = f"{entry.name}: median {units.time(middle)} of {len(seconds)} rounds ({rounds})"
    span = None
    if found and found.low is not None and found.high is not None:
        low, high = found.low * requests, found.high * requests
        title += f"; 95 % interval of their mean {units.time(low)} to {units.time(high)}"
        span = (scale.place(low), scale.place(high))
    return Bar(
        name=entry.name,
        look=entry.look,
        value=units.time(middle) + (" ⚠ errors" if entry.row.errors else ""),
        title=title,
        length=scale.place(middle),
        span=span,
        dots=[scale.place(value) for value in seconds],
        first=entry.row.fastest,
    )


def _interval(entry: Entry) -> Ratio | None:
    """The geometric mean of seconds a request over the rounds, with Student's interval, as for ratios: to 1 s."""
    costs = dict(enumerate(entry.row.costs))
    return paired_ratio(costs, dict.fromkeys(costs, 1.0))


def _beyond(found: Ratio, requests: int, scale: Scale) -> bool:
    return found.high is not None and found.high * requests > scale.high
