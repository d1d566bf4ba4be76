"""A trial and its figures, as the run document holds them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from clientlab.analysis.histogram import checked_histogram
from clientlab.bounded_numbers import Count, NotNegative, Positive, Rate, Seconds
from clientlab.results.bottleneck import Bound, InFlight
from clientlab.results.part import MeasuredPart
from clientlab.results.server_counters import ServerUse
from clientlab.workload.link import Link

MOST_ROUNDS_OF_A_RUN = 100_000
"""Limit of a run document: the schedule of as many rounds is still made in a moment."""

MOST_SLICES = 10_000


_YEARS = range(1970, 3000)
"""Of a run. Python can't convert the first and the last days of its calendar to other time zones."""


def _time(text: str) -> str:
    """The time as it was written. Raises ValueError for a text that is none, or that has no time zone."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or found.year not in _YEARS:
        raise ValueError(f"{text!r} is no time with a time zone, as 2024-05-06T07:08:09+00:00")
    return text


Time = Annotated[str, AfterValidator(_time), Field(description="UTC, ISO 8601")]


class Quantiles(MeasuredPart):
    """Seconds over all requests of a trial. A failed request ranks after every successful one (`analysis.summary`)."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Annotated[Seconds | None, Field(description="seconds; unknown with fewer than 1,000 requests")] = None
    max: Seconds
    at_least: Annotated[
        list[Literal["mean", "p50", "p90", "p95", "p99", "p999", "max"]],
        Field(description="those that are lower bounds, because they fall on failed requests"),
    ]


def quantile_of(of: Quantiles | None, name: str) -> float | None:
    """The quantile of that name in seconds; None if it is unknown."""
    return None if of is None else getattr(of, name)


class Histogram(MeasuredPart):
    """Latencies as an HDR histogram (V2, compressed, base64), of 1 to 3.6e12 units, three significant digits."""

    unit_seconds: Annotated[float, Field(ge=1e-12, le=1)] = 1e-9
    encoded: Annotated[str, AfterValidator(checked_histogram)]


class Slice(MeasuredPart):
    """A part of the trial's wall time: requests that ended in it."""

    at: Annotated[Seconds, Field(description="seconds from the trial's beginning")]
    requests: Count
    errors: Count
    p50: Seconds | None = None
    p99: Seconds | None = None


class LoadSlice(MeasuredPart):
    """A part of the wall time of an open load."""

    at: Annotated[Seconds, Field(description="seconds from the trial's beginning")]
    planned: Annotated[Count, Field(description="requests whose planned start is in it")]
    sent: Annotated[Count, Field(description="requests that were sent in it")]
    dropped: Annotated[Count, Field(description="requests that were dropped in it")]
    backlog: Annotated[Count, Field(description="requests that were due and neither sent nor dropped, at its end")]
    delayed: Annotated[
        Count | None,
        Field(
            description="requests that their requested delay, or the link's round trip, alone keeps in flight at its "
            "end, had they been sent as planned; null: unknown"
        ),
    ] = None


class OpenLoad(MeasuredPart):
    """How a trial kept to the schedule of its open load."""

    planned_per_second: Annotated[NotNegative, Field(description="requests over the schedule's length")]
    achieved_per_second: Annotated[
        NotNegative, Field(description="requests sent over the schedule's length, or until the last was sent")
    ]
    lateness_seconds: Annotated[
        Quantiles | None, Field(description="from planned to real start, of all requests; null: none was sent")
    ]
    sent_seconds: Annotated[
        Quantiles | None, Field(description="from the real start, of the requests that were sent; null: none succeeded")
    ]
    dropped: Annotated[Count, Field(description="not sent, because they were too late; errors of that kind")]
    most_backlog: Annotated[
        Count,
        Field(description="the most requests that were due and not sent at a moment; over shards, no more than this"),
    ]
    most_in_flight: Annotated[
        Count,
        Field(description="the most requests sent and not answered at a moment; over shards, no more than this"),
    ]
    in_flight_at_end: Annotated[
        Count | None, Field(description="requests sent and not answered when the schedule ended; null: not counted")
    ] = None
    over_time: list[LoadSlice] = []


Grown = Annotated[NotNegative, Field(description="seconds")]
Hertz = Annotated[NotNegative, Field(description="Hz, mean over the cores")]


class Noise(MeasuredPart):
    """What disturbed a trial: growth of the kernel's counters over its measured part. None: not readable."""

    seconds: Annotated[Positive, Field(description="from the first to the second reading of the counters")]
    others_cpu_seconds: Annotated[
        Grown | None,
        Field(description="CPU time of processes that are neither client, link, upstream, proxy nor the lab"),
    ] = None
    steal_seconds: Annotated[Grown | None, Field(description="CPU time that the hypervisor gave to others")] = None
    cpu_pressure_seconds: Annotated[
        Grown | None, Field(description="time in which some process of the machine waited for a CPU (PSI)")
    ] = None
    group_pressure_seconds: Annotated[
        Grown | None, Field(description="the same, of processes in the lab's control group")
    ] = None
    run_delay_seconds: Annotated[
        Grown | None, Field(description="time in which the client's threads waited for a CPU, summed over threads")
    ] = None
    involuntary_switches: Annotated[
        Count | None, Field(description="times that a thread of the client had to leave its CPU")
    ] = None
    frequency_before_hz: Hertz | None = None
    frequency_after_hz: Hertz | None = None


class HighestRate(MeasuredPart):
    """The result of a search for the highest rate, in requests per second. The rate itself is between both ends."""

    held: Annotated[Rate, Field(description="highest rate that trials held")]
    not_held: Annotated[Rate, Field(description="lowest rate above it that trials did not hold")]

    @property
    def middle(self) -> float:
        """The rate between both ends, on the logarithmic scale of the search."""
        return math.sqrt(self.held * self.not_held)


class ClockOffset(MeasuredPart):
    """The lab's clock minus that of a worker's machine, from round trips (as in NTP, RFC 5905)."""

    seconds: Seconds
    error_seconds: Annotated[Seconds, Field(description="half of the shortest round trip: no offset is further off")]


class Shard(MeasuredPart):
    """One shard of a trial with its own figures."""

    host: Annotated[str, Field(description="of its worker; that of the lab without workers")]
    clock: Annotated[ClockOffset | None, Field(description="null: it has the lab's clock")] = None
    began_seconds: Annotated[Seconds, Field(description="from the start of the first shard to its own")]
    wall_seconds: Seconds
    concurrency: Count
    requests: Count
    errors: Annotated[dict[str, Count], Field(description="kind to count")] = {}
    requests_per_second: Annotated[NotNegative, Field(description="successful ones")]
    latency_seconds: Quantiles | None = None
    connections_opened: Count | None = None
    cpu_seconds: Seconds
    peak_pss_bytes: Count | None = None


class PlannedTrial(MeasuredPart):
    """A trial that has not been measured: one arm in one round of a run."""

    arm: Annotated[str, Field(description="name of the arm in the experiment")]
    strategy: str
    upstream: str
    route: str
    workload: str
    round: Annotated[int, Field(ge=1, le=MOST_ROUNDS_OF_A_RUN, description="from 1")]
    order: Annotated[Count, Field(description="place in the whole run, from 0")]
    concurrency: Count
    environment: Annotated[str | None, Field(description="where it runs; null: in the lab's own Python")] = None
    link: Annotated[
        Link | None,
        Field(description="between client and route: rtt in s, bandwidth in bit/s; null: none"),
    ] = None
    search_rate: Annotated[
        Rate | None,
        Field(description="of a trial of a search: its planned requests per second; null: none of a search"),
    ] = None
    slices: Annotated[
        int, Field(ge=1, le=MOST_SLICES, description="parts of its measured time, which other trials were between")
    ] = 1

    @property
    def way(self) -> tuple[str, ...]:
        """Upstream and route, and the link where there is one."""
        return (self.upstream, self.route, *(() if self.link is None else (f"link of {self.link}",)))


class Trial(PlannedTrial):
    """One strategy doing one workload once, in a fresh process. The warm-up is left out of every figure."""

    status: Annotated[
        Literal["done", "failed", "lost"],
        Field(description="lost: its worker vanished, or the run stopped in it; the run measures the arm once more"),
    ]
    reason: Annotated[str | None, Field(description="why the trial is not done")] = None
    partial: Annotated[
        Literal[True] | None,
        Field(
            description="true: the trial was ended early, and its figures are of the requests that had finished; they "
            "count in no ranking, claim or median"
        ),
    ] = None
    started: Time
    deadline_seconds: Annotated[
        Seconds | None, Field(description="after which the trial would have failed, from the start of its process")
    ] = None
    wall_seconds: Seconds | None = None
    requests: Annotated[Count, Field(description="finished, errors included")] = 0
    errors: Annotated[dict[str, Count], Field(description="kind to count")] = {}
    error_examples: dict[str, str] = {}
    requests_per_second: Annotated[
        NotNegative | None, Field(description="successful ones; with a tail, of the time before it")
    ] = None
    tail_seconds: Annotated[
        Seconds | None,
        Field(
            description="from the moment at which slots stayed empty, by the duration's end or because a shard had "
            "ended, to the last response; rate and shares are of the time before it; null: they are of the wall time"
        ),
    ] = None
    connections_opened: Count | None = None
    connections_reopened: Annotated[
        Count | None, Field(description="opened between slices, in place of those that were closed; null: unknown")
    ] = None
    driver: Annotated[
        str | None, Field(description="external program whose clock measured wall time and latencies")
    ] = None
    kept_alive: Annotated[
        Count | None, Field(description="requests on a connection that was kept, as the driver reports")
    ] = None
    gil: Annotated[
        bool | None,
        Field(description="whether the trial's process had a GIL at its end; null: it did not end"),
    ] = None
    cpu_seconds: Annotated[Seconds | None, Field(description="the process and all its children")] = None
    idle_rss_bytes: Annotated[
        Count | None, Field(description="after the warm-up, before the measured part, of the processes that exist then")
    ] = None
    peak_rss_bytes: Annotated[
        Count | None, Field(description="sum of each process's peak; shared pages count in each")
    ] = None
    idle_pss_bytes: Annotated[
        Count | None, Field(description="as idle_rss_bytes; shared pages in proportion, without the sample log")
    ] = None
    peak_pss_bytes: Annotated[
        Count | None, Field(description="as peak_rss_bytes; shared pages in proportion, without the sample log")
    ] = None
    latency_seconds: Annotated[
        Quantiles | None, Field(description="of an open load: from the planned start of each request")
    ] = None
    open_load: Annotated[
        OpenLoad | None, Field(description="null: a closed load, or a trial that has a highest rate")
    ] = None
    highest_rate: Annotated[
        HighestRate | None,
        Field(description="result of the search of this round, of which this trial held the highest rate; null: none"),
    ] = None
    elapsed_seconds_sum: Annotated[
        Seconds | None, Field(description="the library's own measure, over successful requests")
    ] = None
    overhead_seconds: Annotated[
        Quantiles | None,
        Field(
            description="latency minus the delay that the client requested and one round trip of the link; null where "
            "waits_for_connection, and without a delay and a link"
        ),
    ] = None
    waits_for_connection: Annotated[
        bool | None, Field(description="whether latencies hold the wait for a free connection of the client's pool")
    ] = None
    bytes_received: Annotated[Count | None, Field(description="of the bodies of all responses")] = None
    histogram: Annotated[Histogram | None, Field(description="of the successful requests")] = None
    failed_histogram: Annotated[
        Histogram | None, Field(description="of the time that each failed request took until it failed")
    ] = None
    over_time: list[Slice] = []
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    link_use: ServerUse | None = None
    noise: Noise | None = None
    clock: Annotated[
        ClockOffset | None,
        Field(description="of its worker; null: the lab's own, or by_shard has those of the workers"),
    ] = None
    by_shard: Annotated[
        list[Shard],
        Field(
            description="the parts of a divided trial; its counts, times and histograms are sums, its wall time is "
            "that from the first start to the last end",
        ),
    ] = []
    busy: Annotated[dict[str, NotNegative], Field(description="share of its time that each part was busy")] = {}
    in_flight: InFlight | None = None
    verdict: Bound | None = None

    @classmethod
    def of(cls, planned: PlannedTrial, **outcome: Any) -> Trial:
        """The finished trial of a planned one. Raises ValidationError for figures that no trial can have."""
        return cls(**{name: getattr(planned, name) for name in PlannedTrial.model_fields}, **outcome)

    def bounds(self, of: Quantiles | None) -> frozenset[str]:
        """Names of those quantiles of the trial that are only lower bounds, because requests failed."""
        return frozenset() if of is None else frozenset(of.at_least)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """A finished trial has a wall time and at least one successful request."""
        if self.status != "done":
            return self
        if self.partial:
            raise ValueError("a trial that is done is whole, and not partial")
        if self.wall_seconds is None or self.wall_seconds <= 0:
            raise ValueError(f"a trial that is done took some time, and not wall_seconds {self.wall_seconds}")
        if self.open_load is not None and (self.latency_seconds is None or self.latency_seconds.p99 <= 0):
            raise ValueError("a trial of an open load that is done has latencies above 0")
        errors = sum(self.errors.values())
        if errors >= self.requests:
            raise ValueError(f"a trial that is done has a request that succeeded: {errors} errors of {self.requests}")
        return self


def utc_now() -> str:
    """The present time as `Trial.started` holds it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def shown_time(time: str) -> str:
    """A `Time` as it is read: to the second, in UTC."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
