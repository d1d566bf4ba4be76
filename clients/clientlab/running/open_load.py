"""The figures of an open load's trial, from its samples and its schedule."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from clientlab.analysis import schedule
from clientlab.analysis.histogram import Floats
from clientlab.analysis.summary import SLICES
from clientlab.errors import DROPPED
from clientlab.samples.log_reader import Flags, Samples
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload


class KeptSchedule:
    """The samples of a trial beside its schedule: `planned` starts (monotonic seconds), and which were `dropped`."""

    def __init__(self, found: Samples, arrivals: Arrivals) -> None:
        self._found = found
        self._began = found.schedule_began
        self._length = arrivals.length
        starts = np.fromiter(map(arrivals.start_of, found.numbers.tolist()), np.float64, len(found.numbers))
        self.planned: Floats = found.schedule_began + starts
        self.dropped = _of_kind(found, DROPPED)

    @property
    def late(self) -> Floats:
        """Seconds from the planned to the real start, or to the moment at which a request was dropped."""
        late: Floats = self._found.records["start"] - self.planned
        return late

    @cached_property
    def from_planned(self) -> Samples:
        """The samples, each request timed from its planned start."""
        return replace(self._found, records=schedule.from_planned(self._found.records, self.planned))

    @cached_property
    def sent(self) -> Samples:
        """The samples of the requests that were sent, as they were timed."""
        kept = ~self.dropped
        return replace(self._found, records=self._found.records[kept], numbers=self._found.numbers[kept])

    def figures(self, wall: float) -> dict[str, Any]:
        """The fields of `OpenLoad`. `wall`: seconds of the trial, whose clock began with the schedule."""
        parts = self._found.records, self.planned, self.dropped
        edges = self._began + np.linspace(0.0, wall, SLICES + 1)
        kept = schedule.kept_to(*parts, self._began, self._length)
        return kept | {"over_time": schedule.over_time(*parts, edges)}


def kept_schedule(found: Samples, workload: Workload) -> KeptSchedule | None:
    """The samples beside the schedule of their workload.

    None for a closed load, without samples, and for a trial that was ended before its schedule began.
    """
    schedule = arrivals_of(workload)
    if schedule is None or not found.schedule_began or not len(found.records):
        return None
    return KeptSchedule(found, schedule)


def _of_kind(found: Samples, kind: str) -> Flags:
    """Whether each record is an error of that kind."""
    codes = [code for code, name in found.kinds.items() if name == kind]
    flags: Flags = np.isin(found.records["error"], codes)
    return flags
