"""Whether the backlog of an open load grew: the test of an overload.

The backlog is that of a queue: requests that were due and had not ended, in flight or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import mean

from clientlab import units
from clientlab.judging.verdict import KEPT
from clientlab.results.trial import OpenLoad, Slice, Trial


def growth_of(load: OpenLoad, over_time: Sequence[Slice], wall: float) -> str | None:
    """Return how the backlog of an open load grew, in a phrase; None if it did not grow. `wall`: seconds of the trial.

    The backlog grew if its mean over the last quarter of the schedule is above that over the second quarter by more
    than 1 % of the requests that arrive in half the schedule, and by more than 3 requests. The first quarter, in which
    connections are opened, does not count. Two things let a backlog rise without an overload, and are left out:
    requests that their requested delay, or the link's round trip, alone keeps in flight; and a rate that rises itself.
    """
    arrivals = sum(part.planned for part in load.over_time)
    length = arrivals / load.planned_per_second * (1 + 1e-9) if load.planned_per_second else 0.0
    ends = [*(part.at for part in load.over_time[1:]), wall]
    due, ended = accumulate(part.planned for part in load.over_time), accumulate(part.requests for part in over_time)
    backlog = [
        planned - done - (part.delayed or 0)
        for part, end, planned, done in zip(load.over_time, ends, due, ended, strict=False)
        if end <= length
    ]
    if len(backlog) < 4:  # to work the backlog off, or to wait for stragglers, took far longer
        left = load.in_flight_at_end
        kept = left is not None and load.achieved_per_second >= KEPT * load.planned_per_second
        return None if kept and (left or 0) < arrivals / 2 else "the backlog grew until the schedule ended"
    quarter, half = len(backlog) // 4, len(backlog) // 2
    earlier, later = slice(half - quarter, half), slice(len(backlog) - quarter, len(backlog))
    before, after = mean(backlog[earlier]), mean(backlog[later])
    planned_before, planned_after = (sum(one.planned for one in load.over_time[part]) for part in (earlier, later))
    faster = max(1.0, planned_after / max(1, planned_before))
    if after - max(0.0, before) * faster <= max(0.01 * arrivals / 2, 3):
        return None
    return f"the backlog grew by {units.count(round(after - before))} requests in half the trial"


def growth_in(trial: Trial) -> str | None:
    """Return how the backlog of a trial grew, in a phrase; None if it did not, and for a closed load."""
    load, wall = trial.open_load, trial.wall_seconds
    return None if load is None or wall is None else growth_of(load, trial.over_time, wall)
