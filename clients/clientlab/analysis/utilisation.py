"""How busy each part was during a trial, at the rate of the whole load.

The verdict rests on these shares.
After its duration, a closed load waits for the last responses: slots stay empty, and a
single slow request keeps the trial waiting. By the whole wall time, a client that was
full would look idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from clientlab.analysis.bottleneck import SHORT_SECONDS
from clientlab.analysis.request_figures import TrialRequests
from clientlab.machine.usage import cpu_usable
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.trial import InFlight, Outcome, Placement, PlannedTrial, Shares
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
    """The same for time in flight.

    A straggler may have spent a large part of that after the duration.
    """

    whole: float
    """The time in which the load was whole."""

    def outcome_at_rate(self, outcome: Outcome, servers: ServerCounters) -> Outcome:
        """Return the outcome as if all its work had been done at the whole rate."""
        if self.whole == outcome.wall_seconds:
            return outcome
        disturbance = outcome.disturbance
        if disturbance is not None and disturbance.busy_share is not None:
            # Other programs go on all the time.
            own = (outcome.cpu_seconds + servers.cpu_seconds) / cpu_usable()
            others = max(0.0, disturbance.busy_share - own / disturbance.seconds)
            busy_share = min(1.0, others + own / self.work)
            disturbance = disturbance.updated(busy_share=busy_share)
        return outcome.updated(
            wall_seconds=self.work,
            startup_seconds=outcome.startup_seconds * self.work / self.whole,
            disturbance=disturbance,
        )

    def counters_at_rate(self, servers: ServerCounters) -> ServerCounters:
        """Return the counters with the times of the upstream's workers at that rate."""
        use = servers.upstream
        if use is None or use.worker_held_seconds is None:
            return servers
        held = [
            seconds * self.work / self.in_flight for seconds in use.worker_held_seconds
        ]
        use = use.updated(worker_held_seconds=held)
        return servers.updated(upstream=use)


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
    """Return the shares that can be known, and the mean requests in flight.

    `usable`: the client's cores, if they are not those of this machine.
    """
    delays = None if requests.delays is None else float(requests.delays.sum())
    link_seconds = None
    bandwidth = None
    link = planned.link
    if link is not None:
        sent = len(requests.sent.records)
        opened = outcome.connections_opened
        round_trips = _count_round_trips(planned.route, sent, opened or 0) * link.rtt
        delays = (delays or 0.0) + round_trips
        size = body_size(workload)
        carried = max(requests.received_bytes, sent * (size or 0))
        if link.bandwidth is not None:
            if servers.link is not None and servers.link.up_bytes is not None:
                # These include heads and TLS.
                carried = max(servers.link.up_bytes, servers.link.down_bytes or 0)
            bandwidth = carried / (link.bandwidth / 8 * times.work)
        elif (
            size is not None and opened is not None and carried <= _FIRST_WINDOW * sent
        ):
            # The link took no other time.
            link_seconds = round_trips * times.in_flight / times.work
    in_flight = count_in_flight(
        requests.in_flight_seconds, times.in_flight, servers, link_seconds
    )
    shares = compute_shares(
        planned,
        times.outcome_at_rate(outcome, servers),
        delays,
        times.counters_at_rate(servers),
        in_flight,
        placement,
        usable,
    )
    in_turn = requests.share_in_turn
    return shares.updated(bandwidth=bandwidth, in_turn=in_turn), in_flight


def _count_round_trips(route: str, requests: int, connections: int) -> int:
    """Return the round trips of requests, of which each takes one.

    So does the handshake of TCP. TLS 1.3 adds one to each connection. Bodies beyond the
    first window take more, and so do those of a limited bandwidth.
    """
    to_connect = 2 if route == "proxy-tls" else 1
    return requests + to_connect * connections


def count_in_flight(
    latencies: float,
    wall: float,
    servers: ServerCounters,
    link_seconds: float | None = None,
) -> InFlight:
    """Return the mean requests in flight, by Little's law.

    It is the sum of their seconds over the wall time. `latencies`: the sum as the
    client timed them. `link_seconds`: that of their waits in the link; None if unknown.
    """

    def divide(seconds: float | None) -> float | None:
        return None if seconds is None else seconds / wall

    proxy = servers.proxy
    upstream = servers.upstream
    return InFlight(
        client=latencies / wall,
        proxy=None if proxy is None else divide(proxy.held_seconds),
        upstream=None if upstream is None else divide(upstream.held_seconds),
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

    `delays`: summed seconds of requested delays and of round trips; None without both.
    """
    wall = outcome.wall_seconds
    concurrency = planned.concurrency
    is_long = wall >= SHORT_SECONDS
    # A server whose clock has coarse steps is unknown in a short trial.
    uses: dict[str, ServerUse] = {
        name: use
        for name, use in servers
        if use is not None and (is_long or not use.cpu_step_seconds)
    }
    cpu = {name: use.cpu_seconds for name, use in uses.items()}
    beside = _find_cpu_beside(cpu, placement)
    of_servers = {
        name: _compute_server_share(use, wall, concurrency, beside.get(name, 0.0))
        for name, use in uses.items()
    }
    chain = None
    if "upstream" in uses:
        spent = sum([outcome.cpu_seconds, *cpu.values(), delays or 0.0])
        chain = spent / wall / concurrency
    startup = _divide_cpu(outcome.startup_seconds, wall, 1.0)
    machine = None
    if is_long and outcome.disturbance is not None:
        machine = outcome.disturbance.busy_share
    threads = _compute_thread_share(servers.upstream, held, wall, concurrency)
    return Shares(
        client=_compute_client_share(planned, outcome, placement, usable),
        **of_servers,
        **_compute_waits(planned, outcome, servers, held, chain),
        **_compute_queue_share(planned, outcome, servers, held),
        latency=None if delays is None else delays / concurrency / wall,
        upstream_threads=threads,
        startup=startup if outcome.processes > 1 else None,
        machine=machine,
        chain=chain,
        locks=outcome.lock_waits,
    )


def _compute_waits(
    planned: PlannedTrial,
    outcome: Outcome,
    servers: ServerCounters,
    held: InFlight,
    chain: float | None,
) -> dict[str, float | None]:
    """Return the shares of the requests in flight that nobody works on."""
    behind = _count_behind(planned, held)
    begun = min(held.client, planned.concurrency)
    working = outcome.cpu_seconds / outcome.wall_seconds
    waiting = _compute_rest(behind, begun)
    # A single request waits for nobody, so what is left of the chain is unaccounted
    # for. Several may wait for each other: those that are neither behind the client nor
    # worked on by it are.
    unaccounted = None
    if planned.concurrency == 1:
        unaccounted = _compute_rest(chain, 1.0)
    elif waiting is not None:
        unaccounted = max(0.0, waiting - working / planned.concurrency)
    outside = None
    if servers.upstream is None:
        outside = _compute_rest(working, begun)
    return {"waiting": waiting, "unaccounted": unaccounted, "outside": outside}


def _compute_rest(part: float | None, whole: float) -> float | None:
    return None if part is None or whole <= 0 else max(0.0, 1 - part / whole)


def _count_behind(planned: PlannedTrial, held: InFlight) -> float | None:
    """Return the requests behind the client: in the link, the proxy and the upstream.

    Return None if one of these is unknown.
    """
    behind = held.upstream if held.proxy is None else held.proxy
    if planned.link is None or behind is None:
        return behind
    return None if held.link is None else behind + held.link


def _find_cpu_beside(
    cpu: Mapping[str, float], placement: Placement | None
) -> dict[str, float]:
    """Return the CPU seconds of servers that are pinned to the same cores as each."""
    if placement is None:
        return {}
    link = cpu.get("link", 0.0)  # pinned to the cores of the upstream
    if placement.upstream != placement.proxy:
        return {"upstream": link}
    return {
        "upstream": link + cpu.get("proxy", 0.0),
        "proxy": link + cpu.get("upstream", 0.0),
    }


def _compute_queue_share(
    planned: PlannedTrial, outcome: Outcome, servers: ServerCounters, held: InFlight
) -> dict[str, float]:
    """Return the share of the connections, or of their streams, with a request.

    They are a limit only if there are fewer of them than requests in flight.
    """
    client = planned.client_spec
    is_http_2 = client.http == "2"
    each = 1
    if is_http_2 and not client.quirks.one_request_per_connection:
        each = min(client.streams or _MOST_STREAMS, _MOST_STREAMS)
    places = outcome.connections_in_all * each
    if not 0 < places < planned.concurrency:
        return {}
    behind = _count_behind(planned, held)
    if is_http_2:
        if behind is None or client.quirks.uncounted:
            return {}
        return {"streams": behind / places}
    if servers.upstream is None or behind is None:
        # All but those that the client works on.
        working = outcome.cpu_seconds / outcome.wall_seconds
        behind = min(outcome.connections_in_all, max(0.0, held.client - working))
    return {"connections": behind / places}


def _compute_client_share(
    planned: PlannedTrial,
    outcome: Outcome,
    placement: Placement | None,
    usable: float | None,
) -> float:
    client = planned.client_spec
    wall = outcome.wall_seconds
    cores = usable or cpu_usable()
    if placement is not None:
        cores = min(cpu_usable(), len(placement.client))
    cores = count_client_cores(planned, outcome, cores)
    share = _divide_cpu(outcome.cpu_seconds, wall, cores)
    fullest = outcome.fullest_cpu_seconds
    if fullest is not None and outcome.gil and not client.native:
        # The other processes may wait for the fullest one.
        share = max(share, min(1.0, fullest / wall))
    return share


def count_client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Return how many of the `cores` the client can use at once.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a
    library that works outside of it, each thread or event loop uses one. A client that
    used more cores than that can evidently do so, since system calls run without the
    GIL. How many more is unknown, so it counts as full.
    """
    client = planned.client_spec
    at_once = outcome.processes
    if client.native or not outcome.gil:
        has_threads = planned.executor_spec.threads or client.own_threads
        at_once = planned.concurrency if has_threads else outcome.callers
    used = outcome.cpu_seconds / outcome.wall_seconds
    return min(max(min(at_once, planned.concurrency), used), cores)


def _divide_cpu(cpu_seconds: float, wall: float, cores: float) -> float:
    """Return CPU seconds as a share of the wall time of this many cores."""
    available = wall * cores  # may be too small for a float
    return cpu_seconds / available if available > 0 else 0.0


def _compute_server_share(
    use: ServerUse, wall: float, concurrency: int, beside: float
) -> float:
    """Return a server's share of the cores that it can use.

    They are no more than its processes, nor than requests in flight. `beside`: CPU
    seconds of servers that are pinned to the same cores, which it cannot use. A worker
    that is full while others are idle limits the requests of its connections, so the
    fullest counts.
    """
    cores = cpu_usable() if use.cores is None else use.cores
    if beside:
        cores = max(cores - beside / wall, use.cpu_seconds / wall)
    at_once = min(cores, concurrency, use.processes or math.inf)
    share = _divide_cpu(use.cpu_seconds, wall, at_once)
    fullest = max(use.worker_cpu_seconds or [0.0])
    return max(share, _divide_cpu(fullest, wall, min(cores, 1.0)))


def _compute_thread_share(
    use: ServerUse | None, held: InFlight, wall: float, concurrency: int
) -> float | None:
    """Return the share of the upstream's threads that a request occupied.

    It is that of the fullest worker if that is more: a worker may have requests queued
    while threads of another are free, because connections are not shared out evenly.
    Return None if there are enough threads.
    """
    if use is None or not use.slots or use.slots >= concurrency:
        return None
    if held.upstream is None:
        return None
    slots_of_worker = use.slots / (use.processes or 1)
    fullest = max(use.worker_held_seconds or [0.0])
    of_worker = _divide_cpu(fullest, wall, slots_of_worker)
    return max(held.upstream / use.slots, of_worker)
