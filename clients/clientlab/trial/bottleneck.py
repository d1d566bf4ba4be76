"""The verdict of a trial: what limited it, from the shares of all parts.

A trial keeps `concurrency` requests in flight. The rate of a closed loop is limited by
the part that is full: a CPU, the upstream's threads, the client's connections, a lock,
the machine; or by the requests in flight themselves, each of which passes through all
parts in turn (utilisation law and Little's law: Denning and Buzen, "The operational
analysis of queueing network models", 1978).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from statistics import mean

from clientlab import units
from clientlab.trial.result import Bound, RequestFigures, Shares

# Share of its cores' time from which a part counts as the bottleneck; as do threads and
# connections.
SATURATED = 0.7
# Share of the wall time from which requested delays and the link's round trips count as
# the bottleneck.
WAITED = 0.5

# Share of all cores' time from which the machine is full. Parts that wake each other
# leave gaps: client, proxy and upstream that competed for two cores kept them busy for
# 89 to 93 % of the time. So do the slots of a queue.
FULL = 0.85

# In a shorter trial, shares of the machine and of servers with a coarse clock are
# unknown.
SHORT_SECONDS = 0.2
# Share of the planned rate from which a strategy kept to its schedule, if it dropped
# nothing.
KEPT = 0.99

# Share of requests that ended at least their own delay after the one before: served in
# turn.
_IN_TURN = 0.8
# Share from which most requests wait, or a server is busy enough to have a queue.
_MOST = 0.5
# Share of waiting requests at which a single one behind the client is hardly a
# coincidence.
_ALMOST_ALL = 0.75
# Requests worked on at once behind a lock, at most: the next begins while the last
# ends.
_ONE_AT_A_TIME = 1.15


def find_bottleneck(
    shares: Shares, concurrency: int, *, threads: bool = False
) -> Bound:
    """Return what limited a trial with this many requests in flight.

    `threads`: each has a thread of the client.

    A full part wins; otherwise the first rule that holds. If none does, it is
    ``mixed``: the parts wait for each other.
    """
    alone, waiting, left = (
        concurrency == 1,
        shares.waiting or 0.0,
        shares.unaccounted or 0.0,
    )
    servers_are_idle = max(shares.upstream or 0.0, shares.proxy or 0.0) < _MOST
    # The upstream's delays came one after the other, which no lack of CPU time brings
    # about. By their sum alone, requests that stall for as long as others work would
    # look the same, so their ends must show it.
    delays_in_turn = (
        (shares.in_turn or 0.0) >= _IN_TURN
        and waiting >= _ALMOST_ALL
        and WAITED <= (shares.latency or 0.0) * concurrency <= _ONE_AT_A_TIME
    )
    # Most threads wait in the client, and were seen blocked on a lock. Then one request
    # at a time is worked on, or no server is busy. An event loop may also work in turn
    # with the upstream's, without a lock.
    one_at_a_time = SATURATED <= (shares.chain or 0.0) * concurrency <= _ONE_AT_A_TIME
    is_locked = min(waiting, shares.locks or 0.0) >= _MOST and (
        one_at_a_time or servers_are_idle
    )
    # A part that is half busy may have a queue that explains the rest.
    idle = alone or (shares.client < _MOST and servers_are_idle)
    rules: tuple[tuple[Bound, bool], ...] = (
        ("chain", (shares.chain or 0.0) >= SATURATED),
        ("client-lock", delays_in_turn),
        ("machine", (shares.machine or 0.0) >= FULL),
        ("outside", (shares.outside or 0.0) >= _MOST and shares.client < _MOST),
        ("chain", alone and left < _MOST),
        ("client-lock", threads and is_locked),
        ("unaccounted", idle and left >= _MOST),
    )
    full = _find_full_part(shares)
    return (
        full
        if full is not None
        else next((bound for bound, holds in rules if holds), "mixed")
    )


def _find_full_part(shares: Shares) -> Bound | None:
    """Return the fullest part, or else queue; None if none is full.

    A queue whose slots are almost always taken outranks delays: they only keep its
    requests there.
    """
    parts: list[tuple[Bound, float | None, float]] = [
        ("client-bound", shares.client, SATURATED),
        ("proxy-bound", shares.proxy, SATURATED),
        ("upstream-bound", shares.upstream, SATURATED),
        ("link-bound", shares.link, SATURATED),
        ("bandwidth-bound", shares.bandwidth, SATURATED),
        ("latency-bound", shares.latency, WAITED),
        ("start-up", shares.startup, WAITED),
    ]
    fullest = _find_fullest(parts)
    if fullest is not None and fullest != "latency-bound":
        return fullest
    limit = SATURATED if fullest is None else FULL
    queues: list[tuple[Bound, float | None, float]] = [
        ("client-connections", shares.connections, limit),
        ("client-streams", shares.streams, limit),
        ("upstream-threads", shares.upstream_threads, limit),
    ]
    return _find_fullest(queues) or fullest


def _find_fullest(parts: Iterable[tuple[Bound, float | None, float]]) -> Bound | None:
    """Return the part with the largest share, of those that reach their limit."""
    full = [
        (share, bound)
        for bound, share, limit in parts
        if share is not None and share >= limit
    ]
    return max(full, key=itemgetter(0))[1] if full else None


def judge_schedule(figures: RequestFigures, concurrency: int) -> Bound | None:
    """Return the verdict of an open load, or None for a closed one.

    Its rate is limited by the schedule, unless the strategy fell behind.
    """
    load = figures.open_load
    if load is None:
        return None
    # Requests beyond the trial's concurrency that had not ended at the schedule's end
    # waited inside the client.
    queued = (load.in_flight_at_end or 0) > concurrency
    if (
        load.dropped
        or queued
        or load.achieved_per_second < KEPT * load.planned_per_second
    ):
        return "behind-schedule"
    return "on-schedule" if describe_growth(figures) is None else "overloaded"


def describe_growth(figures: RequestFigures) -> str | None:
    """Return how the backlog of an open load grew, in a phrase; None if it did not
    grow, and for a closed load.

    The backlog grew if its mean over the last quarter of the schedule is above that
    over the second quarter by more than 1 % of the requests that arrive in half the
    schedule, and by more than 3 requests. The first quarter, in which connections are
    opened, does not count. Two things let a backlog rise without an overload, and are
    left out: requests that their requested delay, or the link's round trip, alone keeps
    in flight; and a rate that rises itself.
    """
    load, wall = figures.open_load, figures.wall_seconds
    if load is None or wall is None:
        return None
    arrivals = sum(part.planned for part in load.over_time)
    length = (
        arrivals / load.planned_per_second * (1 + 1e-9)
        if load.planned_per_second
        else 0.0
    )
    ends = [*(part.at for part in load.over_time[1:]), wall]
    due = accumulate(part.planned for part in load.over_time)
    ended = accumulate(part.requests for part in figures.over_time)
    backlog = [
        planned - done - (part.delayed or 0)
        for part, end, planned, done in zip(
            load.over_time, ends, due, ended, strict=False
        )
        if end <= length
    ]
    if (
        len(backlog) < 4
    ):  # to work the backlog off, or to wait for stragglers, took far longer
        left = load.in_flight_at_end
        kept = (
            left is not None
            and load.achieved_per_second >= KEPT * load.planned_per_second
        )
        return (
            None
            if kept and (left or 0) < arrivals / 2
            else "the backlog grew until the schedule ended"
        )
    quarter, half = len(backlog) // 4, len(backlog) // 2
    earlier, later = (
        slice(half - quarter, half),
        slice(len(backlog) - quarter, len(backlog)),
    )
    before, after = mean(backlog[earlier]), mean(backlog[later])
    planned_before, planned_after = (
        sum(one.planned for one in load.over_time[part]) for part in (earlier, later)
    )
    faster = max(1.0, planned_after / max(1, planned_before))
    if after - max(0.0, before) * faster <= max(0.01 * arrivals / 2, 3):
        return None
    return (
        f"the backlog grew by {units.count(round(after - before))} requests in half the"
        " trial"
    )
