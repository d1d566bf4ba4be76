"""The backlog of an open load, and whether it grew: the test of an overload.

The backlog is that of a queue: requests that were due and had not ended, in flight or not. Where each request is sent
when it is due and waits inside the client, only those in flight show an overload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean

from clientlab import units
from clientlab.judging.verdict import KEPT
from clientlab.results.trial import OpenLoad, Slice, Trial

GROWN_SHARE = 0.01
"""Of the requests that arrive in half the schedule: a backlog that grows by more grows steadily."""

GROWN_REQUESTS = 3
"""A backlog that grows by no more requests than these may be chance, at low rates."""

_FEWEST_SLICES = 4
_MOST_ARRIVALS = 0.5
"""Share of all arrivals. Where the slices are too coarse, so many requests are no stragglers at the schedule's end."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Growth:
    """How much a backlog grew. `requests`: in half the schedule; None where slices are too coarse to count them.

    `per_second`: requests per second of the schedule. `answered_per_second`: requests that ended per second, meanwhile.
    """

    requests: float | None
    per_second: float | None
    answered_per_second: float | None

    @property
    def text(self) -> str:
        """In a phrase."""
        if self.requests is None:
            return "the backlog grew until the schedule ended"
        return f"the backlog grew by {units.count(round(self.requests))} requests in half the trial"


@dataclass(frozen=True)
class _Moment:
    """The end of a slice. `excess`: the backlog without the requests that their delay alone keeps in flight."""

    end: float
    excess: float
    planned: int
    ended: int


def growth_of(load: OpenLoad, over_time: Sequence[Slice], wall: float) -> Growth | None:
    """How much the backlog of an open load grew; None where it did not grow. `wall`: seconds of the trial.

    The backlog grew if its mean over the last quarter of the schedule is above that over the second quarter by more
    than 1 % of the requests that arrive in half the schedule, and by more than 3 requests. The first quarter, in which
    connections are opened, does not count. Two things let a backlog rise without an overload, and are left out:
    requests that their requested delay, or the link's round trip, alone keeps in flight; and a rate that rises itself.
    """
    arrivals = sum(part.planned for part in load.over_time)
    length = arrivals / load.planned_per_second * (1 + _ROUNDING) if load.planned_per_second else 0.0
    moments = [one for one in _moments(load, over_time, wall) if one.end <= length]
    if len(moments) < _FEWEST_SLICES:  # to work the backlog off, or to wait for stragglers, took far longer
        return _coarse(load, arrivals, length)
    quarter, half = len(moments) // 4, len(moments) // 2
    earlier, later = moments[half - quarter : half], moments[-quarter:]
    before, after = _mean_excess(earlier), _mean_excess(later)
    faster = max(1.0, sum(one.planned for one in later) / max(1, sum(one.planned for one in earlier)))
    grown = after - max(0.0, before) * faster
    if grown <= max(GROWN_SHARE * arrivals / 2, GROWN_REQUESTS):
        return None
    seconds = moments[-1].end - moments[half - 1].end
    return Growth(
        requests=after - before,
        per_second=(after - before) / seconds,
        answered_per_second=sum(one.ended for one in moments[half:]) / seconds,
    )


def _coarse(load: OpenLoad, arrivals: int, length: float) -> Growth | None:
    """The same where the schedule has few slices: by the requests in flight at its end, unless these are unknown."""
    left = load.in_flight_at_end
    if left is None or not arrivals or load.achieved_per_second < KEPT * load.planned_per_second:
        return Growth(None, None, None)
    if left < _MOST_ARRIVALS * arrivals:
        return None
    return Growth(None, left / length, (arrivals - left) / length)


def growth_in(trial: Trial) -> Growth | None:
    """How much the backlog of a trial grew; None for a closed load as well."""
    load, wall = trial.open_load, trial.wall_seconds
    return None if load is None or wall is None else growth_of(load, trial.over_time, wall)


def _backlog_of(load: OpenLoad, over_time: Sequence[Slice], wall: float) -> list[tuple[float, int]]:
    """Seconds and requests: at the end of each slice of the trial, how many were due and had not ended."""
    planned = accumulate(part.planned for part in load.over_time)
    ended = accumulate(part.requests for part in over_time)
    ends = [*(part.at for part in load.over_time[1:]), wall]
    return [(end, due - done) for end, due, done in zip(ends, planned, ended, strict=False)]


def _moments(load: OpenLoad, over_time: Sequence[Slice], wall: float) -> list[_Moment]:
    rows = zip(_backlog_of(load, over_time, wall), load.over_time, over_time, strict=False)
    return [
        _Moment(end, count - (part.delayed or 0), part.planned, answered.requests)
        for (end, count), part, answered in rows
    ]


def _mean_excess(moments: Sequence[_Moment]) -> float:
    return mean(one.excess for one in moments)
