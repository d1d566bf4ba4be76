"""How a trial kept to the schedule of its open load: lateness, backlog, achieved rate, and latency from the plan.

A request that waits for a free place begins late. A latency measured from its real start leaves that wait out, and in
a closed load nobody sends while a server is frozen ("coordinated omission": Tene 2015, How NOT to Measure Latency).
From the planned start, each request counts the whole time that a user would have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.latencies import SLICES
from clientlab.errors import DROPPED
from clientlab.results.trial import LoadSlice, OpenLoad
from clientlab.running.quantiles import quantiles_of, seconds_of, times_by_success
from clientlab.samples.log_reader import Flags, Records, Samples
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload


def kept_schedule(found: Samples, workload: Workload) -> KeptSchedule | None:
    """Return the samples beside their schedule, or None for a closed load or a trial that ended before it began."""
    schedule = arrivals_of(workload)
    if schedule is None or not found.schedule_began or not len(found.records):
        return None
    return KeptSchedule(found, schedule)


class KeptSchedule:
    """The samples of a trial beside its schedule.

    `planned`: the planned start of each request, in monotonic seconds. `dropped`: which requests were too late to send.
    """

    def __init__(self, found: Samples, arrivals: Arrivals) -> None:
        self._found, self._schedule = found, arrivals
        self.planned: Floats = found.schedule_began + seconds_of(arrivals.start_of, found.numbers.tolist())
        codes = [code for code, kind in found.kinds.items() if kind == DROPPED]
        self.dropped: Flags = np.isin(found.records["error"], codes)

    @cached_property
    def from_planned(self) -> Records:
        """The records as if each request had begun at its planned start."""
        records = self._found.records.copy()
        records["seconds"] = records["start"] + records["seconds"] - self.planned
        records["start"] = self.planned
        return records

    @cached_property
    def sent(self) -> Samples:
        """The samples of the requests that were sent."""
        return self._found.only(~self.dropped)

    def figures(self, began: float, wall: float, unavoidable: Callable[[int], float] | None = None) -> OpenLoad:
        """Return the figures of a trial that began at `began` (monotonic) and took `wall` seconds.

        The achieved rate is that of the requests that were sent, over the length of the schedule, or over the time
        until the last one was sent if that is longer. `unavoidable` maps the number of a request to its delay and round
        trip, in seconds.
        """
        starts, sent, length = self._found.records["start"], self.sent.records, self._schedule.length
        ends, end = sent["start"] + sent["seconds"], self._found.schedule_began + length
        last = float(sent["start"].max()) - self._found.schedule_began if len(sent) else 0.0
        late = starts - self.planned  # of a dropped request: at least this late
        edges = began + np.linspace(0.0, wall, SLICES + 1)
        numbers = self._found.numbers.tolist()
        kept = np.zeros(len(numbers)) if unavoidable is None else seconds_of(unavoidable, numbers)
        delayed = delayed_at(self.planned, kept, edges)
        return OpenLoad(
            planned_per_second=self._schedule.count / length,
            achieved_per_second=len(sent) / max(length, last),
            lateness_seconds=quantiles_of(late[~self.dropped], late[self.dropped]),
            sent_seconds=quantiles_of(*times_by_success(sent)),
            dropped=int(self.dropped.sum()),
            most_backlog=most_backlog(self.planned, starts),
            most_in_flight=most_at_once(sent),
            in_flight_at_end=int(((sent["start"] <= end) & (ends > end)).sum()),
            over_time=load_slices(self.planned, starts[~self.dropped], starts[self.dropped], edges, delayed),
        )


def most_backlog(planned: Floats, starts: Floats) -> int:
    """Return the most requests that were due at a moment and neither sent nor dropped.

    It is largest just before one of them is sent. No timer is exact, so it is 1 at least.
    """
    if not len(starts):
        return 0
    due = np.searchsorted(np.sort(planned), np.sort(starts), side="right")
    return int((due - np.arange(len(starts))).max())


def most_at_once(records: Records) -> int:
    """Return the most requests that were in flight at a moment."""
    starts, ends = np.sort(records["start"]), np.sort(records["start"] + records["seconds"])
    ended = np.searchsorted(ends, starts, side="right")
    return int((np.arange(1, len(starts) + 1) - ended).max()) if len(starts) else 0


def delayed_at(planned: Floats, seconds: Floats, edges: Floats) -> list[int]:
    """Return how many requests would be in flight at the end of each slice if each took only `seconds`.

    `edges`: where slices begin, and the end of the last one.
    """
    begun, ended = (np.searchsorted(np.sort(moments), edges[1:], "right") for moments in (planned, planned + seconds))
    found: list[int] = (begun - ended).tolist()
    return found


def load_slices(
    planned: Floats, sent: Floats, dropped: Floats, edges: Floats, delayed: Sequence[int]
) -> list[LoadSlice]:
    """Return the requests planned, sent and dropped in each slice, and the backlog at its end, from their moments."""
    totals = [np.searchsorted(np.sort(moments), edges[1:], side="right") for moments in (planned, sent, dropped)]
    counts = [np.diff(total, prepend=0).tolist() for total in totals]
    backlog = np.maximum(totals[0] - totals[1] - totals[2], 0).tolist()
    begins = (edges[:-1] - edges[0]).tolist()
    return [
        LoadSlice(at=at, planned=due, sent=begun, dropped=lost, backlog=left, delayed=kept)
        for at, due, begun, lost, left, kept in zip(begins, *counts, backlog, delayed, strict=True)
    ]
