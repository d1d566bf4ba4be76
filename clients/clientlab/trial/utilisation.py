"""How busy each part was during a trial: the shares that its verdict rests on, at the rate of the whole load.

A closed load is whole until its deadline, or until the first shard has no more requests. After that, slots stay empty,
and a single slow request keeps the trial waiting: by the whole wall time, a client that was full would look idle.

To count the responses until that moment would be wrong for long requests: with delays of 1 s and a duration of 5 s,
only four of five had ended. So the rate is by Little's law: requests in flight over the mean time of a request.
Requests that are in flight at that moment are censored there, and the mean is that below the survival curve of Kaplan
and Meier ("Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53, 1958).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from clientlab import strategies
from clientlab.statistics.histogram import Floats
from clientlab.trial.bottleneck import SHORT_SECONDS
from clientlab.trial.figures import TrialRequests
from clientlab.trial.measurement import Measurement
from clientlab.trial.result import InFlight, Outcome, Placement, PlannedTrial, Shares
from clientlab.trial.samples import Flags
from clientlab.trial.server_counters import ServerCounters, ServerUse
from clientlab.trial.usage import cpu_usable
from clientlab.workload.load import is_open
from clientlab.workload.requests import body_size
from clientlab.workload.workload import Workload

_FIRST_WINDOW = 10 * 1460  # bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928)
_MOST_STREAMS = 250  # requests at once on an HTTP/2 connection to the proxy: the default of Go's server


@dataclass(frozen=True)
class LoadTimes:
    """What the sums over all requests of a trial are divided by, in seconds."""

    # What all the work would take at the rate of the whole load. So a share is the demand of a request times that rate,
    # by the utilisation law (Denning and Buzen 1978).
    work: float
    in_flight: float  # the same for time in flight, a large part of which a straggler may have spent afterwards
    load: float  # the time in which the load was whole
    tail: float | None = None  # the time after that; None if the wall time counts

    @property
    def work_in_flight(self) -> float:
        """Factor by which time in flight becomes a part of `work`."""
        return self.work / self.in_flight

    def outcome_at_rate(self, outcome: Outcome, servers: ServerCounters) -> Outcome:
        """Return the outcome as if all its work had been done at the rate of the whole load."""
        if self.tail is None:
            return outcome
        found = outcome.disturbance
        if found is not None and found.busy_share is not None:  # other programs go on all the time
            own = (outcome.cpu_seconds + servers.cpu_seconds) / cpu_usable()
            others = max(0.0, found.busy_share - own / found.seconds)
            found = found.model_copy(update={"busy_share": min(1.0, others + own / self.work)})
        startup = outcome.startup_seconds * self.work / self.load
        return outcome.model_copy(update={"wall_seconds": self.work, "startup_seconds": startup, "disturbance": found})

    def counters_at_rate(self, servers: ServerCounters) -> ServerCounters:
        """Return the counters with the time for which each worker of the upstream held requests as a part of `work`."""
        use = servers.upstream
        if use is None or use.worker_held_seconds is None:
            return servers
        held = [seconds * self.work_in_flight for seconds in use.worker_held_seconds]
        return servers.model_copy(update={"upstream": use.model_copy(update={"worker_held_seconds": held})})


def find_load_times(measurement: Measurement, workload: Workload, requests: TrialRequests) -> LoadTimes:
    """Return the times by which the sums over the requests of a trial, or of a shard, are divided.

    They are the wall time for a number of requests that is not divided, for open loads and external tools, and for
    trials that went on beyond their duration because too few requests had begun.
    """
    outcome, parts = measurement.outcome, measurement.by_shard
    whole_trial = LoadTimes(outcome.wall_seconds, outcome.wall_seconds, outcome.wall_seconds)
    if measurement.tool is not None or is_open(workload) or outcome.extended:
        return whole_trial
    if workload.requests is None:
        slices = np.array(outcome.slices or [outcome.wall_seconds])
        begins = outcome.began + np.cumsum(slices) - slices
        seconds = (workload.duration or 0.0) / len(slices)
    elif parts:
        begins = np.array([outcome.began])
        seconds = min(one.began + one.wall_seconds for one in parts) - outcome.began
    else:
        return whole_trial

    # The requests that began in the first seconds after each beginning, and whether they ended there.
    starts = measurement.samples.records["start"]
    starts = starts - begins[np.searchsorted(begins, starts, side="right") - 1]
    there = starts < seconds
    starts, took = starts[there], measurement.samples.records["seconds"][there]
    ended = starts + took <= seconds
    if seconds <= 0 or not ended.any():
        return whole_trial
    shown = np.minimum(took, seconds - starts)
    mean, in_flight, load = compute_censored_mean(shown, ended), float(shown.sum()), seconds * len(begins)
    if mean <= 0:
        return whole_trial
    return LoadTimes(
        work=load * requests.finished / (in_flight / mean),
        in_flight=load * requests.in_flight_seconds / in_flight,
        load=load,
        tail=max(0.0, outcome.wall_seconds - load),
    )


def compute_censored_mean(seconds: Floats, ended: Flags) -> float:
    """Return the mean time of requests, some of which had not `ended` when they were last seen.

    If the longest one had not ended, it counts as if it had ended then.
    """
    order = np.lexsort((~ended, seconds))  # of equal times, those that ended are first
    times, events = seconds[order], ended[order]
    left = len(times) - np.arange(len(times))
    surviving = np.cumprod(np.where(events, 1 - 1 / left, 1.0))
    return float(times[0] + (np.diff(times) * surviving[:-1]).sum())


def find_shares(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    planned: PlannedTrial, workload: Workload, outcome: Outcome, requests: TrialRequests, times: LoadTimes,
    servers: ServerCounters, placement: Placement | None = None, usable: float | None = None,
) -> tuple[Shares, InFlight]:  # fmt: skip
    """Return the shares that can be known, and the mean requests in flight by Little's law.

    `usable`: the client's cores, if they are not those of this machine.
    """
    sent, size, opened = len(requests.sent.records), body_size(workload), outcome.connections_opened
    # Delays are a part of the time in flight, and the number of round trips follows the work.
    delays = None if requests.delays is None else float(requests.delays.sum()) * times.work_in_flight
    link, link_seconds, bandwidth = planned.link, None, None
    if link is not None:
        # A request takes one round trip, and so does the handshake of TCP. TLS 1.3 adds one to each connection. Bodies
        # beyond the first window take more, and so do those of a limited bandwidth.
        round_trips = (sent + (2 if planned.route == "proxy-tls" else 1) * (opened or 0)) * link.rtt
        delays = (delays or 0.0) + round_trips
        carried = max(requests.received_bytes, sent * (size or 0))
        is_small = size is not None and carried <= _FIRST_WINDOW * sent
        if is_small and link.bandwidth is None and opened is not None:  # the link took no other time
            link_seconds = round_trips / times.work_in_flight
        if servers.link is not None and servers.link.up_bytes is not None:  # these include heads and TLS
            carried = max(servers.link.up_bytes, servers.link.down_bytes or 0)
        bandwidth = None if link.bandwidth is None else carried / (link.bandwidth / 8 * times.work)
    held = count_in_flight(requests.in_flight_seconds, times.in_flight, servers, link_seconds)
    at_rate = times.outcome_at_rate(outcome, servers), delays, times.counters_at_rate(servers)
    shares = compute_shares(planned, *at_rate, held, placement, usable)
    return shares.model_copy(update={"bandwidth": bandwidth, "in_turn": requests.share_in_turn}), held


def count_in_flight(
    latencies: float, wall: float, servers: ServerCounters, link_seconds: float | None = None
) -> InFlight:
    """Return the mean requests in flight: the sum of their seconds over the wall time.

    `latencies`: the sum as the client timed them. `link_seconds`: that of their waits in the link; None if unknown.
    """

    def divide(seconds: float | None) -> float | None:
        return None if seconds is None else seconds / wall

    proxy, upstream = (None if use is None else divide(use.held_seconds) for use in (servers.proxy, servers.upstream))
    return InFlight(client=latencies / wall, proxy=proxy, upstream=upstream, link=divide(link_seconds))


def compute_shares(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    planned: PlannedTrial, outcome: Outcome, delays: float | None, servers: ServerCounters, held: InFlight,
    placement: Placement | None = None, usable: float | None = None,
) -> Shares:  # fmt: skip
    """Return the shares that can be known without the requests.

    `delays`: the sum of the requested delays and of the link's round trips, in seconds; None without both.
    """
    client = strategies.client_spec(strategies.find(planned.strategy).client)
    wall, many, cores = outcome.wall_seconds, planned.concurrency, cpu_usable()
    client_usable = (usable or cores) if placement is None else min(cores, len(placement.client))
    client_share = _divide_cpu(outcome.cpu_seconds, wall, count_client_cores(planned, outcome, client_usable))
    if outcome.fullest_cpu_seconds is not None and outcome.gil and not client.native:
        # The other processes may wait for the fullest one.
        client_share = max(client_share, min(1.0, outcome.fullest_cpu_seconds / wall))

    # A server whose clock has coarse steps is unknown in a short trial.
    upstream, proxy, link = (
        None if use is None or (use.cpu_step_seconds and wall < SHORT_SECONDS) else use
        for use in (servers.upstream, servers.proxy, servers.link)
    )
    upstream_cpu, proxy_cpu, link_cpu = (0.0 if use is None else use.cpu_seconds for use in (upstream, proxy, link))
    beside_upstream, beside_proxy = 0.0, 0.0  # CPU seconds of servers that are pinned to the same cores
    if placement is not None:  # a link is pinned to the cores of the upstream
        together = placement.upstream == placement.proxy
        beside_upstream, beside_proxy = link_cpu + proxy_cpu * together, (link_cpu + upstream_cpu) * together

    spent = outcome.cpu_seconds + upstream_cpu + proxy_cpu + link_cpu + (delays or 0.0)
    chain = None if upstream is None else spent / wall / many

    # Requests behind the client are in the link, the proxy and the upstream; None if one of these is unknown.
    behind = held.proxy if held.proxy is not None else held.upstream
    if behind is not None and planned.link is not None:
        behind = None if held.link is None else behind + held.link
    begun = min(held.client, many)
    waiting = None if behind is None or begun <= 0 else max(0.0, 1 - behind / begun)
    working = outcome.cpu_seconds / wall
    outside = max(0.0, 1 - working / begun) if servers.upstream is None and begun > 0 else None
    # A single request waits for nobody, so what is left of the chain is unaccounted for. Several may wait for each
    # other: those that are neither behind the client nor worked on by it are.
    if many == 1:
        unaccounted = None if chain is None else max(0.0, 1 - chain)
    else:
        unaccounted = None if waiting is None else max(0.0, waiting - working / many)
    on_connections = behind
    if servers.upstream is None or on_connections is None:  # all but those that the client works on
        on_connections = min(outcome.connections_in_all, max(0.0, held.client - working))

    # Connections or streams are a limit only if there are fewer of them than requests in flight.
    http_2, connections, streams = client.http == "2", None, None
    each = 1 if client.quirks.one_request_per_connection else min(client.streams or _MOST_STREAMS, _MOST_STREAMS)
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
        connections=connections, streams=streams,
        startup=_divide_cpu(outcome.startup_seconds, wall, 1.0) if outcome.processes > 1 else None,
        machine=machine if wall >= SHORT_SECONDS else None,
        chain=chain, waiting=waiting, unaccounted=unaccounted, outside=outside, locks=outcome.lock_waits,
    )  # fmt: skip


def count_client_cores(planned: PlannedTrial, outcome: Outcome, cores: float) -> float:
    """Return how many of the `cores` the client can use at once.

    A process of CPython uses one core, because of the GIL. Without a GIL, or with a library that works outside of it,
    each thread or event loop uses one. A client that used more cores than that can evidently do so, since system calls
    run without the GIL. How many more is unknown, so it counts as full.
    """
    strategy = strategies.find(planned.strategy)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    at_once = outcome.processes
    if client.native or not outcome.gil:
        at_once = planned.concurrency if executor.threads or client.own_threads else outcome.callers
    used = outcome.cpu_seconds / outcome.wall_seconds
    return min(max(min(at_once, planned.concurrency), used), cores)


def _divide_cpu(cpu_seconds: float, wall: float, cores: float) -> float:
    """Return CPU seconds as a share of the wall time of this many cores."""
    available = wall * cores
    return cpu_seconds / available if available > 0 else 0.0  # the product may be too small for a float


def _compute_server_share(
    use: ServerUse | None, wall: float, many: int, cores: float, beside: float = 0.0
) -> float | None:
    """Return a server's share of the cores that it can use: no more than its processes, nor than requests in flight.

    `beside`: CPU seconds of servers that are pinned to the same cores, which it cannot use. A worker that is full while
    others are idle limits the requests of its connections, so the fullest counts.
    """
    if use is None:
        return None
    own = cores if use.cores is None else use.cores
    if beside:
        own = max(own - beside / wall, use.cpu_seconds / wall)
    share = _divide_cpu(use.cpu_seconds, wall, min(own, many, use.processes or math.inf))
    return max(share, *(_divide_cpu(one, wall, min(own, 1.0)) for one in use.worker_cpu_seconds or [0.0]))


def _compute_thread_share(use: ServerUse | None, held: InFlight, wall: float, many: int) -> float | None:
    """Return the share of the upstream's threads, or of the fullest worker's, that a request occupied.

    A worker may have requests queued while threads of another are free, because connections are not shared out evenly.
    Return None if there are enough threads.
    """
    if use is None or not use.slots or use.slots >= many or held.upstream is None:
        return None
    each = use.slots / (use.processes or 1)
    return max(held.upstream / use.slots, *(_divide_cpu(one, wall, each) for one in use.worker_held_seconds or [0.0]))
