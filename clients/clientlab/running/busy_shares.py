"""The shares that a trial's verdict rests on, from its samples, CPU times, and its requests' waits in the link."""

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
from clientlab.samples.log_reader import Samples
from clientlab.workload.workload import Workload, delay_of

FIRST_WINDOW = 10 * 1460
"""Bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928)."""

_BITS = 8


@dataclass(frozen=True)
class LinkTraffic:
    """What a trial sent and received. `opened`: connections inside the clock; None where the client hides them.

    `upload_bytes`: of the bodies of requests; None if it is unknown. `carried_bytes`: that the link counted in its
    fuller direction, heads and TLS included; None if it did not count.
    """

    requests: int
    opened: int | None
    received_bytes: int
    upload_bytes: int | None
    wall_seconds: float
    carried_bytes: int | None = None

    @property
    def is_small(self) -> bool:
        """Whether all bodies are surely within TCP's first window."""
        if self.upload_bytes is None:
            return False
        return max(self.received_bytes, self.upload_bytes) <= FIRST_WINDOW * self.requests

    @property
    def largest_bytes(self) -> int:
        """Bytes in the fuller direction: those that the link counted, or else those of bodies."""
        bodies = max(self.received_bytes, self.upload_bytes or 0)
        return bodies if self.carried_bytes is None else self.carried_bytes


@dataclass(frozen=True)
class LinkWaits:
    """`seconds`: round trips, summed over requests and connections. `exact`: nothing else of the link took time.

    `bandwidth`: the bytes that the link carried over those that the bandwidth permits, in the direction that has more;
    None without a limit. Of a link that does not count them, only the bytes of bodies are known.
    """

    seconds: float
    exact: bool
    bandwidth: float | None


def carried_by(link: ServerUse | None) -> int | None:
    """The bytes that a link carried in its fuller direction; None if it did not count them."""
    return None if link is None or link.up_bytes is None else max(link.up_bytes, link.down_bytes or 0)


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
    permitted = None if link.bandwidth is None else link.bandwidth / _BITS * sent.wall_seconds
    return LinkWaits(
        seconds=trips * link.rtt,
        exact=sent.is_small and permitted is None and sent.opened is not None,
        bandwidth=None if permitted is None else sent.largest_bytes / permitted,
    )


def delays_in(workload: Workload, sent: Samples) -> float | None:
    """Seconds of the requested delays, over all requests; None without delays."""
    delay = delay_of(workload)
    return None if delay is None else sum(map(delay, sent.numbers.tolist()))


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
    of_proxy, of_upstream = _server_shares(proxy, upstream, wall, many, placement, link)
    of_servers = (one.cpu_seconds for one in (upstream, proxy, link) if one is not None)
    spent = [outcome.cpu_seconds, *of_servers, delays or 0.0]
    chain, waiting = None if upstream is None else sum(spent) / wall / many, _waiting(planned, held, many)
    left = unaccounted(chain=chain, waiting=waiting, cpu_seconds=outcome.cpu_seconds, wall=wall, concurrency=many)
    return Shares(
        client=_of_client(planned, outcome, of_client),
        proxy=of_proxy,
        upstream=of_upstream,
        latency=None if delays is None else waited(delays, wall, many),
        upstream_threads=_of_threads(servers.upstream, held, wall, many),
        connections=_of_connections(planned, outcome, held, servers),
        streams=_of_streams(planned, outcome, held),
        startup=busy(outcome.startup_seconds, wall, 1.0) if outcome.processes > 1 else None,
        machine=machine if wall >= SHORT_SECONDS else None,
        chain=chain,
        waiting=waiting,
        unaccounted=left,
        locks=outcome.lock_waits,
        outside=_outside(outcome, held, many) if servers.upstream is None else None,
        link=_server_share(link, wall, many, cores),
    )


def client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Cores that the client can use at once, of those that there are.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a library that works outside of it,
    each thread uses one, or each event loop. A client that used more cores than that can evidently do so: system calls
    run without the GIL. How many more is unknown, so it was full.
    """
    strategy = strategies.find(planned.strategy)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    at_once = outcome.processes
    if client.native or not outcome.gil:
        at_once = planned.concurrency if executor.threads or client.own_threads else outcome.callers
    used = outcome.cpu_seconds / outcome.wall_seconds
    return min(max(min(at_once, planned.concurrency), used), cores)


def _of_client(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """CPU time of all processes of the client, or of the fullest if that is more: the others may wait for it."""
    share = busy(outcome.cpu_seconds, outcome.wall_seconds, client_cores(planned, outcome, cores))
    native = strategies.client_spec(strategies.find(planned.strategy).client).native
    if outcome.fullest_cpu_seconds is None or native or not outcome.gil:
        return share
    return max(share, min(1.0, outcome.fullest_cpu_seconds / outcome.wall_seconds))


def _timed(use: ServerUse | None, wall: float) -> ServerUse | None:
    """The use of a server, unless the trial was too short for the steps of its clock."""
    return None if use is None or (use.cpu_step_seconds and wall < SHORT_SECONDS) else use


def _server_shares(  # noqa: PLR0913, PLR0917 - what shares cores with them
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

    `beside`: CPU seconds of servers that are pinned to the same cores; what they used is not there to be used. A worker
    that is full while others are idle limits the requests of its connections, so the fullest counts.
    """
    if use is None:
        return None
    own = cores if use.cores is None else use.cores
    if beside:
        own = max(own - beside / wall, use.cpu_seconds / wall)
    share = busy(use.cpu_seconds, wall, min(own, many, use.processes or math.inf))
    return max(share, *(busy(one, wall, min(own, 1.0)) for one in use.worker_cpu_seconds or [0.0]))


def _behind(planned: PlannedTrial, held: InFlight) -> float | None:
    """Requests in flight behind the client: in link, proxy and upstream. None where one of them is unknown."""
    found = held.proxy if held.proxy is not None else held.upstream
    if found is None or (planned.link is not None and held.link is None):
        return None
    return found + (held.link or 0.0)


def _of_threads(use: ServerUse | None, held: InFlight, wall: float, many: int) -> float | None:
    """Share of the upstream's threads that a request occupied, or of the fullest worker's; None if there are enough.

    Connections are not shared out evenly: a worker may have requests queued while threads of another are free.
    """
    if use is None or not use.slots or use.slots >= many or held.upstream is None:
        return None
    each = use.slots / (use.processes or 1)
    return max(held.upstream / use.slots, *(busy(one, wall, each) for one in use.worker_held_seconds or [0.0]))


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


MOST_STREAMS = 250
"""Requests at once on an HTTP/2 connection to the proxy: SETTINGS_MAX_CONCURRENT_STREAMS of Caddy, as a test reads it.

It is the default of Go's server (`http2defaultMaxStreams` of net/http), which the lab's Caddyfile leaves as it is.
"""


def _of_streams(planned: PlannedTrial, outcome: Outcome, held: InFlight) -> float | None:
    """Share of the streams of the client's HTTP/2 connections that a request occupied.

    None over HTTP/1.1, where connections are unknown, and where there are enough streams.
    """
    spec, behind = strategies.client_spec(strategies.find(planned.strategy).client), _behind(planned, held)
    if spec.http != "2" or behind is None or spec.quirks.uncounted:
        return None
    each = 1 if spec.quirks.one_request_per_connection else min(spec.streams or MOST_STREAMS, MOST_STREAMS)
    there = each * outcome.connections_in_all
    return behind / there if 0 < there < planned.concurrency else None


def _waiting(planned: PlannedTrial, held: InFlight, many: int) -> float | None:
    behind, begun = _behind(planned, held), min(held.client, many)
    return None if behind is None or begun <= 0 else max(0.0, 1 - behind / begun)


def _outside(outcome: Outcome, held: InFlight, many: int) -> float | None:
    begun = min(held.client, many)
    return max(0.0, 1 - outcome.cpu_seconds / outcome.wall_seconds / begun) if begun > 0 else None
