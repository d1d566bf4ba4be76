"""How a trial kept to the schedule of its open load: lateness, backlog, achieved rate, and latency from the plan.

A request that waits for a free place begins late. A latency that is measured from its real start leaves that wait
out, and in a closed load nobody sends while a server is frozen ("coordinated omission": Tene 2015, How NOT to Measure
Latency). From the planned start, each request counts the whole time that a user would have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.latencies import SLICES
from clientlab.errors import DROPPED
from clientlab.results.shard import ScheduleCounts
from clientlab.results.trial import LoadSlice, OpenLoad, Quantiles
from clientlab.running.quantiles import quantiles_of, times_by_success
from clientlab.samples.log_reader import Flags, Records, Samples
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload

Counts = Sequence[int]


class KeptSchedule:
    """The samples of a trial beside its schedule: `planned` starts (monotonic seconds), and which were `dropped`."""

    def __init__(self, found: Samples, arrivals: Arrivals) -> None:
        self._found = found
        self._began = found.schedule_began
        self._schedule = arrivals
        starts = np.fromiter(map(arrivals.start_of, found.numbers.tolist()), np.float64, len(found.numbers))
        self.planned: Floats = found.schedule_began + starts
        codes = [code for code, kind in found.kinds.items() if kind == DROPPED]
        self.dropped: Flags = np.isin(found.records["error"], codes)

    @property
    def late(self) -> Floats:
        """Seconds from the planned to the real start, or to the moment at which a request was dropped."""
        late: Floats = self._found.records["start"] - self.planned
        return late

    @cached_property
    def from_planned(self) -> Samples:
        """The samples, each request timed from its planned start."""
        return replace(self._found, records=from_planned(self._found.records, self.planned))

    @cached_property
    def sent(self) -> Samples:
        """The samples of the requests that were sent, as they were timed."""
        return self._found.only(~self.dropped)

    def counts(self) -> ScheduleCounts:
        """What was sent, when, and how many requests waited."""
        starts, sent = self._found.records["start"], self.sent.records
        ends = sent["start"] + sent["seconds"]
        end = self._began + self._schedule.length
        return ScheduleCounts(
            sent=len(sent),
            dropped=int(self.dropped.sum()),
            last_sent_seconds=float(sent["start"].max()) - self._began if len(sent) else 0.0,
            most_backlog=most_backlog(self.planned, starts),
            most_in_flight=most_at_once(sent),
            in_flight_at_end=int(((sent["start"] <= end) & (ends > end)).sum()),
        )

    def figures(self, began: float, wall: float, unavoidable: Callable[[int], float] | None = None) -> OpenLoad:
        """The figures of a trial that began then (monotonic seconds) and took so many seconds.

        `unavoidable`: a function from the number of a request to its delay and round trip, in seconds.
        """
        edges = began + np.linspace(0.0, wall, SLICES + 1)
        delayed = delayed_at(self.planned, seconds_of(unavoidable, self._found.numbers.tolist()), edges)
        starts = self._found.records["start"]
        moments = self.planned, starts[~self.dropped], starts[self.dropped]
        return open_load(
            self._schedule,
            self.counts(),
            lateness=quantiles_of(self.late[~self.dropped], self.late[self.dropped]),
            sent=quantiles_of(*times_by_success(self.sent.records)),
            over_time=load_slices(*moments, edges, delayed),
        )


def kept_schedule(found: Samples, workload: Workload) -> KeptSchedule | None:
    """The samples beside the schedule of their workload.

    None for a closed load, without samples, and for a trial that was ended before its schedule began.
    """
    schedule = arrivals_of(workload)
    if schedule is None or not found.schedule_began or not len(found.records):
        return None
    return KeptSchedule(found, schedule)


def open_load(
    schedule: Arrivals,
    counts: ScheduleCounts,
    *,
    lateness: Quantiles | None,
    sent: Quantiles | None,
    over_time: list[LoadSlice],
) -> OpenLoad:
    """The figures of an open load. The achieved rate is that of the requests that were sent.

    It is over the schedule's length, or over the time until the last one was sent if that is longer. `lateness`: from
    the planned to the real start; that of a dropped request is a lower bound. `sent`: from the real start to the end.
    """
    return OpenLoad(
        planned_per_second=schedule.count / schedule.length,
        achieved_per_second=counts.sent / max(schedule.length, counts.last_sent_seconds),
        lateness_seconds=lateness,
        sent_seconds=sent,
        dropped=counts.dropped,
        most_backlog=counts.most_backlog,
        most_in_flight=counts.most_in_flight,
        in_flight_at_end=counts.in_flight_at_end,
        over_time=over_time,
    )


def from_planned(records: Records, planned: Floats) -> Records:
    """The records as if each request had begun at its planned start. `planned`: seconds, one for each record."""
    moved = records.copy()
    moved["start"] = planned
    moved["seconds"] = records["start"] + records["seconds"] - planned
    return moved


def most_backlog(planned: Floats, starts: Floats) -> int:
    """The most requests that were due at a moment and neither sent nor dropped.

    It is largest just before one of them is sent. No timer is exact, so it is 1 at least.
    """
    if not len(starts):
        return 0
    due = np.searchsorted(np.sort(planned), np.sort(starts), side="right")
    return int((due - np.arange(len(starts))).max())


def most_at_once(records: Records) -> int:
    """The most requests in flight at a moment."""
    starts, ends = np.sort(records["start"]), np.sort(records["start"] + records["seconds"])
    ended = np.searchsorted(ends, starts, side="right")
    return int((np.arange(1, len(starts) + 1) - ended).max()) if len(starts) else 0


def seconds_of(unavoidable: Callable[[int], float] | None, numbers: Sequence[int]) -> Floats:
    """The delay and the round trip of these requests, in seconds; 0 without both."""
    if unavoidable is None:
        return np.zeros(len(numbers))
    return np.fromiter(map(unavoidable, numbers), np.float64, len(numbers))


def delayed_at(planned: Floats, seconds: Floats, edges: Floats) -> list[int]:
    """How many requests would be in flight at the end of each slice if each took only these seconds.

    Shape of `planned` and `seconds`: one for each request; of `edges`: one more than there are slices.
    """
    begun, ended = (np.searchsorted(np.sort(moments), edges[1:], "right") for moments in (planned, planned + seconds))
    found: list[int] = (begun - ended).tolist()
    return found


def load_slices(
    planned: Floats, sent: Floats, dropped: Floats, edges: Floats, delayed: Counts | None = None
) -> list[LoadSlice]:
    """Requests planned, sent and dropped in each slice of the trial, and the backlog at its end, from their moments.

    Shape of `edges`: one more than there are slices; the first is the beginning of the trial. `delayed`: of each slice.
    """
    totals = [np.searchsorted(np.sort(moments), edges[1:], side="right") for moments in (planned, sent, dropped)]
    due, begun, lost = (np.diff(total, prepend=0).tolist() for total in totals)
    return load_slices_of((edges[:-1] - edges[0]).tolist(), due, begun, lost, delayed)


def load_slices_of(
    begins: Sequence[float], planned: Counts, sent: Counts, dropped: Counts, delayed: Counts | None = None
) -> list[LoadSlice]:
    """Slices with the backlog at the end of each, from the counts of the slices. `begins`: seconds of the trial.

    `delayed`: requests that their delay alone keeps in flight at the end of each slice; None: unknown.
    """
    rows, backlog = [], 0
    held = [None] * len(begins) if delayed is None else delayed
    for at, due, begun, lost, kept in zip(begins, planned, sent, dropped, held, strict=True):
        backlog += due - begun - lost
        row = LoadSlice(at=at, planned=due, sent=begun, dropped=lost, backlog=max(0, backlog), delayed=kept)
        rows.append(row)
    return rows
