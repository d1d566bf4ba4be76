"""What was measured of a trial: its outcome, and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ConfigDict

from clientlab.bounded_numbers import Count, NotNegative, Positive
from clientlab.measuring.noise import Disturbance, over_known
from clientlab.measuring.tool_trials import ToolNote
from clientlab.samples.log_reader import Samples


@dataclass(frozen=True)
class Outcome:
    """Figures of the measured part of a trial, in seconds and bytes.

    `began` is on the monotonic clock. `processes` counts the processes that sent requests, and `callers` the clients
    that they made. `connections_reopened`: those that were opened between slices. `connections_in_all`: connections
    opened, those of a warm-up that stay open included. `gil`: whether the trial's process had a GIL at its end. Memory
    at the end of the warm-up and at its peak: `rss` as sums of resident sets, `pss` with shared pages in proportion and
    without the sample log, which is None where the system does not count it. `extended`: whether requests were begun
    after the workload's duration, because too few had begun; None without a duration. `fullest_cpu_seconds`: CPU time
    of the process that used most, until the last response; None where it is not readable. `startup_seconds`: until the
    last process that sent requests had begun; 0 if all had begun before. `lock_waits`: share of the client's threads
    that waited for a lock, of those that were looked at; None: none was. `slices`: wall seconds of each slice, whose
    sum is that of the trial; empty without.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # a worker sends it to the lab

    began: NotNegative
    wall_seconds: Positive
    cpu_seconds: NotNegative
    idle_rss_bytes: Count | None
    peak_rss_bytes: Count | None
    connections_begun: Count
    connections_opened: Count
    connections_in_all: Count
    processes: Count
    idle_pss_bytes: Count | None = None
    peak_pss_bytes: Count | None = None
    disturbance: Disturbance | None = None
    extended: bool | None = None
    callers: Count = 1
    gil: bool = True
    fullest_cpu_seconds: NotNegative | None = None
    startup_seconds: NotNegative = 0.0
    lock_waits: NotNegative | None = None
    connections_reopened: Count = 0
    slices: tuple[Positive, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """A finished trial. `tool`: what an external tool reported; None where the recorder timed the requests.

    `by_shard`: the outcome of each process of a divided trial, without the disturbance of the machine.
    """

    outcome: Outcome
    samples: Samples
    tool: ToolNote | None = None
    by_shard: tuple[Outcome, ...] = ()


_ADDED = (
    "cpu_seconds", "idle_rss_bytes", "peak_rss_bytes", "idle_pss_bytes", "peak_pss_bytes", "connections_begun",
    "connections_opened", "connections_in_all", "processes", "callers",
)  # fmt: skip


def summed(parts: Sequence[Outcome]) -> Outcome:
    """The outcome of several processes or machines, from the first start to the last end, without disturbance."""
    first = min(one.began for one in parts)
    extended = [one.extended for one in parts]
    added: dict[str, Any] = {name: over_known(sum, (getattr(one, name) for one in parts)) for name in _ADDED}
    return Outcome(
        **added,
        began=first,
        # The difference first: beside seconds since 1970, a short time would be rounded to nothing.
        wall_seconds=max(one.began - first + one.wall_seconds for one in parts),
        extended=None if None in extended else any(extended),
        gil=all(one.gil for one in parts),
        fullest_cpu_seconds=over_known(max, (one.fullest_cpu_seconds for one in parts)),
        startup_seconds=max(one.began - first + one.startup_seconds for one in parts),
        lock_waits=over_known(max, (one.lock_waits for one in parts)),
    )


def of_tool(outcome: Outcome, tool: ToolNote) -> Outcome:
    """The outcome by the tool's own clock: ours also held its start and the reading of its report.

    The memory is that of the trial's process, and not of the tool, so it is unknown.
    """
    return replace(
        outcome,
        wall_seconds=tool.wall_seconds,
        cpu_seconds=tool.cpu_seconds,
        fullest_cpu_seconds=None,
        idle_rss_bytes=None,
        peak_rss_bytes=None,
        idle_pss_bytes=None,
        peak_pss_bytes=None,
    )
