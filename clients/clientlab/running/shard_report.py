"""The report of a shard, from its samples and the servers' counters, and the start on which all shards agree."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.latencies import SLICES
from clientlab.measuring.measurement import START_AHEAD
from clientlab.measuring.outcome import Measurement
from clientlab.results.server_counters import ServerCounters
from clientlab.results.shard import ShardLoad, ShardReport, ShardSlices, ShardTimes
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import ClockOffset
from clientlab.running.open_load import KeptSchedule, kept_schedule
from clientlab.running.quantiles import times_by_success, times_of
from clientlab.running.request_figures import counts_of, overheads_of
from clientlab.running.trial_result import Begun
from clientlab.running.whole_load import progress_of, whole_load_of
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import unavoidable_of
from clientlab.workload.shard_workload import ShardWorkload


@dataclass(frozen=True)
class LabClock:
    """The lab's clock, as a process of this machine knows it: Unix seconds. `offset`: None where it is this machine's.

    The system may set its clock during a trial; the difference to the monotonic clock is read once.
    """

    offset: ClockOffset | None = None
    difference: float = field(default_factory=lambda: time.time() - time.perf_counter())

    def at(self, moment: float) -> float:
        """The lab's time of a moment of the monotonic clock."""
        return moment + self.difference + (0.0 if self.offset is None else self.offset.seconds)

    def monotonic(self, lab_time: float) -> float:
        """The inverse of `at`."""
        return lab_time - self.difference - (0.0 if self.offset is None else self.offset.seconds)


_AHEAD_PER_SHARD = 0.01
"""Seconds that each shard adds to START_AHEAD, because all of them read their counters at once."""


class AgreedStart:
    """The start of a shard on this host, on which all shards agree when each of them is ready.

    `meet` waits for that, and returns the start by the lab's clock (Unix seconds) with that clock minus this machine's.
    `shards`: all of the trial, which may share the cores of this machine while they prepare for the start.
    """

    def __init__(self, host: str, shards: int, meet: Callable[[], tuple[float, ClockOffset | None]]) -> None:
        self.host = host
        self._meet = meet
        self._ahead = START_AHEAD + _AHEAD_PER_SHARD * shards
        self.clock = LabClock()
        self.agreed = 0.0

    def meet(self) -> None:
        """Wait until all shards are ready: from then on, the servers have no warm-up to count."""
        self.agreed, offset = self._meet()
        self.clock = LabClock(offset)

    def wait_almost(self) -> float:
        """Return shortly before the start, with its moment: the machine's counters are read then, without the wait."""
        moment = self.clock.monotonic(self.agreed)
        time.sleep(max(0.0, moment - self._ahead - time.perf_counter()))
        return moment


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Equal in all containers of a machine, and new at each start of it (random(4))."""


def report_of(
    begun: Begun, share: ShardWorkload, measurement: Measurement, readings: Sequence[ServerCounters], at: AgreedStart
) -> ShardReport:
    """The report. `begun`: a trial that does the share alone. Raises ValidationError for impossible figures."""
    outcome, found = measurement.outcome, measurement.samples
    before, after = readings
    kept, unavoidable = kept_schedule(found, share), unavoidable_of(share, begun.planned.link)
    sent, timed = (found, found) if kept is None else (kept.sent, kept.from_planned)
    moments, counts = found.records["start"] + found.records["seconds"], counts_of(found, sent, share)
    return ShardReport(
        index=share.index,
        planned=begun.planned,
        started=begun.started,
        host=at.host,
        machine=machine_id(),
        cores=cpu_usable(),
        machine_cores=os.cpu_count() or 1,
        clock=at.clock.offset,
        outcome=replace(outcome, began=at.clock.at(outcome.began)),
        counts=counts,
        latency=times_of(*times_by_success(timed.records)),
        overhead=None if unavoidable is None else _overhead(sent, unavoidable),
        load=None if kept is None else _load(kept),
        loaded=whole_load_of(measurement, share),
        slices=_slices(at.clock.at(0.0) - at.agreed + moments, found, kept, at),
        before=before,
        after=after,
    )


def machine_id() -> str:
    """Equal for all workers of one machine. Where the system has no such id, its name."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()[:100]


def _overhead(sent: Samples, unavoidable: Callable[[int], float]) -> ShardTimes:
    """The times that a client could have saved. Below 0, where the clocks of two processes differ, they count as 0."""
    answered, failed = overheads_of(sent, unavoidable)
    return times_of(np.maximum(answered, 0.0), np.maximum(failed, 0.0))


def _load(kept: KeptSchedule) -> ShardLoad:
    return ShardLoad(
        counts=kept.counts(),
        lateness=times_of(kept.late[~kept.dropped], kept.late[kept.dropped]),
        sent=times_of(*times_by_success(kept.sent.records)),
    )


def _slices(ended: Floats, found: Samples, kept: KeptSchedule | None, at: AgreedStart) -> ShardSlices:
    """Counts in slices from the agreed start on. `ended`: seconds after it, of each request."""
    span = max(float(ended.max(initial=0.0)), 2.0**-40)
    exponent = math.ceil(math.log2(span / SLICES))
    if span / 2.0**exponent >= SLICES:  # the last request would be alone behind the last slice
        exponent += 1

    def counts(moments: Floats) -> tuple[int, ...]:
        indices = np.clip(np.floor(moments / 2.0**exponent), 0, SLICES - 1).astype(np.int64)
        return tuple(np.bincount(indices, minlength=SLICES).tolist())

    of_load: dict[str, tuple[int, ...]] = {}
    done: tuple[float, ...] = ()
    if kept is None:
        edges = [2.0**exponent * index for index in range(1, SLICES)]
        progress = progress_of(ended - found.records["seconds"], ended, edges)
        done = tuple(np.diff(progress, prepend=0.0, append=float(len(ended))).tolist())
    else:
        planned, starts = (at.clock.at(0.0) - at.agreed + moments for moments in (kept.planned, found.records["start"]))
        of_load = {
            "planned": counts(planned),
            "sent": counts(starts[~kept.dropped]),
            "dropped": counts(starts[kept.dropped]),
        }
    failed = found.records["error"] != 0
    return ShardSlices(exponent=exponent, ended=counts(ended), failed=counts(ended[failed]), done=done, **of_load)
