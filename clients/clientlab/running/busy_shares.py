"""The shares that a trial's verdict rests on, from its samples, CPU times, and its requests' waits in the link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clientlab import strategies
from clientlab.judging.verdict import SHORT_SECONDS, Shares, busy, waited
from clientlab.measuring.measurement import Outcome
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import InFlight, PlannedTrial
from clientlab.samples.log_reader import Samples
from clientlab.workload.workload import Workload, delay_of

FIRST_WINDOW = 10 * 1460
"""Bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928)."""

_BITS = 8


@dataclass(frozen=True)
class LinkTraffic:
    """What a trial sent and received. `opened`: connections inside the clock; None where the client hides them."""

    requests: int
    opened: int | None
    received_bytes: int
    upload_bytes: int
    wall_seconds: float


@dataclass(frozen=True)
class LinkWaits:
    """`seconds`: round trips, summed over requests and connections. `exact`: nothing else of the link took time.

    `bandwidth`: bytes of bodies over those that the bandwidth permits, in the direction that has more; None without a
    limit.
    """

    seconds: float
    exact: bool
    bandwidth: float | None


def traffic_of(
    workload: Workload, sent: int, received_bytes: int, opened: int | None, wall_seconds: float
) -> LinkTraffic:
    """What a trial of the workload sent. Of the bodies of requests, only generated uploads count."""
    return LinkTraffic(sent, opened, received_bytes, sent * (workload.upload_size or 0), wall_seconds)


def link_waits(planned: PlannedTrial, sent: LinkTraffic) -> LinkWaits | None:
    """The waits of a trial; None without a link.

    A request takes one round trip, and so does the handshake of TCP. TLS adds one (version 1.3) to each connection.
    Bodies beyond the first window take more, and so do those of a limited bandwidth.
    """
    link = planned.link
    if link is None:
        return None
    handshakes = 2 if planned.route == "proxy-tls" else 1
    trips = sent.requests + handshakes * (sent.opened or 0)
    largest = max(sent.received_bytes, sent.upload_bytes)
    small = largest <= FIRST_WINDOW * sent.requests
    permitted = None if link.bandwidth is None else link.bandwidth / _BITS * sent.wall_seconds
    return LinkWaits(
        seconds=trips * link.rtt,
        exact=small and permitted is None and sent.opened is not None,
        bandwidth=None if permitted is None else largest / permitted,
    )


def delays_in(workload: Workload, sent: Samples) -> float | None:
    """Seconds of the requested delays, over all requests; None without delays."""
    delay = delay_of(workload)
    return None if delay is None else sum(map(delay, sent.numbers.tolist()))


_SLACK = 0.25
"""So much of a core a process of CPython may use beyond the one that the GIL grants.

System calls run without the GIL, beside another thread: 32 threads of requests used 1.05 to 1.06 cores.
"""


def in_flight(latencies: float, wall: float, servers: ServerCounters, waits: LinkWaits | None = None) -> InFlight:
    """Mean requests in flight, by Little's law: the sum of their times over the wall time.

    `latencies`: sum of the seconds of all requests, as the client timed them. `waits`: in the link, if there is one.
    """
    upstream, proxy = servers.upstream, servers.proxy
    return InFlight(
        client=latencies / wall,
        proxy=None if proxy is None or proxy.held_seconds is None else proxy.held_seconds / wall,
        upstream=None if upstream is None or upstream.held_seconds is None else upstream.held_seconds / wall,
        link=waits.seconds / wall if waits is not None and waits.exact else None,
    )


def shares_of(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    planned: PlannedTrial,
    outcome: Outcome,
    delays: float | None,
    servers: ServerCounters,
    held: InFlight,
    placement: Placement | None = None,
    usable: float | None = None,
) -> Shares:
    """All shares that can be known.

    `delays`: the sum of the requested delays and of the link's round trips, in seconds; None without both. `usable`:
    the client's cores, where they are not those of this machine.
    """
    wall, many, cores = outcome.wall_seconds, planned.concurrency, cpu_usable()
    of_client = (usable or cores) if placement is None else min(cores, len(placement.client))
    machine = None if outcome.disturbance is None else outcome.disturbance.busy_share
    upstream, proxy, link = (_timed(use, wall) for use in (servers.upstream, servers.proxy, servers.link))
    of_proxy, of_upstream = server_shares(proxy, upstream, wall, many, placement, link)
    of_servers = (one.cpu_seconds for one in (upstream, proxy, link) if one is not None)
    spent = [outcome.cpu_seconds, *of_servers, delays or 0.0]
    return Shares(
        client=busy(outcome.cpu_seconds, wall, client_cores(planned, outcome, of_client)),
        proxy=of_proxy,
        upstream=of_upstream,
        latency=None if delays is None else waited(delays, wall, many),
        upstream_threads=_of_threads(servers.upstream, held, many),
        connections=_of_connections(planned, outcome, held, servers),
        machine=machine if wall >= SHORT_SECONDS else None,
        chain=None if upstream is None else sum(spent) / wall / many,
        waiting=_waiting(planned, held, many),
        outside=_outside(outcome, held, many) if servers.upstream is None else None,
        link=_server_share(link, wall, many, cores),
    )


def client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Cores that the client can use at once, of those that there are.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a library that works outside of it,
    each thread uses one, or each event loop. A client that used more cores than that can evidently do so.
    """
    strategy = strategies.find(planned.strategy)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    at_once = outcome.processes
    if client.native or not outcome.gil:
        at_once = planned.concurrency if executor.threads or client.own_threads else outcome.callers
    used = math.ceil(outcome.cpu_seconds / outcome.wall_seconds - _SLACK)
    return min(max(min(at_once, planned.concurrency), used), cores)


def _timed(use: ServerUse | None, wall: float) -> ServerUse | None:
    """The use of a server, unless the trial was too short for the steps of its clock."""
    return None if use is None or (use.cpu_step_seconds and wall < SHORT_SECONDS) else use


def server_shares(  # noqa: PLR0913, PLR0917 - what shares cores with them
    proxy: ServerUse | None,
    upstream: ServerUse | None,
    wall: float,
    many: int,
    placement: Placement | None = None,
    link: ServerUse | None = None,
) -> tuple[float | None, float | None]:
    """The shares of both servers, with so many requests in flight; None for one whose use is unknown.

    A link is pinned to the cores of the upstream.
    """
    pinned = placement is not None
    together, cores = placement is not None and placement.upstream == placement.proxy, cpu_usable()
    beside = [upstream if together else None, link if together else None], [proxy if together else None, link]
    of_proxy, of_upstream = (sum(use.cpu_seconds for use in uses if use and pinned) for uses in beside)
    return _server_share(proxy, wall, many, cores, of_proxy), _server_share(upstream, wall, many, cores, of_upstream)


def _server_share(use: ServerUse | None, wall: float, many: int, cores: float, beside: float = 0.0) -> float | None:
    """A server's share of the cores that it can use: no more than its processes, nor than requests in flight.

    `beside`: CPU seconds of servers that are pinned to the same cores; what they used is not there to be used.
    """
    if use is None:
        return None
    own = cores if use.cores is None else use.cores
    if beside:
        own = max(own - beside / wall, use.cpu_seconds / wall)
    return busy(use.cpu_seconds, wall, min(own, many, use.processes or math.inf))


def _behind(planned: PlannedTrial, held: InFlight) -> float | None:
    """Requests in flight behind the client: in link, proxy and upstream. None where one of them is unknown."""
    found = held.proxy if held.proxy is not None else held.upstream
    if found is None or (planned.link is not None and held.link is None):
        return None
    return found + (held.link or 0.0)


def _of_threads(use: ServerUse | None, held: InFlight, many: int) -> float | None:
    if use is None or not use.slots or use.slots >= many or held.upstream is None:
        return None
    return held.upstream / use.slots


def _of_connections(planned: PlannedTrial, outcome: Outcome, held: InFlight, servers: ServerCounters) -> float | None:
    """Share of the client's connections that a request occupied; None where there are enough of them.

    All of a server without counters' requests are taken to be on a connection, except those in the client's CPU.
    """
    strategy = strategies.find(planned.strategy)
    there = outcome.connections_in_all
    if not 0 < there < planned.concurrency or strategies.client_spec(strategy.client).http == "2":
        return None
    behind = _behind(planned, held)
    if servers.upstream is None or behind is None:
        behind = min(there, max(0.0, held.client - outcome.cpu_seconds / outcome.wall_seconds))
    return behind / there


def _waiting(planned: PlannedTrial, held: InFlight, many: int) -> float | None:
    behind, begun = _behind(planned, held), min(held.client, many)
    return None if behind is None or begun <= 0 else max(0.0, 1 - behind / begun)


def _outside(outcome: Outcome, held: InFlight, many: int) -> float | None:
    begun = min(held.client, many)
    return max(0.0, 1 - outcome.cpu_seconds / outcome.wall_seconds / begun) if begun > 0 else None
