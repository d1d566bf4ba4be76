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
    failed: Histogram | None = None  # of failed or dropped requests; None: there are none
    sum_seconds: Seconds  # of all of them
    longest_seconds: Seconds


class RequestCounts(MeasuredPart):
    """Sums over the requests of a trial, or of a shard. The dropped ones are finished, and were not sent."""

    finished: Count
    errors: dict[str, Count]  # kind to count
    error_examples: dict[str, str]
    sent: Count
    received_bytes: Count
    in_flight_seconds: Seconds  # as the client timed them, of all
    delay_seconds: Seconds | None = None  # requested delays; None: there are none
    elapsed_seconds: Seconds | None = None  # the library's own measure of the successful ones; None: not recorded
    # share of those that ended at least their own requested delay after the one before; None: no delay, or several
    # machines
    in_turn: NotNegative | None = None

    @property
    def succeeded(self) -> int:
        return self.finished - sum(self.errors.values())


class WholeLoad(MeasuredPart):
    """What a closed load did while it was whole: as many requests in flight as planned."""

    seconds: Positive  # until its deadline, or until the first shard had ended
    requests: Positive  # that end in this time at the rate of the load
    in_flight_seconds: Positive  # of requests, in this time


class ScheduleCounts(MeasuredPart):
    """What was sent of an open load, and when. Where shards are added, `most_…` are upper bounds."""

    sent: Count
    dropped: Count
    last_sent_seconds: Seconds  # after the schedule began; 0: none was sent
    most_backlog: Count  # requests that were due at a moment, neither sent nor dropped
    most_in_flight: Count
    in_flight_at_end: Count  # when the schedule ended


class ShardLoad(MeasuredPart):
    """How a shard kept to its part of the schedule of an open load."""

    counts: ScheduleCounts
    lateness: ShardTimes
    sent: ShardTimes  # of the requests that were sent, from the real start


_Slices = Annotated[tuple[Count, ...], Field(max_length=SLICES)]


class ShardSlices(MeasuredPart):
    """Requests in slices of a power of two of seconds, from the agreed start on: two shards' slices share their ends.

    `planned`, `sent` and `dropped` are of an open load, `done` is of a closed one; else they are empty.
    """

    exponent: Annotated[int, Field(ge=-40, le=40)]  # a slice is 2 to this power of seconds long
    ended: _Slices
    failed: _Slices
    # of a closed load: a request counts in each slice by the part of its time in it
    done: Annotated[tuple[NotNegative, ...], Field(max_length=SLICES)] = ()
    planned: _Slices = ()
    sent: _Slices = ()
    dropped: _Slices = ()


class ShardReport(MeasuredPart):
    """A shard's measurements. `planned`: a trial that does no more than the shard's share."""

    index: Annotated[int, Field(ge=0, lt=MOST_SHARDS)]  # from 0
    planned: PlannedTrial
    started: Time
    host: str
    machine: str  # equal for the workers of one machine
    cores: Positive  # that the shard may use
    machine_cores: Positive
    clock: ClockOffset | None = None
    outcome: Outcome  # `began` is by the lab's clock (Unix seconds)
    counts: RequestCounts
    latency: ShardTimes  # of an open load: from the planned starts
    overhead: ShardTimes | None = None
    load: ShardLoad | None = None  # None: a closed load
    loaded: WholeLoad | None = None  # of a closed load with a duration; None: its wall time counts
    slices: ShardSlices
    before: ServerCounters
    after: ServerCounters
