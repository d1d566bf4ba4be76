"""The report of a shard: its own figures, and what else is needed to add it to the others of its trial."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clientlab.analysis.summary import SLICES
from clientlab.bounded_numbers import Count, NotNegative, Positive, Seconds
from clientlab.results.part import Measured
from clientlab.results.trial import ClockOffset, Histogram, ServerUse, Trial
from clientlab.workload.workload import MOST_SHARDS


class Reading(Measured):
    """Counters of the upstream, of the proxy and of the link at one moment; null for those that are unknown."""

    upstream: ServerUse | None = None
    proxy: ServerUse | None = None
    link: ServerUse | None = None


class ShardTimes(Measured):
    """Latencies of a shard's requests as histograms, which add up over shards, and the exact mean and maximum."""

    answered: Histogram
    failed: Annotated[Histogram | None, Field(description="of failed or dropped requests; null: there are none")] = None
    sum_seconds: Annotated[Seconds, Field(description="of all of them")]
    longest_seconds: Seconds


_Slices = Annotated[tuple[Count, ...], Field(max_length=SLICES)]


class ShardSlices(Measured):
    """Requests in slices of a power of two of seconds, from the agreed start on: two shards' slices share their ends.

    `planned`, `sent` and `dropped` are of an open load, and else empty.
    """

    exponent: Annotated[int, Field(ge=-40, le=40, description="a slice is 2 to this power of seconds long")]
    ended: _Slices
    failed: _Slices
    planned: _Slices = ()
    sent: _Slices = ()
    dropped: _Slices = ()


class ShardReport(Measured):
    """A shard's result. `trial`: of a trial that does no more than the shard's share, without its histograms."""

    place: Annotated[int, Field(ge=0, lt=MOST_SHARDS, description="from 0")]
    trial: Trial
    host: Annotated[str, Field(max_length=200)]
    machine: Annotated[str, Field(max_length=100, description="equal for the workers of one machine")]
    cores: Annotated[Positive, Field(description="that the shard may use")]
    machine_cores: Positive
    clock: ClockOffset | None = None
    began: Annotated[NotNegative, Field(description="when its clock started, on the lab's (Unix seconds)")]
    requests_sent: Count
    in_flight_seconds: Annotated[Seconds, Field(description="sum over requests, as the client timed them")]
    delay_seconds: Annotated[Seconds | None, Field(description="sum of the requested delays; null: there are none")]
    processes: Count
    callers: Count
    connections_in_all: Count
    machine_busy: NotNegative | None = None
    latency: Annotated[ShardTimes, Field(description="of an open load: from the planned starts")]
    overhead: ShardTimes | None = None
    lateness: ShardTimes | None = None
    sent: Annotated[ShardTimes | None, Field(description="of an open load, from the real start")] = None
    last_sent_seconds: Annotated[Seconds | None, Field(description="of an open load, after its schedule began")] = None
    slices: ShardSlices
    before: Reading
    after: Reading
