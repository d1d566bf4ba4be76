"""Trials that are divided among workers: the start on which the shards agree, their reports, and the whole trial.

The lab pools the samples of all shards, so the trial is computed as one of this machine's processes: quantiles are
never averaged, and nothing is rounded.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from clientlab.measuring.measurement import START_AHEAD
from clientlab.measuring.noise import most_disturbed
from clientlab.measuring.outcome import Measurement, Outcome, summed
from clientlab.results.server_counters import ServerCounters, first_of, last_of
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import ClockOffset, Trial
from clientlab.running.trial_result import Begun, finished_trial
from clientlab.samples.log_reader import Samples
from clientlab.workload.shard_workload import ShardWorkload

_AHEAD_PER_SHARD = 0.01
"""Seconds that each shard adds to START_AHEAD, because all of them read their counters at once."""


class AgreedStart:
    """The start of a shard on this host, on which all shards agree when each of them is ready.

    `meet` waits for that, and returns the start by the lab's clock (Unix seconds) with that clock minus this machine's,
    or None if it is this machine's. `shards`: all of the trial, which may share the cores of this machine.
    """

    def __init__(self, host: str, shards: int, meet: Callable[[], tuple[float, ClockOffset | None]]) -> None:
        self.host = host
        self._meet = meet
        self._ahead = START_AHEAD + _AHEAD_PER_SHARD * shards
        self._agreed = self._lab_time = 0.0
        self.offset: ClockOffset | None = None

    def meet(self) -> None:
        """Wait until all shards are ready: from then on, the servers have no warm-up to count."""
        self._agreed, self.offset = self._meet()
        # The system may set its clock during a trial, so the difference to the monotonic clock is read once.
        self._lab_time = time.time() - time.perf_counter() + (0.0 if self.offset is None else self.offset.seconds)

    def wait_almost(self) -> float:
        """Return shortly before the start, with its moment: the machine's counters are read then, without the wait."""
        moment = self._agreed - self._lab_time
        time.sleep(max(0.0, moment - self._ahead - time.perf_counter()))
        return moment

    def lab_time(self, moment: float) -> float:
        """Return the lab's time of a moment of the monotonic clock."""
        return moment + self._lab_time


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Equal in all containers of a machine, and new at each start of it (random(4))."""


def machine_id() -> str:
    """Return an id that all workers of one machine share, or its name if the system has no such id."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()[:100]


@dataclass(frozen=True)
class ShardReport:
    """What a worker measured of its shard. Moments are by the lab's clock, in Unix seconds."""

    index: int
    host: str
    clock: ClockOffset | None
    outcome: Outcome
    samples: Samples
    before: ServerCounters
    after: ServerCounters
    machine: str = field(default_factory=machine_id)
    cores: float = field(default_factory=cpu_usable)  # that the shard may use
    machine_cores: int = field(default_factory=lambda: os.cpu_count() or 1)


def report_of(
    share: ShardWorkload, measurement: Measurement, before: ServerCounters, after: ServerCounters, at: AgreedStart
) -> ShardReport:
    """Return the report of a share, whose requests get their numbers in the whole trial."""
    outcome, found = measurement.outcome, measurement.samples
    records = found.records.copy()
    records["start"] += at.lab_time(0.0)
    began = at.lab_time(found.schedule_began) if found.schedule_began else 0.0
    whole = replace(found, records=records, numbers=share.index + found.numbers * share.of, schedule_began=began)
    ours = replace(outcome, began=at.lab_time(outcome.began))
    return ShardReport(share.index, at.host, at.offset, ours, whole, before, after)


def merged_trial(begun: Begun, reports: Sequence[ShardReport]) -> Trial:
    """Return the trial whose shards have all reported, in any order.

    It has failed if a figure is impossible, or if a worker's clock was so wrong that its shard seems to have begun long
    before or after the others.
    """
    reports = sorted(reports, key=attrgetter("index"))
    outcomes = [one.outcome for one in reports]
    began = [one.began for one in outcomes]
    apart = max(began) - min(began)
    if begun.deadline_seconds is not None and apart > begun.deadline_seconds:
        why = f"the shards began {apart:,.0f} s apart, and the trial ends after {begun.deadline_seconds:,.0f} s"
        return begun.ended("failed", why)
    # The busiest machine limits the trial. To each shard, the others on its machine are other programs.
    outcome = replace(summed(outcomes), disturbance=most_disturbed([one.disturbance for one in outcomes]))
    measurement = Measurement(outcome, _pooled([one.samples for one in reports]), by_shard=tuple(outcomes))
    servers = last_of([one.after for one in reports]).since(first_of([one.before for one in reports]))
    try:
        trial = finished_trial(begun, measurement, servers, usable=_cores(reports))
    except ValidationError as error:
        return begun.impossible(error)
    shards = [
        shard.model_copy(update={"host": report.host, "clock": report.clock})
        for shard, report in zip(trial.by_shard, reports, strict=True)
    ]
    return trial.model_copy(update={"by_shard": shards})


def _pooled(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all shards. Each shard has its own codes for errors that have no kind of the lab's."""
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds.values())
    codes = {kind: code for code, kind in enumerate(kinds, start=1)}
    every = []
    for part in parts:
        records, places = part.records.copy(), np.zeros(256, np.uint8)
        for code, kind in part.kinds.items():
            places[code] = codes[kind]
        records["error"] = places[records["error"]]
        every.append(records)
    records, numbers = np.concatenate(every), np.concatenate([part.numbers for part in parts])
    order = np.argsort(records["start"], kind="stable")
    examples = {kind: text for part in parts for kind, text in part.examples.items()}
    began = min(part.schedule_began for part in parts)
    pooled = Samples(records[order], numbers[order], {}, examples, {code: kind for kind, code in codes.items()}, began)
    return pooled.only(np.ones(len(order), bool))  # counts the errors


def _cores(reports: Sequence[ShardReport]) -> float:
    """Return the cores that the clients may use: those of their control groups, and no more than each machine has."""
    machines: dict[str, list[ShardReport]] = {}
    for report in reports:
        machines.setdefault(report.machine, []).append(report)
    return sum(min(sum(one.cores for one in there), there[0].machine_cores) for there in machines.values())
