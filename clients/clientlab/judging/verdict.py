"""The verdict of a trial: what limited it, from the shares of all parts.

A trial keeps `concurrency` requests in flight. The rate of a closed loop is limited by the part that is full: a CPU,
the upstream's threads, the client's connections, a lock, the machine; or by the requests in flight themselves, each of
which passes through all parts in turn (utilisation law and Little's law: Denning and Buzen, "The operational analysis
of queueing network models", 1978).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clientlab.results.bottleneck import Bound

SATURATED = 0.7
"""From this share of its cores' time on, a part counts as the bottleneck; as do threads and connections."""

WAITED = 0.5
"""From this share of the wall time on, the requested delays and the link's round trips count as the bottleneck."""

FULL = 0.85
"""From this share of all cores' time on, the machine is full.

Parts that wake each other leave gaps: client, proxy and upstream that competed for two cores kept them busy for 89 to
93 % of the time. The slots of a queue leave the same gaps between two requests.
"""

SHORT_SECONDS = 0.2
"""Shares of the machine, and of servers whose clock has steps of 10 ms, are unknown in a shorter trial."""

_IN_TURN = 0.8  # share of requests that ended at least their own delay after the one before: served in turn
_MOST = 0.5  # share from which most requests wait, or a server is busy enough to have a queue
_ALMOST_ALL = 0.75  # share of waiting requests at which a single one behind the client is hardly a coincidence
_ONE_AT_A_TIME = 1.15  # requests worked on at once behind a lock, at most: the next begins while the last ends

KEPT = 0.99
"""From this share of the planned rate on, a strategy kept to the schedule of an open load, if it dropped nothing."""


@dataclass(frozen=True)
class Shares:
    """Shares of a trial's time, each between 0 and about 1; None if unknown. `BUSY_PARTS` says what each one means."""

    client: float
    proxy: float | None = None
    upstream: float | None = None
    latency: float | None = None
    upstream_threads: float | None = None
    connections: float | None = None
    machine: float | None = None
    chain: float | None = None
    waiting: float | None = None
    outside: float | None = None
    link: float | None = None
    bandwidth: float | None = None
    streams: float | None = None
    startup: float | None = None
    unaccounted: float | None = None
    locks: float | None = None
    in_turn: float | None = None


def unaccounted(
    *, chain: float | None, waiting: float | None, cpu_seconds: float, wall: float, concurrency: int
) -> float | None:
    """Return the part of the requests' time that no part of the testbed accounts for; None if it is unknown.

    A single request in flight waits for nobody, so it is what is left of the chain. Otherwise it is the time of the
    requests that wait where no server holds them, without the CPU time of the client: they may wait for each other.
    """
    if concurrency == 1:
        return None if chain is None else max(0.0, 1 - chain)
    return None if waiting is None or wall <= 0 else max(0.0, waiting - cpu_seconds / wall / concurrency)


def busy(cpu_seconds: float, wall: float, cores: float) -> float:
    """Return CPU seconds as a share of the wall time of this many cores."""
    available = wall * cores
    return cpu_seconds / available if available > 0 else 0.0  # the product may be too small for a float


def waited(delays: float, wall: float, concurrency: int) -> float:
    """Return the sum of all delays, divided by `concurrency`, as a share of the wall time."""
    return delays / concurrency / wall if wall > 0 else 0.0


def verdict(shares: Shares, concurrency: int, *, threads: bool = False) -> Bound:
    """Return what limited a trial with this many requests in flight. `threads`: each has a thread of the client.

    A full part wins. Otherwise the first rule that holds decides. It is ``mixed`` if none does: the parts wait for each
    other.
    """
    alone, waiting, left = concurrency == 1, shares.waiting or 0.0, shares.unaccounted or 0.0
    servers_are_idle = max(shares.upstream or 0.0, shares.proxy or 0.0) < _MOST
    # The upstream's delays came one after the other, which no lack of CPU time brings about. By their sum alone,
    # requests that stall for as long as others work would look the same, so their ends must show it.
    delays_in_turn = (
        (shares.in_turn or 0.0) >= _IN_TURN
        and waiting >= _ALMOST_ALL
        and WAITED <= (shares.latency or 0.0) * concurrency <= _ONE_AT_A_TIME
    )
    # Most threads wait in the client, and were seen blocked on a lock. Then one request at a time is worked on, or no
    # server is busy. An event loop may also work in turn with the upstream's, without a lock.
    one_at_a_time = SATURATED <= (shares.chain or 0.0) * concurrency <= _ONE_AT_A_TIME
    is_locked = min(waiting, shares.locks or 0.0) >= _MOST and (one_at_a_time or servers_are_idle)
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
    full: Bound | None = _full_part(shares)
    return full if full is not None else next((bound for bound, holds in rules if holds), "mixed")


def _full_part(shares: Shares) -> Bound | None:
    """Return the fullest part or else queue; None if none is full.

    A queue whose slots are almost always taken outranks delays: they only keep its requests there.
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
    queues: list[tuple[Bound, float | None]] = [
        ("client-connections", shares.connections),
        ("client-streams", shares.streams),
        ("upstream-threads", shares.upstream_threads),
    ]
    fullest = _fullest(parts)
    if fullest is None or fullest == "latency-bound":
        enough = SATURATED if fullest is None else FULL
        return _fullest((bound, share, enough) for bound, share in queues) or fullest
    return fullest


def _fullest(parts: Iterable[tuple[Bound, float | None, float]]) -> Bound | None:
    """Return the part with the largest share, of those that reach their limit."""
    full = [(share, bound) for bound, share, limit in parts if share is not None and share >= limit]
    return max(full, key=lambda one: one[0])[1] if full else None


def of_schedule(
    *,
    planned_per_second: float,
    achieved_per_second: float,
    dropped: int,
    queued: int = 0,
    grows: bool = False,
    **_others: object,
) -> Bound:
    """Return the verdict of an open load. Its rate is limited by the schedule, unless the strategy fell behind.

    `queued`: requests beyond the trial's concurrency that had not ended at the schedule's end: they waited inside the
    client. `grows`: whether the backlog grew within the limit of requests in flight.
    """
    if dropped or queued or achieved_per_second < KEPT * planned_per_second:
        return "behind-schedule"
    return "overloaded" if grows else "on-schedule"
