"""A trial and its figures, as the run document holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count
from pydantic import PositiveFloat as Positive

from clientlab import strategies
from clientlab.results.server_counters import ServerCounters
from clientlab.statistics.histogram import check_histogram
from clientlab.strategies import ClientSpec, ExecutorSpec
from clientlab.validation import DocumentPart, MeasuredPart
from clientlab.workload.values import Link

Seconds = float

Time = str  # UTC, ISO 8601

# The schedule of as many rounds is still made in a moment.
MOST_ROUNDS_OF_A_RUN = 100_000
MOST_SLICES = 10_000
MOST_PATHS = 10


class Quantiles(MeasuredPart):
    """Seconds over all requests of a trial.

    A failed request ranks after every successful one (`compute_quantiles`).
    """

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Seconds | None = None  # seconds; unknown with fewer than 1,000 requests
    max: Seconds
    # those that are lower bounds, because they fall on failed requests
    at_least: list[Literal["mean", "p50", "p90", "p95", "p99", "p999", "max"]]


class Histogram(MeasuredPart):
    """Latencies as an HDR histogram (V2, compressed, base64).

    It has 1 to 3.6e12 units, and three significant digits.
    """

    unit_seconds: Annotated[float, Field(ge=1e-12, le=1)] = 1e-9
    encoded: Annotated[str, AfterValidator(check_histogram)]


class Window(MeasuredPart):
    """The steady part of a slice: after its first wave, and before its last one.

    The slots fill in the first wave. A wave is the time in which as many requests end
    as there are slots. Sums are in seconds. A slice that is too short has no cycles.
    """

    slots: Count
    """Requests in flight at once."""

    wave_seconds: NotNegative | None = None
    """Length of the first wave after all slots had a request.

    None: the slice ended before it.
    """

    cycles: Count = 0
    """Requests that began in the window."""

    cycle_seconds: NotNegative = 0.0
    """Sum over the cycles.

    Each lasts from the end of the request before in the same slot to its own end.
    """

    ended: NotNegative = 0.0
    """Requests that ended in the window; those near its borders count in part."""

    seconds: NotNegative = 0.0
    """Time in which they ended."""

    early: NotNegative = 0.0
    """Requests that ended in the first half.

    They weigh the less, the further they are from its middle.
    """

    late: NotNegative = 0.0
    """The same for the second half."""

    @property
    def rate(self) -> float | None:
        """Requests per second, or None if the slice was too short."""
        return rate_of([self])


class Slice(MeasuredPart):
    """A part of the trial's wall time: requests that ended in it."""

    at: Seconds  # from the trial's beginning
    requests: Count
    errors: Count
    p99: Seconds | None = None  # None if it falls on a failed request


class PathFigures(MeasuredPart):
    """The recorded requests of a trial with one path, which has no query."""

    path: str
    requests: Count
    errors: Count
    p50: Seconds | None = None  # of the latency; None if it falls on a failed request
    p99: Seconds | None = None


class LoadSlice(MeasuredPart):
    """A part of the wall time of an open load."""

    at: Seconds  # from the trial's beginning
    planned: Count  # requests whose planned start is in it
    # requests that their delay or the link's round trip alone would keep in flight at
    # its end; None: unknown
    delayed: Count | None = None


class OpenLoad(MeasuredPart):
    """How a trial kept to the schedule of its open load."""

    planned_per_second: NotNegative  # requests over the schedule's length
    # Requests sent over the schedule's length, or until the last was sent.
    achieved_per_second: NotNegative
    lateness_seconds: Quantiles | None
    """From planned to real start, of all requests; None: none was sent."""

    sent_seconds: Quantiles | None
    """From the real start, of the requests that were sent; None: none succeeded."""

    dropped: Count  # not sent, because they were too late; errors of that kind
    most_backlog: Count  # the most requests that were due and not sent at a moment
    most_in_flight: Count  # the most requests sent and not answered at a moment
    in_flight_at_end: Count | None = None
    """Requests sent and not answered when the schedule ended; None: not counted."""

    over_time: list[LoadSlice] = []


class HighestRate(MeasuredPart):
    """The result of a search for the highest rate, in requests per second."""

    held: Positive  # highest rate that trials held
    not_held: Positive  # lowest rate above it that trials did not hold

    @property
    def middle(self) -> float:
        """The rate between both, on the logarithmic scale of the search."""
        return math.sqrt(self.held * self.not_held)


class ClockOffset(MeasuredPart):
    """The lab's clock minus that of a worker's machine.

    It comes from round trips (as in NTP, RFC 5905).
    """

    seconds: Seconds
    error_seconds: Seconds  # half of the shortest round trip: no offset is further off


class StreamFigures(MeasuredPart):
    """What the successful streams of a trial did.

    Each quantile is over all streams, or over all of their events.
    """

    events: Count
    first_event_seconds: Quantiles | None
    """From the start of the request, which is the planned one in an open load."""

    gap_seconds: Quantiles | None = None
    """Between two events of a stream, when they arrived."""

    lag_seconds: Quantiles | None = None
    """From the server's write to the arrival of an event."""

    write_error_seconds: Quantiles | None = None
    """From the planned moment of an event until the server wrote it."""

    together_share: NotNegative | None = None
    """Share of the later events that had been written when the last one arrived."""


class RequestFigures(MeasuredPart):
    """What the requests of a trial, or of one of its shards, did.

    The warm-up does not count.
    """

    requests: Count = 0  # finished, errors included
    errors: dict[str, Count] = {}  # kind to count
    error_examples: dict[str, str] = {}
    requests_per_second: NotNegative | None = None
    """Successful requests; with windows, only those in a window."""

    windows: list[Window] = []
    """Of each slice of a closed load with a duration and warm connections."""

    long_seconds: Seconds | None = None
    """Requests that took longer hold a twentieth of the time in flight."""

    delay_seconds: Seconds | None = None
    """Mean delay that the requests asked for; None without delays."""

    tail_seconds: Seconds | None = None
    """From the end of the duration to the last response, summed over slices."""

    latency_seconds: Quantiles | None = None
    """In an open load: from the planned start of each request."""

    open_load: OpenLoad | None = None
    """None: a closed load, or a trial that has a highest rate."""

    call_late_seconds: NotNegative | None = None
    """By which the longest call was over its limit; None without `call_timeout`."""

    elapsed_seconds_sum: Seconds | None = None
    """The library's own measure, over successful requests."""

    first_byte_seconds: Quantiles | None = None
    """To the first byte of the body, or to the end without one."""

    # latency minus the requested delay and one round trip of the link; None if
    # waits_for_connection, or without both
    overhead_seconds: Quantiles | None = None
    stream: StreamFigures | None = None
    waits_for_connection: bool | None = None
    """Whether latencies include the wait for a free connection of the pool."""

    bytes_received: Count | None = None  # of the bodies of all responses
    histogram: Histogram | None = None  # of the successful requests
    over_time: list[Slice] = []
    paths: list[PathFigures] = []  # of recorded requests: the ten most frequent
    driver: str | None = None
    """External program whose clock measured wall time and latencies."""

    kept_alive: Count | None = None
    """Requests on a connection that was kept, as the driver reports."""

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def succeeded(self) -> int:
        return self.requests - self.failed


def rate_of(windows: Iterable[Window]) -> float | None:
    """Return the requests per second in the steady parts of slices.

    Return None if no slice has one. It is the smaller of two rates. The one by cycles
    is right if a few requests take very long: each is followed to its own end. The one
    by ends is right if the client serves some slots and lets others wait.
    """
    known = [window for window in windows if window.cycles and window.cycle_seconds]
    return min(rate_by_cycles(known), rate_by_ends(known)) if known else None


def rate_by_cycles(windows: Sequence[Window]) -> float:
    """Return slots over the mean length of a cycle, in requests per second."""
    occupied = sum(window.cycle_seconds / window.slots for window in windows)
    return sum(window.cycles for window in windows) / occupied


def rate_by_ends(windows: Sequence[Window]) -> float:
    """Return the ends per second."""
    seconds = sum(window.seconds for window in windows)
    return sum(window.ended for window in windows) / seconds


class Disturbance(MeasuredPart):
    """What disturbed a trial: growth of the kernel's counters over its measured part.

    A counter that cannot be read is None.
    """

    seconds: Positive  # from the first to the second reading of the counters
    busy_share: NotNegative | None = None  # of the cores that the lab may use
    machine_cpu_seconds: NotNegative | None = None
    """Of all processes but the lab's own that reads this."""

    others_cpu_seconds: NotNegative | None = None
    """Of processes that are neither client, link, server nor the lab."""

    steal_seconds: NotNegative | None = None
    """CPU time that the hypervisor gave to others."""

    cpu_pressure_seconds: NotNegative | None = None
    """Time in which some process waited for a CPU (PSI)."""

    run_delay_seconds: NotNegative | None = None
    """Waits of the client's threads for a CPU, summed over threads."""


class Outcome(MeasuredPart):
    """What the processes of a trial, or of a shard, used in the measured part."""

    # On the monotonic clock; with shards on several machines, Unix seconds by the lab's
    # clock.
    began: Seconds
    wall_seconds: NotNegative
    """From the start of the first request to the end of the last."""

    cpu_seconds: NotNegative  # of the processes and all their children
    # CPU time of the processes after the first wave of each slice and before its
    # deadline, and the requests that began then; None: not known, as for pools of
    # processes
    steady_cpu_seconds: NotNegative | None = None
    steady_requests: Count | None = None
    # Memory at its peak, and at the end of the warm-up. RSS counts shared pages in each
    # process. PSS counts them once, and leaves the sample log out; None if the system
    # does not count it.
    peak_rss_bytes: Count | None = None
    idle_pss_bytes: Count | None = None
    peak_pss_bytes: Count | None = None
    connections_begun: Count
    connections_opened: Count | None  # None: they cannot be counted
    connections_reopened: Count | None = 0
    """Between slices, in place of those that were closed."""

    connections_in_all: Count  # also those of the warm-up that stay open
    processes: Count  # those that sent requests
    callers: Count = 1  # clients that they made
    startup_seconds: NotNegative = 0.0
    """Until the last process that sent requests had begun."""

    import_seconds: Positive | None = None
    """Of a cold trial: from the interpreter's start to the imported libraries."""

    gil: bool = True  # whether the trial's process had a GIL at its end
    fullest_cpu_seconds: NotNegative | None = None  # of the process that used most
    lock_waits: NotNegative | None = None
    """Share of the client's threads that waited for a lock; None: none was seen."""

    extended: bool | None = None
    """Whether too few requests had begun when the duration was over.

    None: no duration.
    """

    slices: tuple[NotNegative, ...] = ()  # wall seconds of each slice
    disturbance: Disturbance | None = None


Bound = Literal[
    "client-bound",
    "proxy-bound",
    "upstream-bound",
    "link-bound",
    "bandwidth-bound",
    "latency-bound",
    "client-connections",
    "client-streams",
    "client-lock",
    "upstream-threads",
    "start-up",
    "machine",
    "chain",
    "outside",
    "unaccounted",
    "mixed",
    "on-schedule",
    "behind-schedule",
    "overloaded",
]
"""What limited a trial; the last three are for open loads."""


class Shares(MeasuredPart):
    """The shares of a trial's time that its verdict rests on.

    They are between 0 and about 1; None if unknown.
    """

    # CPU time of each part, of the cores that it can use; of the fullest process or
    # worker if that is more
    client: NotNegative
    proxy: NotNegative | None = None
    upstream: NotNegative | None = None
    link: NotNegative | None = None  # of one core
    bandwidth: NotNegative | None = None
    """Bytes that passed the link, of those permitted, in the fuller direction."""

    latency: NotNegative | None = None
    """Delays and round trips of the link, of the time of the requests in flight."""

    # Requests in the upstream's threads, on the client's connections, and on the
    # streams of its HTTP/2 connections, of the places that these have; None if they
    # have as many places as requests are in flight
    upstream_threads: NotNegative | None = None
    connections: NotNegative | None = None
    streams: NotNegative | None = None
    startup: NotNegative | None = None
    """Time until the last process of a pool had begun, of the trial."""

    machine: NotNegative | None = None  # busy time of all cores, whoever used them
    chain: NotNegative | None = None
    """Delays, round trips and CPU time of all parts, of the time in flight."""

    waiting: NotNegative | None = None
    """Requests in flight that were neither in the link, the proxy nor the upstream."""

    unaccounted: NotNegative | None = None
    """Time in flight that no delay, no server and no CPU time explains."""

    locks: NotNegative | None = None
    """Threads of the client that were seen blocked on a lock, of those looked at."""

    in_turn: NotNegative | None = None
    """Requests that ended at least their own delay after the one before."""

    outside: NotNegative | None = None
    """Time in flight without the client's CPU time, for a server without counters."""

    @property
    def known(self) -> dict[str, float]:
        """The shares that are known, by name."""
        return {name: share for name, share in self if share is not None}


class InFlight(MeasuredPart):
    """Mean number of requests in flight.

    By Little's law, it is the sum of their times over the wall time.
    """

    client: NotNegative  # begun by the client's clock, and not ended
    proxy: NotNegative | None = None  # read by the proxy, and not answered
    upstream: NotNegative | None = None  # read by the upstream, and not ready
    link: NotNegative | None = None
    """On the way through the link: its round trips; None: no link."""


class Verdict(MeasuredPart):
    """What limited a trial, and what that rests on."""

    bound: Bound
    shares: Shares
    in_flight: InFlight


class Recovery(MeasuredPart):
    """How an arm came back after an outage or a slow part."""

    state: str
    """As users write it: ``outage:2s..5s``."""

    end: Seconds  # of the state, from the trial's beginning
    rate_before: NotNegative  # successful calls per second

    seconds: NotNegative | None = None
    """From the end of the state until the rate was 90 % of that before; None: never."""


class Attempts(MeasuredPart):
    """The calls of a trial with faults, and their attempts as the upstream counted.

    A call is one request as the caller sees it; a client that retries makes several
    attempts for it.
    """

    calls: Count  # of which an attempt reached the upstream
    attempts: Count
    carried_out: Count  # calls whose work was done, at least once
    repeated: Count  # times the work of a call was done again
    kinds: dict[str, Count]
    """What the upstream did: ``good``, or a fault → attempts."""

    statuses: dict[str, Count]
    """Last status of each call, as the client saw it; 0: none."""

    densest_share: NotNegative | None = None
    """Share of the attempts in the densest 100 ms."""

    over_time: list[NotNegative] = []
    """Attempts in each slice of `RequestFigures.over_time`."""

    recoveries: list[Recovery] = []


class Shard(MeasuredPart):
    """One shard of a divided trial."""

    host: str  # of its worker; that of the lab without workers
    clock: ClockOffset | None = None  # None: it has the lab's clock
    concurrency: Count
    figures: RequestFigures  # without percentiles over time and histograms
    measured: Outcome


class Placement(DocumentPart):
    """The CPUs that each part of the testbed may use, as the kernel numbers them."""

    client: list[Count]
    upstream: list[Count]
    proxy: list[Count] = []  # empty: the run has no proxy

    def __str__(self) -> str:
        """Return a phrase: ``client on CPU 1, upstream and proxy on CPU 0``."""
        parts: dict[str, list[str]] = {}
        for name, cpus in self:
            if cpus:
                parts.setdefault(", ".join(map(str, cpus)), []).append(name)
        phrases = [
            f"{' and '.join(names)} on CPU {cpus}" for cpus, names in parts.items()
        ]
        return ", ".join(phrases)


class PlannedTrial(MeasuredPart):
    """A trial that has not been measured: one arm in one round of a run."""

    arm: str  # name of the arm in the experiment
    strategy: str
    upstream: str
    route: str
    workload: str
    round: Annotated[int, Field(ge=1, le=MOST_ROUNDS_OF_A_RUN)]  # from 1
    order: Count  # place in the whole run, from 0
    concurrency: Count
    environment: str | None = None  # where it runs; None: in the lab's own Python
    server: str | None = None
    """Name of the user's own server; None: it has no name, or is one of the lab's."""

    link: Link | None = None
    """Between client and route: rtt in s, bandwidth in bit/s; None: none."""

    search_rate: Positive | None = None
    """Requests per second that a trial of a search tries; None: none of a search."""

    slices: Annotated[int, Field(ge=1, le=MOST_SLICES)] = 1
    """Most parts of its measured time, between which other trials are measured."""

    least_waves: Count = 0  # that each slice lasts; 0: there are exactly as many slices

    @property
    def client_spec(self) -> ClientSpec:
        return strategies.client_spec(strategies.find(self.strategy).client)

    @property
    def executor_spec(self) -> ExecutorSpec:
        return strategies.executor_spec(strategies.find(self.strategy).executor)

    @property
    def target(self) -> tuple[str, str]:
        """Upstream, or named server, and route: what testbeds call by these names."""
        return self.server or self.upstream, self.route

    @property
    def way(self) -> tuple[str, ...]:
        """Upstream and route, and the link if there is one."""
        way = self.upstream, self.route
        return way if self.link is None else (*way, f"link of {self.link}")


class Trial(MeasuredPart):
    """One strategy doing one workload once, in a fresh process.

    The warm-up is left out of every figure.
    """

    planned: PlannedTrial

    status: Literal["done", "failed", "lost"]
    """Lost: its worker vanished, or the run stopped during it."""

    reason: str | None = None  # why the trial is not done
    partial: Literal[True] | None = None
    """Ended early: the figures of the requests that had finished count nowhere."""

    started: Time
    deadline_seconds: Seconds | None = None
    """From the start of its process until it would have failed."""

    figures: RequestFigures = RequestFigures()
    measured: Outcome | None = None  # None: the trial did not end

    servers: ServerCounters = ServerCounters()
    """Growth of their counters during the trial."""

    attempts: Attempts | None = None
    """None: the workload has no faults, or the trial did not end."""

    highest_rate: HighestRate | None = None
    """Result of the search of this round, of which this trial held the rate."""

    shards: list[Shard] = []  # the parts of a divided trial
    verdict: Verdict | None = None

    @property
    def bound(self) -> Bound | None:
        """What limited the trial; None if it has no verdict."""
        return None if self.verdict is None else self.verdict.bound

    @property
    def wall_seconds(self) -> float:
        """The wall time of its measured part; 0 if it did not end."""
        return 0.0 if self.measured is None else self.measured.wall_seconds

    @property
    def has_spoiling_errors(self) -> bool:
        """Whether requests failed although the workload asks for no faults."""
        return bool(self.figures.errors) and self.attempts is None

    @property
    def is_cold(self) -> bool:
        """Whether it began with the start of the interpreter."""
        return self.measured is not None and self.measured.import_seconds is not None

    @property
    def start_spread(self) -> float | None:
        """Seconds from the start of the first shard to that of the last.

        None: the trial is not divided.
        """
        began = [shard.measured.began for shard in self.shards]
        return max(began) - min(began) if began else None


def utc_now() -> str:
    """Return the present time as `Trial.started` holds it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def format_time(time: str) -> str:
    """Return a `Time` as reports show it: to the second, in UTC."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
