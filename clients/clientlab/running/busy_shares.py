"""The shares that a trial's verdict rests on, from CPU times, counters, and its requests' waits in the link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clientlab import strategies
from clientlab.judging.verdict import SHORT_SECONDS, Shares, busy, unaccounted, waited
from clientlab.measuring.outcome import Outcome
from clientlab.results.bottleneck import InFlight
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import PlannedTrial

_FIRST_WINDOW = 10 * 1460
"""Bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928)."""

MOST_STREAMS = 250
"""Requests at once on an HTTP/2 connection to the proxy: the default of Go's server, which the Caddyfile leaves."""

_BITS = 8


@dataclass(frozen=True)
class LinkWaits:
    """The waits of a trial in its link."""

    seconds: float  # round trips, summed over requests and connections
    exact: bool  # nothing else of the link took time
    bandwidth: float | None  # bytes carried over those permitted, in the fuller direction; None: unlimited


def link_waits(  # noqa: PLR0913 - what a trial sent and received
    planned: PlannedTrial, *, requests: int, opened: int | None, received: int, uploaded: int | None, wall: float,
    use: ServerUse | None = None,
) -> LinkWaits | None:  # fmt: skip
    """Return the waits of a trial, or None without a link.

    A request takes one round trip, and so does the handshake of TCP. TLS 1.3 adds one to each connection. Bodies beyond
    the first window take more, and so do those of a limited bandwidth. `opened`: connections, `received` and
    `uploaded`: bytes of bodies; None if unknown. A link that counts its bytes (`use`) includes heads and TLS.
    """
    link = planned.link
    if link is None:
        return None
    handshakes = 2 if planned.route == "proxy-tls" else 1
    trips = requests + handshakes * (opened or 0)
    carried = max(received, uploaded or 0)
    is_small = uploaded is not None and carried <= _FIRST_WINDOW * requests
    if use is not None and use.up_bytes is not None:
        carried = max(use.up_bytes, use.down_bytes or 0)
    return LinkWaits(
        seconds=trips * link.rtt,
        exact=is_small and link.bandwidth is None and opened is not None,
        bandwidth=None if link.bandwidth is None else carried / (link.bandwidth / _BITS * wall),
    )


def in_flight(latencies: float, wall: float, servers: ServerCounters, waits: LinkWaits | None = None) -> InFlight:
    """Return the mean requests in flight, by Little's law: the sum of their times over the wall time.

    `latencies`: sum of the seconds of all requests, as the client timed them.
    """

    def held(use: ServerUse | None) -> float | None:
        return None if use is None or use.held_seconds is None else use.held_seconds / wall

    return InFlight(
        client=latencies / wall,
        proxy=held(servers.proxy),
        upstream=held(servers.upstream),
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
    """Return all shares that can be known.

    `delays`: the sum of the requested delays and of the link's round trips, in seconds; None without both. `usable`:
    the client's cores, if they are not those of this machine.
    """
    wall, many, cores = outcome.wall_seconds, planned.concurrency, cpu_usable()
    of_client = (usable or cores) if placement is None else min(cores, len(placement.client))
    machine = None if outcome.disturbance is None else outcome.disturbance.busy_share
    upstream, proxy, link = (_timed(use, wall) for use in (servers.upstream, servers.proxy, servers.link))
    of_upstream, of_proxy, of_link = (0.0 if use is None else use.cpu_seconds for use in (upstream, proxy, link))
    beside_upstream, beside_proxy = 0.0, 0.0  # CPU seconds of servers that are pinned to the same cores
    if placement is not None:  # a link is pinned to the cores of the upstream
        together = placement.upstream == placement.proxy
        beside_upstream, beside_proxy = of_link + of_proxy * together, (of_link + of_upstream) * together
    spent = outcome.cpu_seconds + of_upstream + of_proxy + of_link + (delays or 0.0)
    chain = None if upstream is None else spent / wall / many
    begun, behind = min(held.client, many), _behind(planned, held)
    waiting = None if behind is None or begun <= 0 else max(0.0, 1 - behind / begun)
    outside = None
    if servers.upstream is None and begun > 0:
        outside = max(0.0, 1 - outcome.cpu_seconds / wall / begun)
    left = unaccounted(chain=chain, waiting=waiting, cpu_seconds=outcome.cpu_seconds, wall=wall, concurrency=many)
    return Shares(
        client=_of_client(planned, outcome, of_client),
        proxy=_of_server(proxy, wall, many, cores, beside_proxy),
        upstream=_of_server(upstream, wall, many, cores, beside_upstream),
        latency=None if delays is None else waited(delays, wall, many),
        upstream_threads=_of_threads(servers.upstream, held, wall, many),
        connections=_of_connections(planned, outcome, held, behind if servers.upstream is not None else None),
        streams=_of_streams(planned, outcome, behind),
        startup=busy(outcome.startup_seconds, wall, 1.0) if outcome.processes > 1 else None,
        machine=machine if wall >= SHORT_SECONDS else None,
        chain=chain,
        waiting=waiting,
        unaccounted=left,
        locks=outcome.lock_waits,
        outside=outside,
        link=_of_server(link, wall, many, cores),
    )


def client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Return how many of the `cores` the client can use at once.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a library that works outside of it,
    each thread uses one, or each event loop. A client that used more cores than that can evidently do so, since system
    calls run without the GIL. How many more is unknown, so it was full.
    """
    strategy = strategies.find(planned.strategy)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    at_once = outcome.processes
    if client.native or not outcome.gil:
        at_once = planned.concurrency if executor.threads or client.own_threads else outcome.callers
    used = outcome.cpu_seconds / outcome.wall_seconds
    return min(max(min(at_once, planned.concurrency), used), cores)


def _of_client(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Return the share of all processes of the client, or of the fullest if that is more: others may wait for it."""
    share = busy(outcome.cpu_seconds, outcome.wall_seconds, client_cores(planned, outcome, cores))
    native = strategies.client_spec(strategies.find(planned.strategy).client).native
    if outcome.fullest_cpu_seconds is None or native or not outcome.gil:
        return share
    return max(share, min(1.0, outcome.fullest_cpu_seconds / outcome.wall_seconds))


def _timed(use: ServerUse | None, wall: float) -> ServerUse | None:
    """Return the use of a server, or None if the trial was too short for the steps of its clock."""
    return None if use is None or (use.cpu_step_seconds and wall < SHORT_SECONDS) else use


def _of_server(use: ServerUse | None, wall: float, many: int, cores: float, beside: float = 0.0) -> float | None:
    """Return a server's share of the cores that it can use: no more than its processes, nor than requests in flight.

    `beside`: CPU seconds of servers that are pinned to the same cores, which it cannot use. A worker that is full while
    others are idle limits the requests of its connections, so the fullest counts.
    """
    if use is None:
        return None
    own = cores if use.cores is None else use.cores
    if beside:
        own = max(own - beside / wall, use.cpu_seconds / wall)
    share = busy(use.cpu_seconds, wall, min(own, many, use.processes or math.inf))
    return max(share, *(busy(one, wall, min(own, 1.0)) for one in use.worker_cpu_seconds or [0.0]))


def _behind(planned: PlannedTrial, held: InFlight) -> float | None:
    """Return the requests in flight behind the client: in link, proxy and upstream. None if one of them is unknown."""
    found = held.proxy if held.proxy is not None else held.upstream
    if found is None or (planned.link is not None and held.link is None):
        return None
    return found + (held.link or 0.0)


def _of_threads(use: ServerUse | None, held: InFlight, wall: float, many: int) -> float | None:
    """Return the share of the upstream's threads, or of the fullest worker's, that a request occupied.

    Connections are not shared out evenly: a worker may have requests queued while threads of another are free. Return
    None if there are enough threads.
    """
    if use is None or not use.slots or use.slots >= many or held.upstream is None:
        return None
    each = use.slots / (use.processes or 1)
    return max(held.upstream / use.slots, *(busy(one, wall, each) for one in use.worker_held_seconds or [0.0]))


def _of_connections(planned: PlannedTrial, outcome: Outcome, held: InFlight, behind: float | None) -> float | None:
    """Return the share of the client's connections that a request occupied, or None if there are enough of them.

    If nobody counted the requests `behind` the client, all but those in its CPU are taken to be on a connection.
    """
    there = outcome.connections_in_all
    http = strategies.client_spec(strategies.find(planned.strategy).client).http
    if not 0 < there < planned.concurrency or http == "2":
        return None
    if behind is None:
        behind = min(there, max(0.0, held.client - outcome.cpu_seconds / outcome.wall_seconds))
    return behind / there


def _of_streams(planned: PlannedTrial, outcome: Outcome, behind: float | None) -> float | None:
    """Return the share of the streams of the client's HTTP/2 connections that a request occupied.

    Return None over HTTP/1.1, if connections are unknown, and if there are enough streams.
    """
    spec = strategies.client_spec(strategies.find(planned.strategy).client)
    if spec.http != "2" or behind is None or spec.quirks.uncounted:
        return None
    each = 1 if spec.quirks.one_request_per_connection else min(spec.streams or MOST_STREAMS, MOST_STREAMS)
    there = each * outcome.connections_in_all
    return behind / there if 0 < there < planned.concurrency else None
