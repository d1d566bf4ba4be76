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
    shares = Utilisation(
        planned, outcome, servers, in_flight, times, delays, placement, usable
    ).compute_shares()
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


@dataclass(frozen=True)
class Utilisation:
    """What the shares of a trial are computed from, without its requests."""

    planned: PlannedTrial
    outcome: Outcome
    servers: ServerCounters
    held: InFlight
    times: LoadTimes

    delays: float | None = None
    """Summed seconds of requested delays and of round trips; None without both."""

    placement: Placement | None = None

    usable: float | None = None
    """The client's cores, if they are not those of this machine."""

    def compute_shares(self) -> Shares:
        """Return the shares that can be known."""
        work = self.times.work
        concurrency = self.planned.concurrency
        uses = self._find_known_uses()
        cpu = {name: use.cpu_seconds for name, use in uses.items()}
        beside = _find_cpu_beside(cpu, self.placement)
        of_servers = {
            name: self._compute_server_share(use, beside.get(name, 0.0))
            for name, use in uses.items()
        }
        latency = None
        if self.delays is not None:
            latency = self.delays / concurrency / work
        chain = None
        if "upstream" in uses:
            spent = sum([self.outcome.cpu_seconds, *cpu.values(), self.delays or 0.0])
            chain = spent / work / concurrency
        startup = None
        if self.outcome.processes > 1:
            startup = self.outcome.startup_seconds / self.times.whole
        return Shares(
            client=self._compute_client_share(),
            **of_servers,
            **self._compute_waits(chain),
            **self._compute_queue_share(),
            latency=latency,
            upstream_threads=self._compute_thread_share(),
            startup=startup,
            machine=self._compute_machine_share(),
            chain=chain,
            locks=self.outcome.lock_waits,
        )

    @property
    def _is_long(self) -> bool:
        return self.times.work >= SHORT_SECONDS

    @property
    def _working(self) -> float:
        """Mean cores that the client used."""
        return self.outcome.cpu_seconds / self.times.work

    def _find_known_uses(self) -> dict[str, ServerUse]:
        """Return the servers' use of CPUs.

        A server whose clock has coarse steps is unknown in a short trial.
        """
        return {
            name: use
            for name, use in self.servers
            if use is not None and (self._is_long or not use.cpu_step_seconds)
        }

    def _compute_machine_share(self) -> float | None:
        """Return the busy share of all cores, had the load been whole all the time."""
        disturbance = self.outcome.disturbance
        if not self._is_long or disturbance is None or disturbance.busy_share is None:
            return None
        if self.times.whole == self.outcome.wall_seconds:
            return disturbance.busy_share
        # Other programs go on all the time.
        used = self.outcome.cpu_seconds + self.servers.cpu_seconds
        own = used / cpu_usable()
        others = max(0.0, disturbance.busy_share - own / disturbance.seconds)
        return min(1.0, others + own / self.times.work)

    def _compute_waits(self, chain: float | None) -> dict[str, float | None]:
        """Return the shares of the requests in flight that nobody works on."""
        concurrency = self.planned.concurrency
        begun = min(self.held.client, concurrency)
        waiting = _compute_rest(self._count_behind(), begun)
        # A single request waits for nobody, so what is left of the chain is unaccounted
        # for. Several may wait for each other: those that are neither behind the client
        # nor worked on by it are.
        unaccounted = None
        if concurrency == 1:
            unaccounted = _compute_rest(chain, 1.0)
        elif waiting is not None:
            unaccounted = max(0.0, waiting - self._working / concurrency)
        outside = None
        if self.servers.upstream is None:
            outside = _compute_rest(self._working, begun)
        return {"waiting": waiting, "unaccounted": unaccounted, "outside": outside}

    def _count_behind(self) -> float | None:
        """Return the requests behind the client: in link, proxy and upstream.

        Return None if one of these is unknown.
        """
        behind = self.held.upstream if self.held.proxy is None else self.held.proxy
        if self.planned.link is None or behind is None:
            return behind
        return None if self.held.link is None else behind + self.held.link

    def _compute_queue_share(self) -> dict[str, float]:
        """Return the share of the connections, or of their streams, with a request.

        They are a limit only if there are fewer of them than requests in flight.
        """
        client = self.planned.client_spec
        is_http_2 = client.http == "2"
        each = 1
        if is_http_2 and not client.quirks.one_request_per_connection:
            each = min(client.streams or _MOST_STREAMS, _MOST_STREAMS)
        connections = self.outcome.connections_in_all
        places = connections * each
        if not 0 < places < self.planned.concurrency:
            return {}
        behind = self._count_behind()
        if is_http_2:
            if behind is None or client.quirks.uncounted:
                return {}
            return {"streams": behind / places}
        if self.servers.upstream is None or behind is None:
            # All but those that the client works on.
            behind = min(connections, max(0.0, self.held.client - self._working))
        return {"connections": behind / places}

    def _compute_client_share(self) -> float:
        cores = self.usable or cpu_usable()
        if self.placement is not None:
            cores = min(cpu_usable(), len(self.placement.client))
        share = self._working / self.count_client_cores(cores)
        fullest = self.outcome.fullest_cpu_seconds
        is_native = self.planned.client_spec.native
        if fullest is not None and self.outcome.gil and not is_native:
            # The other processes may wait for the fullest one.
            share = max(share, min(1.0, fullest / self.times.work))
        return share

    def count_client_cores(self, cores: float) -> float:
        """Return how many of the `cores` the client can use at once.

        A process of CPython uses one core, because of the GIL. Without a GIL, or with a
        library that works outside of it, each thread or event loop uses one. A client
        that used more cores than that can evidently do so, since system calls run
        without the GIL. How many more is unknown, so it counts as full.
        """
        client = self.planned.client_spec
        concurrency = self.planned.concurrency
        at_once = self.outcome.processes
        if client.native or not self.outcome.gil:
            has_threads = self.planned.executor_spec.threads or client.own_threads
            at_once = concurrency if has_threads else self.outcome.callers
        return min(max(min(at_once, concurrency), self._working), cores)

    def _compute_server_share(self, use: ServerUse, beside: float) -> float:
        """Return a server's share of the cores that it can use.

        They are no more than its processes, nor than requests in flight. `beside`: CPU
        seconds of servers that are pinned to the same cores, which it cannot use. A
        worker that is full while others are idle limits the requests of its
        connections, so the fullest counts.
        """
        work = self.times.work
        cores = cpu_usable() if use.cores is None else use.cores
        if beside:
            cores = max(cores - beside / work, use.cpu_seconds / work)
        at_once = min(cores, self.planned.concurrency, use.processes or math.inf)
        share = _divide_cpu(use.cpu_seconds, work, at_once)
        fullest = max(use.worker_cpu_seconds or [0.0])
        return max(share, _divide_cpu(fullest, work, min(cores, 1.0)))

    def _compute_thread_share(self) -> float | None:
        """Return the share of the upstream's threads that a request occupied.

        It is that of the fullest worker if that is more: a worker may have requests
        queued while threads of another are free, because connections are not shared out
        evenly. Return None if there are enough threads.
        """
        use = self.servers.upstream
        if use is None or not use.slots or use.slots >= self.planned.concurrency:
            return None
        if self.held.upstream is None:
            return None
        slots_of_worker = use.slots / (use.processes or 1)
        fullest = max(use.worker_held_seconds or [0.0])
        of_worker = _divide_cpu(fullest, self.times.in_flight, slots_of_worker)
        return max(self.held.upstream / use.slots, of_worker)


def _compute_rest(part: float | None, whole: float) -> float | None:
    return None if part is None or whole <= 0 else max(0.0, 1 - part / whole)


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


def _divide_cpu(cpu_seconds: float, seconds: float, cores: float) -> float:
    """Return CPU seconds as a share of the time of this many cores."""
    available = seconds * cores  # may be too small for a float
    return cpu_seconds / available if available > 0 else 0.0
