"""The report of a shard, from the samples of its process and the readings of the servers' counters."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.summary import SLICES
from clientlab.measuring.measurement import Measurement
from clientlab.results.shard import Reading, ShardReport, ShardSlices, ShardTimes
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import ClockOffset, Trial
from clientlab.running.open_load import KeptSchedule, kept_schedule
from clientlab.running.trial_result import histogram_part, work_of
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import Link, unavoidable_of
from clientlab.workload.shards import Share

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Equal in all containers of a machine, and new at each start of it (random(4))."""


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


@dataclass(frozen=True)
class ShardPlace:
    """Where and when a shard was measured. `agreed`: the start that all shards agreed on, by the lab's clock."""

    host: str
    clock: LabClock
    agreed: float


def report_of(
    trial: Trial, share: Share, measurement: Measurement, readings: Sequence[Reading], at: ShardPlace
) -> ShardReport:
    """The report. `trial`: one that did the share alone. Raises ValidationError for impossible figures."""
    outcome, found = measurement.outcome, measurement.samples
    before, after = readings
    kept = kept_schedule(found, share)
    work, moments = work_of(found, share), found.records["start"] + found.records["seconds"]
    timed, sent = (kept.from_planned if kept else found).records, (kept.sent if kept else found).records
    disturbance = outcome.disturbance
    return ShardReport(
        place=share.place,
        trial=trial.model_copy(update={"histogram": None, "failed_histogram": None, "over_time": []}),
        host=at.host,
        machine=machine_id(),
        cores=cpu_usable(),
        machine_cores=os.cpu_count() or 1,
        clock=at.clock.offset,
        began=at.clock.at(outcome.began),
        requests_sent=work.sent,
        in_flight_seconds=work.in_flight_seconds,
        delay_seconds=work.delay_seconds,
        processes=outcome.processes,
        callers=outcome.callers,
        connections_in_all=outcome.connections_in_all,
        machine_busy=None if disturbance is None else disturbance.busy_share,
        latency=times_of(*_by_error(timed["seconds"], timed["error"])),
        overhead=_overhead(share, trial.link, kept.sent if kept else found),
        lateness=times_of(kept.late[~kept.dropped], kept.late[kept.dropped]) if kept else None,
        sent=times_of(*_by_error(sent["seconds"], sent["error"])) if kept else None,
        last_sent_seconds=float(sent["start"].max()) - found.schedule_began if kept and len(sent) else None,
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


def times_of(answered: Floats, failed: Floats) -> ShardTimes:
    """The times of some requests. Shapes: (n,) and (m,), seconds."""
    both = np.concatenate([answered, failed])
    return ShardTimes(
        answered=histogram_part(answered),
        failed=histogram_part(failed) if len(failed) else None,
        sum_seconds=float(both.sum()),
        longest_seconds=float(both.max(initial=0.0)),
    )


def _by_error(seconds: Floats, errors: Floats) -> tuple[Floats, Floats]:
    return seconds[errors == 0], seconds[errors != 0]


def _overhead(share: Share, link: Link | None, sent: Samples) -> ShardTimes | None:
    """The times that a client could have saved. Below 0, where the clocks of two processes differ, they count as 0."""
    unavoidable = unavoidable_of(share, link)
    if unavoidable is None:
        return None
    spared = np.fromiter(map(unavoidable, sent.numbers.tolist()), np.float64, len(sent.numbers))
    return times_of(*_by_error(np.maximum(sent.records["seconds"] - spared, 0.0), sent.records["error"]))


def _slices(ended: Floats, found: Samples, kept: KeptSchedule | None, at: ShardPlace) -> ShardSlices:
    """Counts in slices from the agreed start on. `ended`: seconds after it, of each request."""
    span = max(float(ended.max(initial=0.0)), 2.0**-40)
    exponent = math.ceil(math.log2(span / SLICES))
    if span / 2.0**exponent >= SLICES:  # the last request would be alone behind the last slice
        exponent += 1

    def counts(moments: Floats) -> tuple[int, ...]:
        places = np.clip(np.floor(moments / 2.0**exponent), 0, SLICES - 1).astype(np.int64)
        return tuple(np.bincount(places, minlength=SLICES).tolist())

    of_load = {}
    if kept is not None:
        planned, starts = (at.clock.at(0.0) - at.agreed + moments for moments in (kept.planned, found.records["start"]))
        of_load = {
            "planned": counts(planned),
            "sent": counts(starts[~kept.dropped]),
            "dropped": counts(starts[kept.dropped]),
        }
    failed = found.records["error"] != 0
    return ShardSlices(exponent=exponent, ended=counts(ended), failed=counts(ended[failed]), **of_load)
