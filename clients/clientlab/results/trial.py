"""A trial and its figures, as the run document holds them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count
from pydantic import PositiveFloat as Positive

from clientlab.analysis.histogram import checked_histogram
from clientlab.results.bottleneck import Bound, InFlight
from clientlab.results.server_counters import ServerUse
from clientlab.validation import MeasuredPart
from clientlab.workload.link import Link

Seconds = float

MOST_ROUNDS_OF_A_RUN = 100_000
"""Limit of a run document: the schedule of as many rounds is still made in a moment."""

MOST_SLICES = 10_000

Time = str
"""UTC, ISO 8601."""


class Quantiles(MeasuredPart):
    """Seconds over all requests of a trial. A failed request ranks after every successful one (`running.quantiles`)."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Seconds | None = None  # seconds; unknown with fewer than 1,000 requests
    max: Seconds
    # those that are lower bounds, because they fall on failed requests
    at_least: list[Literal["mean", "p50", "p90", "p95", "p99", "p999", "max"]]


def quantile_of(of: Quantiles | None, name: str) -> float | None:
    """Return the quantile of that name in seconds, or None if it is unknown."""
    return None if of is None else getattr(of, name)


class Histogram(MeasuredPart):
    """Latencies as an HDR histogram (V2, compressed, base64), of 1 to 3.6e12 units, three significant digits."""

    unit_seconds: Annotated[float, Field(ge=1e-12, le=1)] = 1e-9
    encoded: Annotated[str, AfterValidator(checked_histogram)]


class Slice(MeasuredPart):
    """A part of the trial's wall time: requests that ended in it."""

    at: Seconds  # from the trial's beginning
    requests: Count
    errors: Count
    p50: Seconds | None = None
    p99: Seconds | None = None


class LoadSlice(MeasuredPart):
    """A part of the wall time of an open load."""

    at: Seconds  # from the trial's beginning
    planned: Count  # requests whose planned start is in it
    sent: Count
    dropped: Count
    backlog: Count  # requests that were due and neither sent nor dropped, at its end
    # requests that their delay or the link's round trip alone would keep in flight at its end; None: unknown
    delayed: Count | None = None


class OpenLoad(MeasuredPart):
    """How a trial kept to the schedule of its open load."""

    planned_per_second: NotNegative  # requests over the schedule's length
    achieved_per_second: NotNegative  # requests sent over the schedule's length, or until the last was sent
    lateness_seconds: Quantiles | None  # from planned to real start, of all requests; None: none was sent
    sent_seconds: Quantiles | None  # from the real start, of the requests that were sent; None: none succeeded
    dropped: Count  # not sent, because they were too late; errors of that kind
    most_backlog: Count  # the most requests that were due and not sent at a moment
    most_in_flight: Count  # the most requests sent and not answered at a moment
    in_flight_at_end: Count | None = None  # requests sent and not answered when the schedule ended; None: not counted
    over_time: list[LoadSlice] = []


class Noise(MeasuredPart):
    """What disturbed a trial: growth of the kernel's counters over its measured part. None: not readable."""

    seconds: Positive  # from the first to the second reading of the counters
    others_cpu_seconds: NotNegative | None = None  # of processes that are neither client, link, server nor the lab
    steal_seconds: NotNegative | None = None  # CPU time that the hypervisor gave to others
    cpu_pressure_seconds: NotNegative | None = None  # time in which some process waited for a CPU (PSI)
    run_delay_seconds: NotNegative | None = None  # waits of the client's threads for a CPU, summed over threads


class HighestRate(MeasuredPart):
    """The result of a search for the highest rate, in requests per second. The rate itself is between both ends."""

    held: Positive  # highest rate that trials held
    not_held: Positive  # lowest rate above it that trials did not hold

    @property
    def middle(self) -> float:
        """The rate between both ends, on the logarithmic scale of the search."""
        return math.sqrt(self.held * self.not_held)


class ClockOffset(MeasuredPart):
    """The lab's clock minus that of a worker's machine, from round trips (as in NTP, RFC 5905)."""

    seconds: Seconds
    error_seconds: Seconds  # half of the shortest round trip: no offset is further off


class Shard(MeasuredPart):
    """One shard of a trial with its own figures."""

    host: str  # of its worker; that of the lab without workers
    clock: ClockOffset | None = None  # None: it has the lab's clock
    began_seconds: Seconds  # from the start of the first shard to its own
    wall_seconds: Seconds
    concurrency: Count
    requests: Count
    errors: dict[str, Count] = {}  # kind to count
    requests_per_second: NotNegative  # successful ones
    latency_seconds: Quantiles | None = None
    connections_opened: Count | None = None
    cpu_seconds: Seconds
    peak_pss_bytes: Count | None = None


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
    link: Link | None = None  # between client and route: rtt in s, bandwidth in bit/s; None: none
    search_rate: Positive | None = None  # requests per second that a trial of a search tries; None: none of a search
    # parts of its measured time, which other trials were between
    slices: Annotated[int, Field(ge=1, le=MOST_SLICES)] = 1

    @property
    def way(self) -> tuple[str, ...]:
        """Upstream and route, and the link where there is one."""
        return (self.upstream, self.route, *(() if self.link is None else (f"link of {self.link}",)))


class Trial(PlannedTrial):
    """One strategy doing one workload once, in a fresh process. The warm-up is left out of every figure."""

    status: Literal["done", "failed", "lost"]  # lost: its worker vanished, or the run stopped in it
    reason: str | None = None  # why the trial is not done
    # the trial was ended early, and its figures are of the requests that had finished; they count nowhere
    partial: Literal[True] | None = None
    started: Time
    deadline_seconds: Seconds | None = None  # after which the trial would have failed, from the start of its process
    wall_seconds: Seconds | None = None
    requests: Count = 0  # finished, errors included
    errors: dict[str, Count] = {}  # kind to count
    error_examples: dict[str, str] = {}
    requests_per_second: NotNegative | None = None  # successful ones; with a tail, of the time before it
    # from the moment at which slots stayed empty to the last response; rate and shares are of the time before it
    tail_seconds: Seconds | None = None
    connections_opened: Count | None = None
    connections_reopened: Count | None = None  # between slices, in place of those that were closed; None: unknown
    driver: str | None = None  # external program whose clock measured wall time and latencies
    kept_alive: Count | None = None  # requests on a connection that was kept, as the driver reports
    gil: bool | None = None  # whether the trial's process had a GIL at its end; None: it did not end
    cpu_seconds: Seconds | None = None  # the process and all its children
    idle_rss_bytes: Count | None = None  # after the warm-up, before the measured part, of the processes that exist then
    peak_rss_bytes: Count | None = None  # sum of each process's peak; shared pages count in each
    idle_pss_bytes: Count | None = None  # as idle_rss_bytes; shared pages in proportion, without the sample log
    peak_pss_bytes: Count | None = None  # as peak_rss_bytes; shared pages in proportion, without the sample log
    latency_seconds: Quantiles | None = None  # of an open load: from the planned start of each request
    open_load: OpenLoad | None = None  # None: a closed load, or a trial that has a highest rate
    highest_rate: HighestRate | None = None  # result of the search of this round, of which this trial held the rate
    elapsed_seconds_sum: Seconds | None = None  # the library's own measure, over successful requests
    # latency minus the requested delay and one round trip of the link; None if waits_for_connection, or without both
    overhead_seconds: Quantiles | None = None
    waits_for_connection: bool | None = None  # whether latencies hold the wait for a free connection of the pool
    bytes_received: Count | None = None  # of the bodies of all responses
    histogram: Histogram | None = None  # of the successful requests
    failed_histogram: Histogram | None = None  # of the time that each failed request took until it failed
    over_time: list[Slice] = []
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    link_use: ServerUse | None = None
    noise: Noise | None = None
    by_shard: list[Shard] = []  # the parts of a divided trial
    busy: dict[str, NotNegative] = {}  # share of its time that each part was busy
    in_flight: InFlight | None = None
    verdict: Bound | None = None

    @classmethod
    def of(cls, planned: PlannedTrial, **outcome: Any) -> Trial:
        """Return the finished trial of a planned one. Raise ValidationError for figures that no trial can have."""
        return cls(**dict(planned), **outcome)

    def bounds(self, of: Quantiles | None) -> frozenset[str]:
        """Return the names of those quantiles that are only lower bounds, because requests failed."""
        return frozenset() if of is None else frozenset(of.at_least)


def utc_now() -> str:
    """Return the present time as `Trial.started` holds it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def shown_time(time: str) -> str:
    """Return a `Time` as reports show it: to the second, in UTC."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
