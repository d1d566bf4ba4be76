"""What was measured of a trial: its outcome, and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from clientlab.measuring.noise import Disturbance, over_known
from clientlab.measuring.tool_trials import ToolNote
from clientlab.samples.log_reader import Samples


@dataclass(frozen=True)
class Outcome:
    """Figures of the measured part of a trial, in seconds and bytes.

    `began`: on the monotonic clock. `processes`: those that sent requests. `callers`: clients that they made.
    `connections_reopened`: opened between slices. `connections_in_all`: also those of the warm-up that stay open.
    Memory at the end of the warm-up and at its peak: `rss` as sums of resident sets; `pss` with shared pages in
    proportion and without the sample log, None if the system does not count it. `extended`: whether requests began
    after the workload's duration, because too few had begun; None without a duration. `gil`: whether the trial's
    process had a GIL at its end. `fullest_cpu_seconds`: CPU time of the process that used most; None if unknown.
    `startup_seconds`: until the last process that sent requests had begun; 0 if all had begun before. `lock_waits`:
    share of the client's threads that waited for a lock; None if no thread was looked at. `slices`: wall seconds of
    each slice.
    """

    began: float
    wall_seconds: float
    cpu_seconds: float
    idle_rss_bytes: int | None
    peak_rss_bytes: int | None
    connections_begun: int
    connections_opened: int
    connections_in_all: int
    processes: int
    idle_pss_bytes: int | None = None
    peak_pss_bytes: int | None = None
    disturbance: Disturbance | None = None
    extended: bool | None = None
    callers: int = 1
    gil: bool = True
    fullest_cpu_seconds: float | None = None
    startup_seconds: float = 0.0
    lock_waits: float | None = None
    connections_reopened: int = 0
    slices: tuple[float, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """A finished trial. `tool`: the report of an external tool; None if the recorder timed the requests.

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
    """Return the outcome of several processes or machines, from the first start to the last end."""
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
    """Return the outcome by the tool's own clock: the lab's includes its start. Its memory is unknown."""
    names = ("fullest_cpu_seconds", "idle_rss_bytes", "peak_rss_bytes", "idle_pss_bytes", "peak_pss_bytes")
    unknown: dict[str, Any] = dict.fromkeys(names)
    return replace(outcome, wall_seconds=tool.wall_seconds, cpu_seconds=tool.cpu_seconds, **unknown)
