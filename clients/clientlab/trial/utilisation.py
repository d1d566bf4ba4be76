"""How busy each part was during a trial: the shares that its verdict rests on, at the
rate of the whole load.

After its duration, a closed load waits for the last responses: slots stay empty, and a
single slow request keeps the trial waiting. By the whole wall time, a client that was
full would look idle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clientlab import strategies
from clientlab.trial.bottleneck import SHORT_SECONDS
from clientlab.trial.figures import TrialRequests
from clientlab.trial.result import InFlight, Outcome, Placement, PlannedTrial, Shares
from clientlab.trial.server_counters import ServerCounters, ServerUse
from clientlab.trial.usage import cpu_usable
from clientlab.workload.requests import body_size
from clientlab.workload.workload import Workload

# Bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928).
_FIRST_WINDOW = 10 * 1460
# Requests at once on an HTTP/2 connection to the proxy: the default of Go's server.
_MOST_STREAMS = 250


@dataclass(frozen=True)
class LoadTimes:
    """What the sums over all requests of a trial are divided by, in seconds."""

    work: float
    """The time that all requests would take at the rate of the whole load.

    So a share is the demand of a request times that rate, by the utilisation law
    (Denning and Buzen 1978).
    """

    in_flight: float
    """The same for time in flight, a large part of which a straggler may have spent
    after the duration.
    """

    whole: float
    """The time in which the load was whole."""

    def outcome_at_rate(self, outcome: Outcome, servers: ServerCounters) -> Outcome:
        """Return the outcome as if all its work had been done at the rate of the whole
        load.
        """
        if self.whole == outcome.wall_seconds:
            return outcome
        found = outcome.disturbance
        if (
            found is not None and found.busy_share is not None
        ):  # other programs go on all the time
            own = (outcome.cpu_seconds + servers.cpu_seconds) / cpu_usable()
            others = max(0.0, found.busy_share - own / found.seconds)
            found = found.model_copy(
                update={"busy_share": min(1.0, others + own / self.work)}
            )
        startup = outcome.startup_seconds * self.work / self.whole
        return outcome.model_copy(
            update={
                "wall_seconds": self.work,
                "startup_seconds": startup,
                "disturbance": found,
            }
        )

    def counters_at_rate(self, servers: ServerCounters) -> ServerCounters:
        """Return the counters with the time for which each worker of the upstream held
        requests as a part of `work`.
        """
        use = servers.upstream
        if use is None or use.worker_held_seconds is None:
            return servers
        held = [
            seconds * self.work / self.in_flight for seconds in use.worker_held_seconds
        ]
        return servers.model_copy(
            update={"upstream": use.model_copy(update={"worker_held_seconds": held})}
        )


def find_shares(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    planned: PlannedTrial,
    workload: Workload,
    outcome: Outcome,
    requests: TrialRequests,
    times: LoadTimes,
    servers: ServerCounters,
    placement: Placement | None = None,
    usable: float | None = None,
) -> tuple[Shares, InFlight]:
    """Return the shares that can be known, and the mean requests in flight by Little's
    law.

    `usable`: the client's cores, if they are not those of this machine.
    """
    sent, size, opened = (
        len(requests.sent.records),
        body_size(workload),
        outcome.connections_opened,
    )
    delays = None if requests.delays is None else float(requests.delays.sum())
    link, link_seconds, bandwidth = planned.link, None, None
    if link is not None:
        # A request takes one round trip, and so does the handshake of TCP. TLS 1.3 adds
        # one to each connection. Bodies beyond the first window take more, and so do
        # those of a limited bandwidth.
        round_trips = (
            sent + (2 if planned.route == "proxy-tls" else 1) * (opened or 0)
        ) * link.rtt
        delays = (delays or 0.0) + round_trips
        carried = max(requests.received_bytes, sent * (size or 0))
        is_small = size is not None and carried <= _FIRST_WINDOW * sent
        if (
            is_small and link.bandwidth is None and opened is not None
        ):  # the link took no other time
            link_seconds = round_trips * times.in_flight / times.work
        if (
            servers.link is not None and servers.link.up_bytes is not None
        ):  # these include heads and TLS
            carried = max(servers.link.up_bytes, servers.link.down_bytes or 0)
        bandwidth = (
            None
            if link.bandwidth is None
            else carried / (link.bandwidth / 8 * times.work)
        )
    held = count_in_flight(
        requests.in_flight_seconds, times.in_flight, servers, link_seconds
    )
    at_rate = (
        times.outcome_at_rate(outcome, servers),
        delays,
        times.counters_at_rate(servers),
    )
    shares = compute_shares(planned, *at_rate, held, placement, usable)
    return (
        shares.model_copy(
            update={"bandwidth": bandwidth, "in_turn": requests.share_in_turn}
        ),
        held,
    )


def count_in_flight(
    latencies: float,
    wall: float,
    servers: ServerCounters,
    link_seconds: float | None = None,
) -> InFlight:
    """Return the mean requests in flight: the sum of their seconds over the wall time.

    `latencies`: the sum as the client timed them. `link_seconds`: that of their waits
    in the link; None if unknown.
    """

    def divide(seconds: float | None) -> float | None:
        return None if seconds is None else seconds / wall

    proxy, upstream = (
        None if use is None else divide(use.held_seconds)
        for use in (servers.proxy, servers.upstream)
    )
    return InFlight(
        client=latencies / wall,
        proxy=proxy,
        upstream=upstream,
        link=divide(link_seconds),
    )


def compute_shares(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    planned: PlannedTrial,
    outcome: Outcome,
    delays: float | None,
    servers: ServerCounters,
    held: InFlight,
    placement: Placement | None = None,
    usable: float | None = None,
) -> Shares:
    """Return the shares that can be known without the requests.

    `delays`: the sum of the requested delays and of the link's round trips, in seconds;
    None without both.
    """
    client = strategies.client_spec(strategies.find(planned.strategy).client)
    wall, many, cores = outcome.wall_seconds, planned.concurrency, cpu_usable()
    client_usable = (
        (usable or cores) if placement is None else min(cores, len(placement.client))
    )
    client_share = _divide_cpu(
        outcome.cpu_seconds, wall, count_client_cores(planned, outcome, client_usable)
    )
    if outcome.fullest_cpu_seconds is not None and outcome.gil and not client.native:
        # The other processes may wait for the fullest one.
        client_share = max(client_share, min(1.0, outcome.fullest_cpu_seconds / wall))

    # A server whose clock has coarse steps is unknown in a short trial.
    upstream, proxy, link = (
        None if use is None or (use.cpu_step_seconds and wall < SHORT_SECONDS) else use
        for use in (servers.upstream, servers.proxy, servers.link)
    )
    upstream_cpu, proxy_cpu, link_cpu = (
        0.0 if use is None else use.cpu_seconds for use in (upstream, proxy, link)
    )
    beside_upstream, beside_proxy = (
        0.0,
        0.0,
    )  # CPU seconds of servers that are pinned to the same cores
    if placement is not None:  # a link is pinned to the cores of the upstream
        together = placement.upstream == placement.proxy
        beside_upstream, beside_proxy = (
            link_cpu + proxy_cpu * together,
            (link_cpu + upstream_cpu) * together,
        )

    spent = outcome.cpu_seconds + upstream_cpu + proxy_cpu + link_cpu + (delays or 0.0)
    chain = None if upstream is None else spent / wall / many

    # Requests behind the client are in the link, the proxy and the upstream; None if
    # one of these is unknown.
    behind = held.proxy if held.proxy is not None else held.upstream
    if behind is not None and planned.link is not None:
        behind = None if held.link is None else behind + held.link
    begun = min(held.client, many)
    waiting = None if behind is None or begun <= 0 else max(0.0, 1 - behind / begun)
    working = outcome.cpu_seconds / wall
    outside = (
        max(0.0, 1 - working / begun)
        if servers.upstream is None and begun > 0
        else None
    )
    # A single request waits for nobody, so what is left of the chain is unaccounted
    # for. Several may wait for each other: those that are neither behind the client nor
    # worked on by it are.
    if many == 1:
        unaccounted = None if chain is None else max(0.0, 1 - chain)
    else:
        unaccounted = None if waiting is None else max(0.0, waiting - working / many)
    on_connections = behind
    if (
        servers.upstream is None or on_connections is None
    ):  # all but those that the client works on
        on_connections = min(
            outcome.connections_in_all, max(0.0, held.client - working)
        )

    # Connections or streams are a limit only if there are fewer of them than requests
    # in flight.
    http_2, connections, streams = client.http == "2", None, None
    each = (
        1
        if client.quirks.one_request_per_connection
        else min(client.streams or _MOST_STREAMS, _MOST_STREAMS)
    )
    places = outcome.connections_in_all * (each if http_2 else 1)
    if 0 < places < many and not http_2:
        connections = on_connections / places
    elif 0 < places < many and behind is not None and not client.quirks.uncounted:
        streams = behind / places
    machine = None if outcome.disturbance is None else outcome.disturbance.busy_share
    return Shares(
        client=client_share,
        proxy=_compute_server_share(proxy, wall, many, cores, beside_proxy),
        upstream=_compute_server_share(upstream, wall, many, cores, beside_upstream),
        link=_compute_server_share(link, wall, many, cores),
        latency=None if delays is None else delays / many / wall,
        upstream_threads=_compute_thread_share(servers.upstream, held, wall, many),
        connections=connections,
        streams=streams,
        startup=(
            _divide_cpu(outcome.startup_seconds, wall, 1.0)
            if outcome.processes > 1
            else None
        ),
        machine=machine if wall >= SHORT_SECONDS else None,
        chain=chain,
        waiting=waiting,
        unaccounted=unaccounted,
        outside=outside,
        locks=outcome.lock_waits,
    )


def count_client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Return how many of the `cores` the client can use at once.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a
    library that works outside of it, each thread or event loop uses one. A client that
    used more cores than that can evidently do so, since system calls run without the
    GIL. How many more is unknown, so it counts as full.
    """
    strategy = strategies.find(planned.strategy)
    client, executor = (
        strategies.client_spec(strategy.client),
        strategies.executor_spec(strategy.executor),
    )
    at_once = outcome.processes
    if client.native or not outcome.gil:
        at_once = (
            planned.concurrency
            if executor.threads or client.own_threads
            else outcome.callers
        )
    used = outcome.cpu_seconds / outcome.wall_seconds
    return min(max(min(at_once, planned.concurrency), used), cores)


def _divide_cpu(cpu_seconds: float, wall: float, cores: float) -> float:
    """Return CPU seconds as a share of the wall time of this many cores."""
    available = wall * cores
    return (
        cpu_seconds / available if available > 0 else 0.0
    )  # the product may be too small for a float


def _compute_server_share(
    use: ServerUse | None, wall: float, many: int, cores: float, beside: float = 0.0
) -> float | None:
    """Return a server's share of the cores that it can use: no more than its processes,
    nor than requests in flight.

    `beside`: CPU seconds of servers that are pinned to the same cores, which it cannot
    use. A worker that is full while others are idle limits the requests of its
    connections, so the fullest counts.
    """
    if use is None:
        return None
    own = cores if use.cores is None else use.cores
    if beside:
        own = max(own - beside / wall, use.cpu_seconds / wall)
    share = _divide_cpu(
        use.cpu_seconds, wall, min(own, many, use.processes or math.inf)
    )
    return max(
        share,
        *(
            _divide_cpu(one, wall, min(own, 1.0))
            for one in use.worker_cpu_seconds or [0.0]
        ),
    )


def _compute_thread_share(
    use: ServerUse | None, held: InFlight, wall: float, many: int
) -> float | None:
    """Return the share of the upstream's threads, or of the fullest worker's, that a
    request occupied.

    A worker may have requests queued while threads of another are free, because
    connections are not shared out evenly. Return None if there are enough threads.
    """
    if use is None or not use.slots or use.slots >= many or held.upstream is None:
        return None
    each = use.slots / (use.processes or 1)
    return max(
        held.upstream / use.slots,
        *(_divide_cpu(one, wall, each) for one in use.worker_held_seconds or [0.0]),
    )
