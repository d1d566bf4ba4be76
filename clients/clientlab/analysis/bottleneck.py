"""The verdict of a trial: what limited it, from the shares of all parts.

A trial keeps `concurrency` requests in flight. The rate of a closed loop is limited by
the part that is full: a CPU, the upstream's threads, the client's connections, a lock,
the machine; or by the requests in flight themselves, each of which passes through all
parts in turn (utilisation law and Little's law: Denning and Buzen, "The operational
analysis of queueing network models", 1978).
"""

from __future__ import annotations

from itertools import accumulate
from statistics import mean

from clientlab import units
from clientlab.results.trial import Bound, OpenLoad, RequestFigures, Shares

# Share of its cores' time, threads or connections from which a part counts as the
# bottleneck.
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

    `threads`: each of them has a thread of the client.

    A full part wins; otherwise the first rule that holds. If none does, it is
    ``mixed``: the parts wait for each other.
    """
    full = _find_full_part(shares)
    if full is not None:
        return full
    chain = shares.chain or 0.0
    waiting = shares.waiting or 0.0
    upstream_delays = (shares.latency or 0.0) * concurrency
    client_is_idle = shares.client < _MOST
    servers_are_idle = max(shares.upstream or 0.0, shares.proxy or 0.0) < _MOST
    # A part that is half busy may have a queue that explains the rest.
    nobody_waits = concurrency == 1 or (client_is_idle and servers_are_idle)
    is_unaccounted = (shares.unaccounted or 0.0) >= _MOST
    # The upstream's delays came one after the other, which no lack of CPU time brings
    # about. By their sum alone, requests that stall for as long as others work would
    # look the same, so their ends must show it.
    delays_in_turn = (
        (shares.in_turn or 0.0) >= _IN_TURN
        and waiting >= _ALMOST_ALL
        and WAITED <= upstream_delays <= _ONE_AT_A_TIME
    )
    # Most threads wait in the client, and were seen blocked on a lock. Then one request
    # at a time is worked on, or no server is busy. An event loop may also work in turn
    # with the upstream's, without a lock.
    one_at_a_time = SATURATED <= chain * concurrency <= _ONE_AT_A_TIME
    most_are_blocked = min(waiting, shares.locks or 0.0) >= _MOST
    is_locked = most_are_blocked and (one_at_a_time or servers_are_idle)
    rules: tuple[tuple[Bound, bool], ...] = (
        ("chain", chain >= SATURATED),
        ("client-lock", delays_in_turn),
        ("machine", (shares.machine or 0.0) >= FULL),
        ("outside", client_is_idle and (shares.outside or 0.0) >= _MOST),
        ("chain", concurrency == 1 and not is_unaccounted),
        ("client-lock", threads and is_locked),
        ("unaccounted", nobody_waits and is_unaccounted),
    )
    return next((bound for bound, holds in rules if holds), "mixed")


def _find_full_part(shares: Shares) -> Bound | None:
    """Return the fullest part, or else queue; None if none is full.

    A queue whose slots are almost always taken outranks delays: they only keep its
    requests there. Delays are not what most requests wait for if the client holds them
    back: then they have not reached the upstream.
    """
    is_held_back = (shares.waiting or 0.0) > _MOST
    latency = None if is_held_back else shares.latency
    fullest = _find_fullest(
        ("client-bound", shares.client, SATURATED),
        ("proxy-bound", shares.proxy, SATURATED),
        ("upstream-bound", shares.upstream, SATURATED),
        ("link-bound", shares.link, SATURATED),
        ("bandwidth-bound", shares.bandwidth, SATURATED),
        ("latency-bound", latency, WAITED),
        ("start-up", shares.startup, WAITED),
    )
    if fullest is not None and fullest != "latency-bound":
        return fullest
    limit = SATURATED if fullest is None else FULL
    queue = _find_fullest(
        ("client-connections", shares.connections, limit),
        ("client-streams", shares.streams, limit),
        ("upstream-threads", shares.upstream_threads, limit),
    )
    return queue or fullest


def _find_fullest(*parts: tuple[Bound, float | None, float]) -> Bound | None:
    """Return the part with the largest share, of those that reach their limit."""
    fullest = None
    largest = 0.0
    for bound, share, limit in parts:
        if share is not None and share >= limit and share > largest:
            fullest = bound
            largest = share
    return fullest


def judge_schedule(
    figures: RequestFigures, wall: float, concurrency: int
) -> Bound | None:
    """Return the verdict of an open load of `wall` seconds, or None for a closed one.

    Its rate is limited by the schedule, unless the strategy fell behind.
    """
    load = figures.open_load
    if load is None:
        return None
    # Requests beyond the trial's concurrency that had not ended at the schedule's end
    # waited inside the client.
    has_queue = (load.in_flight_at_end or 0) > concurrency
    if load.dropped or has_queue or not _kept_its_rate(load):
        return "behind-schedule"
    return "on-schedule" if describe_growth(figures, wall) is None else "overloaded"


def _kept_its_rate(load: OpenLoad) -> bool:
    return load.achieved_per_second >= KEPT * load.planned_per_second


def describe_growth(figures: RequestFigures, wall: float) -> str | None:
    """Describe how the backlog of an open load of `wall` seconds grew, in a phrase.

    Return None if it did not grow, and for a closed load.

    The backlog grew if its mean over the last quarter of the schedule is above that
    over the second quarter by more than 1 % of the requests that arrive in half the
    schedule, and by more than 3 requests. The first quarter, in which connections are
    opened, does not count. Two things let a backlog rise without an overload, and are
    left out: requests that their requested delay, or the link's round trip, alone keeps
    in flight; and a rate that rises itself.
    """
    load = figures.open_load
    if load is None or not wall:
        return None
    arrivals = sum(part.planned for part in load.over_time)
    backlogs = _compute_backlogs(load, figures, wall, arrivals)
    count = len(backlogs)
    if count < 4:
        # Working the backlog off, or waiting for stragglers, took far longer.
        left = load.in_flight_at_end
        if left is not None and left < arrivals / 2 and _kept_its_rate(load):
            return None
        return "the backlog grew until the schedule ended"
    earlier = slice(count // 2 - count // 4, count // 2)
    later = slice(count - count // 4, count)
    before = mean(backlogs[earlier])
    after = mean(backlogs[later])
    planned_before = sum(part.planned for part in load.over_time[earlier])
    planned_after = sum(part.planned for part in load.over_time[later])
    rise_of_rate = max(1.0, planned_after / max(1, planned_before))
    if after - max(0.0, before) * rise_of_rate <= max(0.01 * arrivals / 2, 3):
        return None
    growth = units.count(round(after - before))
    return f"the backlog grew by {growth} requests in half the trial"


def _compute_backlogs(
    load: OpenLoad, figures: RequestFigures, wall: float, arrivals: int
) -> list[int]:
    """Return the backlog at the end of each slice of the schedule."""
    schedule_seconds = 0.0
    if load.planned_per_second:
        schedule_seconds = arrivals / load.planned_per_second * (1 + 1e-9)
    ends = [*(part.at for part in load.over_time[1:]), wall]
    due = accumulate(part.planned for part in load.over_time)
    ended = accumulate(part.requests for part in figures.over_time)
    rows = zip(load.over_time, ends, due, ended, strict=False)
    return [
        planned - done - (part.delayed or 0)
        for part, end, planned, done in rows
        if end <= schedule_seconds
    ]
