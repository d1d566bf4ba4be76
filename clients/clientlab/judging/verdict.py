"""The verdict of a trial: what limited it, from the shares of all parts.

A trial keeps `concurrency` requests in flight. The rate of a closed loop is limited by the part that is full: a CPU,
the upstream's threads, the client's connections, a lock, the machine; or by the requests in flight themselves, each of
which passes through all parts in turn (utilisation law and Little's law: Denning and Buzen, "The operational analysis
of queueing network models", 1978).
"""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.results.bottleneck import Bound

SATURATED = 0.7
"""From this share of its cores' time on, a part counts as the bottleneck; the same of threads and connections."""

WAITED = 0.5
"""From this share of the wall time on, the requested delays and the link's round trips count as the bottleneck."""

FULL = 0.85
"""From this share of all cores' time on, the machine is full.

Parts that wake each other leave gaps: client, proxy and upstream that competed for two cores kept them busy for 89 to
93 % of the time.
"""

SHORT_SECONDS = 0.2
"""Shares of the machine, and of servers whose clock has steps of 10 ms, are unknown in a shorter trial."""

TAKEN = 0.85
"""From this mean share of its slots on, all slots of a queue are taken for most of a trial.

A slot is empty for the moment between two requests, as a core is: see `FULL`. Then the queue is the limit, however long
the delays of the requests that hold the slots.
"""

IN_TURN = 0.8
"""From this share on, requests that ended at least their own delay after the one before were served in turn."""

_WAITING = 0.5
"""From this share on, most requests in flight wait where no server sees them: in the client or on the network."""

_ALMOST_ALL = 0.75
"""From this share on, a single request behind the client is unlikely to be a coincidence: others are in flight."""

_IDLE = 0.5
"""A server below this share of its cores' time has no queue to speak of."""

_ONE_AT_A_TIME = 1.15
"""Up to so many requests are worked on at once behind a lock: the next one begins while the last one ends."""


KEPT = 0.99
"""From this share of the planned rate on, a strategy kept to the schedule of an open load, if it dropped nothing."""


@dataclass(frozen=True)
class Shares:
    """Shares of a trial's wall time, each between 0 and about 1; None if unknown.

    `client`, `proxy`, `upstream`, `link`: CPU seconds over the seconds of the cores that the part can use.
    `bandwidth`: the bytes that passed the link over those that its bandwidth permits, in the fuller direction.
    `latency`: the time that the requested delays, and the round trips of the link, alone would take at this
    concurrency.
    `upstream_threads`, `connections`, `streams`: requests in flight over the requests that the upstream's threads, the
    client's connections, or the streams of its HTTP/2 connections can hold; None where they can hold as many as are in
    flight.
    `startup`: the time until the last process of a pool had begun.
    `machine`: busy time of all cores that the lab may use, whoever used them.
    `chain`: the delays, the round trips and the CPU time of all parts, over the wall time and the concurrency.
    `waiting`: the part of the requests in flight that neither link, proxy nor upstream holds.
    `unaccounted`: the part of the requests' time that neither delays, nor servers, nor the client's CPU time explain.
    `locks`: threads of the client that were seen blocked on a lock, of those that were looked at.
    `in_turn`: requests that ended at least their own delay after the one before, of all.
    `outside`: the part of each request's time that is not the client's CPU time, for a server without counters.
    """

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
    """The part of the requests' time that no part of the testbed accounts for; None if it is unknown.

    A single request in flight waits for nobody, so it is what is left of the chain. Otherwise it is the time of the
    requests that wait where no server holds them, without the CPU time of the client: they may wait for each other.
    """
    if concurrency == 1:
        return None if chain is None else max(0.0, 1 - chain)
    return None if waiting is None or wall <= 0 else max(0.0, waiting - cpu_seconds / wall / concurrency)


def busy(cpu_seconds: float, wall: float, cores: float) -> float:
    """CPU seconds as a share of the wall time of so many cores."""
    there = wall * cores
    return cpu_seconds / there if there > 0 else 0.0  # also where the product is too small for a float


def waited(delays: float, wall: float, concurrency: int) -> float:
    """The sum of all delays, divided by `concurrency`, as a share of the wall time."""
    return delays / concurrency / wall if wall > 0 else 0.0


def verdict(shares: Shares, concurrency: int, *, threads: bool = False) -> Bound:
    """What limited a trial with so many requests in flight. `threads`: each has a thread of the client.

    In this order: the fullest CPU, the link's bandwidth, or the start of a pool; the upstream's threads, the client's
    connections or its streams; the delays; the requests in flight, if the parts' own time accounts for theirs; delays
    in turn; the machine; a server without counters; a single request in flight; a lock in the client; nothing that the
    lab knows. ``mixed`` if none of them was full: the parts wait for each other.
    """
    alone = concurrency == 1
    rules: tuple[tuple[Bound, bool], ...] = (
        ("chain", (shares.chain or 0.0) >= SATURATED),
        ("client-lock", _delays_in_turn(shares, concurrency)),
        ("machine", (shares.machine or 0.0) >= FULL),
        ("outside", (shares.outside or 0.0) >= _WAITING and shares.client < _IDLE),
        ("chain", alone and (shares.unaccounted or 0.0) < _WAITING),
        ("client-lock", threads and _is_locked(shares, concurrency)),
        ("unaccounted", _is_unaccounted(shares, alone=alone)),
    )
    full = _full_part(shares) or _full_queue(shares, SATURATED)
    return full if full is not None else next((bound for bound, holds in rules if holds), "mixed")


def of_schedule(
    *,
    planned_per_second: float,
    achieved_per_second: float,
    dropped: int,
    queued: int = 0,
    grows: bool = False,
    **_others: object,
) -> Bound:
    """The verdict of an open load. Its rate is limited by the schedule, unless the strategy fell behind.

    `queued`: requests beyond the trial's concurrency that the strategy had begun and not ended at the schedule's end.
    Where each request begins when it is due, and waits inside the client, only they show an overload. `grows`: whether
    the backlog grew, inside a limit of requests in flight that is large enough to hide it.
    """
    kept = not dropped and not queued and achieved_per_second >= KEPT * planned_per_second
    if not kept:
        return "behind-schedule"
    return "overloaded" if grows else "on-schedule"


def _full_part(shares: Shares) -> Bound | None:
    """The fullest part. Delays give way to a queue: a request that holds a slot is only kept there by its delay."""
    parts: tuple[tuple[Bound, float | None, float], ...] = (
        ("client-bound", shares.client, SATURATED),
        ("proxy-bound", shares.proxy, SATURATED),
        ("upstream-bound", shares.upstream, SATURATED),
        ("link-bound", shares.link, SATURATED),
        ("bandwidth-bound", shares.bandwidth, SATURATED),
        ("latency-bound", shares.latency, WAITED),
        ("start-up", shares.startup, WAITED),
    )
    fullest = _fullest(parts)
    return _full_queue(shares, TAKEN) or fullest if fullest == "latency-bound" else fullest


def _full_queue(shares: Shares, enough: float) -> Bound | None:
    return _fullest(
        (
            ("client-connections", shares.connections, enough),
            ("client-streams", shares.streams, enough),
            ("upstream-threads", shares.upstream_threads, enough),
        )
    )


def _fullest(parts: tuple[tuple[Bound, float | None, float], ...]) -> Bound | None:
    """The one with the largest share, of those that reach their limit."""
    full = [(share, bound) for bound, share, enough in parts if share is not None and share >= enough]
    return max(full, key=lambda one: one[0])[1] if full else None


def _delays_in_turn(shares: Shares, concurrency: int) -> bool:
    """Whether the upstream's delays came one after the other, which no lack of CPU time brings about.

    By their sum alone, requests that stall for as long as others work would look the same: so their ends must show it.
    """
    delayed = (shares.latency or 0.0) * concurrency
    in_turn = (shares.in_turn or 0.0) >= IN_TURN
    return in_turn and (shares.waiting or 0.0) >= _ALMOST_ALL and WAITED <= delayed <= _ONE_AT_A_TIME


def _is_locked(shares: Shares, concurrency: int) -> bool:
    """Whether most threads wait inside the client, whose CPU is not full, and were seen blocked on a lock.

    Behind a lock, one request at a time is worked on; and threads wait in the client if no server is busy. An event
    loop may also work in turn with the upstream's, without a lock.
    """
    if (shares.waiting or 0.0) < _WAITING or (shares.locks or 0.0) < _WAITING:
        return False
    one_at_a_time = SATURATED <= (shares.chain or 0.0) * concurrency <= _ONE_AT_A_TIME
    return one_at_a_time or _servers_are_idle(shares)


def _is_unaccounted(shares: Shares, *, alone: bool) -> bool:
    """Whether most of the requests' time is in no part. A part that is half busy may have a queue that explains it."""
    idle = alone or (shares.client < _IDLE and _servers_are_idle(shares))
    return idle and (shares.unaccounted or 0.0) >= _WAITING


def _servers_are_idle(shares: Shares) -> bool:
    return max(shares.upstream or 0.0, shares.proxy or 0.0) < _IDLE
