"""Trials that are divided among workers: the start on which the shards agree, their
reports, and the whole trial.

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

from clientlab.trial.finish import Begun, finish_trial
from clientlab.trial.measurement import START_AHEAD, Measurement, sum_outcomes
from clientlab.trial.noise import merge_disturbances
from clientlab.trial.result import ClockOffset, Outcome, Trial
from clientlab.trial.samples import Samples
from clientlab.trial.server_counters import ServerCounters, combine_counters
from clientlab.trial.stream_times import StreamTimes, pool_streams
from clientlab.trial.usage import cpu_usable
from clientlab.workload.workload import ShardWorkload

# Seconds that each shard adds to START_AHEAD: all of them read their counters at once.
_AHEAD_PER_SHARD = 0.01


class AgreedStart:
    """The start of a shard on this host, on which all shards agree when each of them is
    ready.

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
        self._agreed = self._lab_time = 0.0
        self.offset: ClockOffset | None = None

    def meet(self) -> None:
        """Wait until all shards are ready: from then on, the servers have no warm-up to
        count.
        """
        self._agreed, self.offset = self._meet()
        # The system may set its clock during a trial, so the difference to the
        # monotonic clock is read once.
        self._lab_time = (
            time.time()
            - time.perf_counter()
            + (0.0 if self.offset is None else self.offset.seconds)
        )

    def wait_almost(self) -> float:
        """Return shortly before the start, with its moment: the machine's counters are
        read then, without the wait.
        """
        moment = self._agreed - self._lab_time
        time.sleep(max(0.0, moment - self._ahead - time.perf_counter()))
        return moment

    def convert_to_lab_time(self, moment: float) -> float:
        """Return the lab's time of a moment of the monotonic clock."""
        return moment + self._lab_time


def machine_id() -> str:
    """Return an id that all workers of one machine share, in any container (random(4)),
    or its name without one.
    """
    try:
        return (
            Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        )
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
    outcome: Outcome
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
    """Return the report of a share, whose requests get their numbers in the whole
    trial.
    """
    found, records = measurement.samples, measurement.samples.records.copy()
    records["start"] += at.convert_to_lab_time(0.0)
    began = (
        at.convert_to_lab_time(found.schedule_began) if found.schedule_began else 0.0
    )
    samples = replace(
        found,
        records=records,
        numbers=share.index + found.numbers * share.of,
        schedule_began=began,
    )
    outcome = measurement.outcome.model_copy(
        update={"began": at.convert_to_lab_time(measurement.outcome.began)}
    )
    streams = measurement.streams
    if streams is not None:
        streams = replace(streams, numbers=share.index + streams.numbers * share.of)
    return ShardReport(
        share.index, at.host, at.offset, outcome, samples, before, after, streams
    )


def merge_shards(begun: Begun, reports: Sequence[ShardReport]) -> Trial:
    """Return the trial whose shards have all reported, in any order.

    It has failed if a figure is impossible.
    """
    reports = sorted(reports, key=attrgetter("index"))
    outcomes = [one.outcome for one in reports]
    # The busiest machine limits the trial. To each shard, the others on its machine are
    # other programs.
    disturbance = merge_disturbances([one.disturbance for one in outcomes])
    outcome = sum_outcomes(outcomes).model_copy(update={"disturbance": disturbance})
    streams = [one.streams for one in reports if one.streams is not None]
    measurement = Measurement(
        outcome,
        _pool_samples([one.samples for one in reports]),
        by_shard=tuple(outcomes),
        streams=pool_streams(streams) if streams else None,
    )
    first = combine_counters([one.before for one in reports], min)
    servers = combine_counters([one.after for one in reports], max).since(first)
    # The cores that the clients may use: those of their control groups, and no more
    # than each machine has.
    machines: dict[str, list[ShardReport]] = {}
    for report in reports:
        machines.setdefault(report.machine, []).append(report)
    cores = sum(
        min(sum(one.cores for one in there), there[0].machine_cores)
        for there in machines.values()
    )
    try:
        trial = finish_trial(begun, measurement, servers, usable=cores)
    except ValidationError as error:
        return begun.refuse(error)
    shards = [
        shard.model_copy(update={"host": report.host, "clock": report.clock})
        for shard, report in zip(trial.shards, reports, strict=True)
    ]
    return trial.model_copy(update={"shards": shards})


def _pool_samples(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all shards.

    Each shard has its own codes for errors that have no kind of the lab's.
    """
    kinds = dict(
        enumerate(
            dict.fromkeys(kind for part in parts for kind in part.kinds.values()),
            start=1,
        )
    )
    codes, every = {kind: code for code, kind in kinds.items()}, []
    for part in parts:
        records, places = part.records.copy(), np.zeros(256, np.uint8)
        for code, kind in part.kinds.items():
            places[code] = codes[kind]
        records["error"] = places[records["error"]]
        every.append(records)
    records, numbers = (
        np.concatenate(every),
        np.concatenate([part.numbers for part in parts]),
    )
    order = np.argsort(records["start"], kind="stable")
    examples = {kind: text for part in parts for kind, text in part.examples.items()}
    began = min(part.schedule_began for part in parts)
    delay_shares = None
    if parts[0].delay_shares is not None:  # then all shards have them
        delay_shares = np.concatenate([part.delay_shares for part in parts])[order]
    pooled = Samples(
        records[order], numbers[order], {}, examples, kinds, began, delay_shares
    )
    return pooled.only(np.ones(len(order), bool))  # counts the errors
