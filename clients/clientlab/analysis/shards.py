"""Trials that are divided among workers: agreed start, reports, and the whole trial.

The lab pools the samples of all shards, so the trial is computed as one of this
machine's processes: quantiles are never averaged, and nothing is rounded.
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

from clientlab.analysis.finish import Begun, finish_trial
from clientlab.machine.usage import cpu_usable
from clientlab.observing.measurement import START_AHEAD, Measurement, sum_outcomes
from clientlab.observing.noise import merge_disturbances
from clientlab.observing.samples import Samples
from clientlab.observing.stream_times import StreamTimes, pool_streams
from clientlab.results.server_counters import ServerCounters, combine_counters
from clientlab.results.trial import ClockOffset, Outcome, Trial
from clientlab.workload.workload import ShardWorkload

# Seconds that each shard adds to START_AHEAD: all of them read their counters at once.
_AHEAD_PER_SHARD = 0.01


class AgreedStart:
    """The start of a shard on this host, on which all shards agree when all are ready.

    `meet` waits for that, and returns the start by the lab's clock (Unix seconds), and
    that clock minus this machine's; None if they are the same. `shards`: number in the
    trial, which may share the cores of this machine.
    """

    def __init__(
        self,
        host: str,
        shards: int,
        meet: Callable[[], tuple[float, ClockOffset | None]],
    ) -> None:
        self.host = host
        self._meet = meet
        self._ahead = START_AHEAD + _AHEAD_PER_SHARD * shards
        self._agreed = 0.0
        self.lab_time = 0.0  # minus that of the monotonic clock
        self.offset: ClockOffset | None = None

    def meet(self) -> None:
        """Wait until all shards are ready.

        From then on, the servers have no warm-up to count.
        """
        self._agreed, self.offset = self._meet()
        # The system may set its clock during a trial, so the difference to the
        # monotonic clock is read once.
        self.lab_time = time.time() - time.perf_counter()
        if self.offset is not None:
            self.lab_time += self.offset.seconds

    def wait_almost(self) -> float:
        """Return shortly before the start, with its moment.

        The machine's counters are read then, without the wait.
        """
        moment = self._agreed - self.lab_time
        time.sleep(max(0.0, moment - self._ahead - time.perf_counter()))
        return moment


def machine_id() -> str:
    """Return an id that all workers of one machine share, in any container (random(4)).

    Return the machine's name if it has none.
    """
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    try:
        return boot_id.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()[:100]


@dataclass(frozen=True)
class ShardReport:
    """What a worker measured of its shard.

    Moments are by the lab's clock, in Unix seconds.
    """

    index: int
    host: str
    clock: ClockOffset | None
    measured: Outcome
    samples: Samples
    before: ServerCounters
    after: ServerCounters
    streams: StreamTimes | None = None
    machine: str = field(default_factory=machine_id)
    cores: float = field(default_factory=cpu_usable)  # that the shard may use
    machine_cores: int = field(default_factory=lambda: os.cpu_count() or 1)


def make_shard_report(
    share: ShardWorkload,
    measurement: Measurement,
    before: ServerCounters,
    after: ServerCounters,
    at: AgreedStart,
) -> ShardReport:
    """Return the report of a share.

    Its requests get their numbers in the whole trial.
    """
    lab_time = at.lab_time
    samples = measurement.samples
    records = samples.records.copy()
    records["start"] += lab_time
    schedule_began = samples.schedule_began
    if schedule_began:
        schedule_began += lab_time
    streams = measurement.streams
    if streams is not None:
        streams = replace(streams, numbers=share.index + streams.numbers * share.of)
    return ShardReport(
        index=share.index,
        host=at.host,
        clock=at.offset,
        measured=measurement.outcome.updated(
            began=measurement.outcome.began + lab_time
        ),
        samples=replace(
            samples,
            records=records,
            numbers=share.index + samples.numbers * share.of,
            schedule_began=schedule_began,
        ),
        before=before,
        after=after,
        streams=streams,
    )


def merge_shards(begun: Begun, reports: Sequence[ShardReport]) -> Trial:
    """Return the trial whose shards have all reported, in any order.

    It has failed if a figure is impossible.
    """
    reports = sorted(reports, key=attrgetter("index"))
    outcomes = [report.measured for report in reports]
    # The busiest machine limits the trial. To each shard, the others on its machine are
    # other programs.
    disturbance = merge_disturbances([outcome.disturbance for outcome in outcomes])
    outcome = sum_outcomes(outcomes).updated(disturbance=disturbance)
    streams = [report.streams for report in reports if report.streams is not None]
    measurement = Measurement(
        outcome,
        _pool_samples([report.samples for report in reports]),
        by_shard=tuple(outcomes),
        streams=pool_streams(streams) if streams else None,
    )
    first = combine_counters([report.before for report in reports], min)
    last = combine_counters([report.after for report in reports], max)
    cores = _count_cores(reports)
    try:
        trial = finish_trial(begun, measurement, last.since(first), usable=cores)
    except ValidationError as error:
        return begun.refuse(error)
    shards = [
        shard.updated(host=report.host, clock=report.clock)
        for shard, report in zip(trial.shards, reports, strict=True)
    ]
    return trial.updated(shards=shards)


def _count_cores(reports: Sequence[ShardReport]) -> float:
    """Return the cores that the clients may use.

    They are those of their control groups, and no more than each machine has.
    """
    usable: dict[str, float] = {}
    for report in reports:
        cores = usable.get(report.machine, 0.0) + report.cores
        usable[report.machine] = min(cores, report.machine_cores)
    return sum(usable.values())


def _pool_samples(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all shards.

    Each shard has its own codes for errors that have no kind of the lab's.
    """
    codes: dict[str, int] = {}
    examples: dict[str, str] = {}
    shards = []
    for part in parts:
        pooled_codes = np.zeros(256, np.uint8)
        for code, kind in part.kinds.items():
            pooled_codes[code] = codes.setdefault(kind, len(codes) + 1)
        records = part.records.copy()
        records["error"] = pooled_codes[records["error"]]
        shards.append(records)
        examples |= part.examples
    records = np.concatenate(shards)
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(records["start"], kind="stable")
    delay_shares = None
    if parts[0].delay_shares is not None:  # then all shards have them
        delay_shares = np.concatenate([part.delay_shares for part in parts])[order]
    pooled = Samples(
        records=records[order],
        numbers=numbers[order],
        errors={},
        examples=examples,
        kinds={code: kind for kind, code in codes.items()},
        schedule_began=min(part.schedule_began for part in parts),
        delay_shares=delay_shares,
    )
    return pooled.only(np.ones(len(order), bool))  # counts the errors
