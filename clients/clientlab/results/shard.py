"""The report of a shard on another machine: what was measured there, to be added to the reports of the other shards."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clientlab.analysis.latencies import SLICES
from clientlab.bounded_numbers import Count, NotNegative, Positive, Seconds
from clientlab.measuring.outcome import Outcome
from clientlab.results.part import MeasuredPart
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import ClockOffset, Histogram, PlannedTrial, Time
from clientlab.workload.workload import MOST_SHARDS


class ShardTimes(MeasuredPart):
    """Latencies of a shard's requests as histograms, which add up over shards, and the exact mean and maximum."""

    answered: Histogram
    failed: Annotated[Histogram | None, Field(description="of failed or dropped requests; null: there are none")] = None
    sum_seconds: Annotated[Seconds, Field(description="of all of them")]
    longest_seconds: Seconds


class RequestCounts(MeasuredPart):
    """Sums over the requests of a trial, or of a shard. The dropped ones are finished, and were not sent."""

    finished: Count
    errors: Annotated[dict[str, Count], Field(description="kind to count")]
    error_examples: dict[str, str]
    sent: Count
    received_bytes: Count
    in_flight_seconds: Annotated[Seconds, Field(description="as the client timed them, of all")]
    delay_seconds: Annotated[Seconds | None, Field(description="requested delays; null: there are none")] = None
    elapsed_seconds: Annotated[
        Seconds | None, Field(description="the library's own measure of the successful ones; null: not recorded")
    ] = None
    in_turn: Annotated[
        NotNegative | None,
        Field(
            description="share of those that ended at least their own requested delay after the one before; "
            "null: no delay, or several machines"
        ),
    ] = None

    @property
    def succeeded(self) -> int:
        return self.finished - sum(self.errors.values())


class WholeLoad(MeasuredPart):
    """What a closed load did while it was whole: as many requests in flight as planned."""

    seconds: Annotated[Positive, Field(description="until its deadline, or until the first shard had ended")]
    requests: Annotated[Positive, Field(description="that end in this time at the rate of the load")]
    in_flight_seconds: Annotated[Positive, Field(description="of requests, in this time")]


class ScheduleCounts(MeasuredPart):
    """What was sent of an open load, and when. Where shards are added, `most_…` are upper bounds."""

    sent: Count
    dropped: Count
    last_sent_seconds: Annotated[Seconds, Field(description="after the schedule began; 0: none was sent")]
    most_backlog: Annotated[Count, Field(description="requests that were due at a moment, neither sent nor dropped")]
    most_in_flight: Count
    in_flight_at_end: Annotated[Count, Field(description="when the schedule ended")]


class ShardLoad(MeasuredPart):
    """How a shard kept to its part of the schedule of an open load."""

    counts: ScheduleCounts
    lateness: ShardTimes
    sent: Annotated[ShardTimes, Field(description="of the requests that were sent, from the real start")]


_Slices = Annotated[tuple[Count, ...], Field(max_length=SLICES)]


class ShardSlices(MeasuredPart):
    """Requests in slices of a power of two of seconds, from the agreed start on: two shards' slices share their ends.

    `planned`, `sent` and `dropped` are of an open load, `done` is of a closed one; else they are empty.
    """

    exponent: Annotated[int, Field(ge=-40, le=40, description="a slice is 2 to this power of seconds long")]
    ended: _Slices
    failed: _Slices
    done: Annotated[
        tuple[NotNegative, ...],
        Field(
            max_length=SLICES,
            description="of a closed load: a request counts in each slice by the part of its time in it",
        ),
    ] = ()
    planned: _Slices = ()
    sent: _Slices = ()
    dropped: _Slices = ()


class ShardReport(MeasuredPart):
    """A shard's measurements. `planned`: a trial that does no more than the shard's share."""

    index: Annotated[int, Field(ge=0, lt=MOST_SHARDS, description="from 0")]
    planned: PlannedTrial
    started: Time
    host: str
    machine: Annotated[str, Field(description="equal for the workers of one machine")]
    cores: Annotated[Positive, Field(description="that the shard may use")]
    machine_cores: Positive
    clock: ClockOffset | None = None
    outcome: Annotated[Outcome, Field(description="`began` is by the lab's clock (Unix seconds)")]
    counts: RequestCounts
    latency: Annotated[ShardTimes, Field(description="of an open load: from the planned starts")]
    overhead: ShardTimes | None = None
    load: Annotated[ShardLoad | None, Field(description="null: a closed load")] = None
    loaded: Annotated[
        WholeLoad | None, Field(description="of a closed load with a duration; null: its wall time counts")
    ] = None
    slices: ShardSlices
    before: ServerCounters
    after: ServerCounters
