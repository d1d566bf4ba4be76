"""Measures one trial from the parent process.

It runs the trial's processes step by step, within limits, and reads their samples.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import psutil

from clientlab import strategies, units
from clientlab.machine.usage import memory_left, read_footprint
from clientlab.observing.noise import LockWaits, over_parts
from clientlab.observing.process_handle import (
    OWN,
    Interpreter,
    ProcessEnded,
    TrialFailed,
    TrialProcesses,
    TrialStalled,
    TrialVanished,
)
from clientlab.observing.rests import Rests
from clientlab.observing.samples import (
    FinishedCounter,
    Samples,
    find_delay_shares,
    next_number,
    read_measured,
    read_wave,
)
from clientlab.observing.stream_times import StreamTimes, read_streams
from clientlab.results.trial import Outcome
from clientlab.trial.context import (
    TOOL_FILE,
    WARM_UP_FOLDER,
    Done,
    ToolNote,
    TrialContext,
)
from clientlab.trial.sample_log import MAPPED_FILES, process_notes
from clientlab.workload.load import is_staggered, longest_pause, requests_in
from clientlab.workload.workload import stream_seconds

START_AHEAD = 0.05
"""Seconds from reading the machine's counters to the start of a divided trial."""

# Threads that wait for locks are looked for in one of ten slices: a look takes up to
# 1 ms.
_SLICES_PER_LOOK = 10
_SHORTEST_SLICE = 0.2  # seconds
# Of the free memory, which a trial's processes may hold if the workload has no limit.
_SHARE_OF_FREE = 0.75

_SUMMED = (
    "cpu_seconds",
    "peak_rss_bytes",
    "idle_pss_bytes",
    "peak_pss_bytes",
    "connections_begun",
    "connections_opened",
    "connections_in_all",
    "processes",
    "callers",
    "steady_cpu_seconds",
    "steady_requests",
)
# The lab's clock includes the start of the tool, whose memory is unknown.
_UNKNOWN_OF_TOOLS = (
    "fullest_cpu_seconds",
    "peak_rss_bytes",
    "idle_pss_bytes",
    "peak_pss_bytes",
)

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Measurement:
    """A finished trial."""

    outcome: Outcome
    samples: Samples

    tool: ToolNote | None = None
    """The report of an external tool; None if the recorder timed the requests."""

    by_shard: tuple[Outcome, ...] = ()
    """Of each process of a divided trial, without the disturbance of the machine."""

    streams: StreamTimes | None = None


def nothing(*_arguments: object) -> None:
    """Default callback."""


@dataclass(frozen=True)
class TrialEvents:
    """Callbacks of a running trial. One that raises an exception ends the trial."""

    on_start: Callable[[], float | None] = nothing
    """Just before the measured part, or each slice, while the trial waits.

    It may return the moment at which the measured part begins, in monotonic seconds. By
    default, it begins at once, and in all shards of a divided trial together.
    """

    on_end: Callable[[], None] = nothing
    """Just after the measured part, or each slice, while the trial waits."""

    on_progress: Callable[[int, int], None] = nothing
    """Every half second.

    It gets the number of finished requests, and that of the failures since the last
    request that succeeded.
    """


def measure(context: TrialContext, **options: Any) -> Measurement:
    """Run one trial in fresh processes, one for each shard.

    `options`: as of `measure_by_steps`.
    """
    return take_steps(measure_by_steps(context, **options))


def take_steps(steps: Generator[None, None, _Result]) -> _Result:
    """Take all steps, and return their result."""
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        return cast("_Result", ended.value)


def measure_by_steps(  # noqa: PLR0913 - the limits of a trial
    context: TrialContext,
    events: TrialEvents = TrialEvents(),
    *,
    interpreter: Interpreter = OWN,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
    patience: float = 30.0,
) -> Generator[None, None, Measurement]:
    """Run one trial by steps: start its processes, warm up, measure each slice.

    Between two steps, the trial's processes wait, and others may be measured. Closing
    the generator ends them.

    `deadline`: seconds from the start of its processes after which the trial has
    failed. `cpus`: those that they may use; empty means those of this process.
    `patience`: seconds beyond the workload's timeout after which a trial without
    progress is stalled.

    Raise TrialFailed if the strategy cannot do its workload, or reaches one of its
    limits. After any exception, including those of the callbacks, no process of the
    trial is left.
    """
    with TrialProcesses(context, interpreter, cpus) as processes:
        watch = Watch(context, processes, events, deadline, patience)
        yield from watch.pause()
        watch.wait_for("waiting" if context.slices > 1 else "ready")
        rests = Rests(processes, Path(context.folder))
        lock_waits = LockWaits(processes.pids if _has_threads(context) else list)
        trial = _WarmTrial(context, processes, events, watch, rests, lock_waits)
        if context.slices > 1:
            firsts = yield from trial.measure_slices()
        else:
            yield from trial.measure_whole()
            firsts = [0]
        return trial.end(firsts)


def _has_threads(context: TrialContext) -> bool:
    """Return whether each request in flight has a thread, which may wait for a lock.

    Threads of a native library wait for work as for a lock, so they do not count.
    """
    client = strategies.client_spec(context.strategy.client)
    executor = strategies.executor_spec(context.strategy.executor)
    return executor.threads and not client.own_threads


@dataclass(frozen=True)
class _WarmTrial:
    """A trial whose processes are warm, and wait for its measured part."""

    context: TrialContext
    processes: TrialProcesses
    events: TrialEvents
    watch: Watch
    rests: Rests
    lock_waits: LockWaits

    def measure_whole(self) -> Generator[None, None, None]:
        """Measure in one piece."""
        yield from self.watch.pause()
        start = self._begin()
        if start is None and self.context.shards > 1:
            start = time.perf_counter() + START_AHEAD
        begins = time.perf_counter() if start is None else start
        duration = self.context.workload.load.duration
        self.lock_waits.until = begins + (duration or math.inf)
        self.processes.resume(start)
        self.watch.wait_for("sent", self.lock_waits.look)
        self.rests.sent(is_last=True)

    def measure_slices(self) -> Generator[None, None, list[int]]:
        """Measure slices, and return the number of the first request of each."""
        folder = Path(self.context.folder)
        wave = read_wave(folder, self.context.concurrency)
        count = choose_slices(self.context, wave)
        firsts: list[int] = []
        for index in range(count):
            yield from self.watch.pause()
            with _between_slices():
                if index:
                    self.watch.wait_for("waiting")
                self.processes.resume(None if index else count)
                # They send a few requests first if connections may have been lost.
                self.watch.wait_for("ready")
            self._begin()
            firsts.append(next_number(folder))
            self.processes.resume(firsts[-1])
            if index % _SLICES_PER_LOOK == min(_SLICES_PER_LOOK, count) // 2:
                time.sleep((self.context.workload.load.duration or 0.0) / count / 2)
                self.lock_waits.look()
            self.watch.wait_for("sent")
            is_last = index == count - 1
            self.rests.sent(is_last=is_last)
            if not is_last:
                self.rests.over()
                self.events.on_end()
                with _between_slices():
                    self.processes.resume()
        return firsts

    def _begin(self) -> float | None:
        start = self.events.on_start()
        self.rests.start()
        self.watch.begin("measured")
        return start

    def end(self, firsts: Sequence[int]) -> Measurement:
        """End the processes, and return what was measured.

        `firsts`: the number of the first request of each slice.
        """
        self.watch.begin("end")
        self.processes.resume()
        done = [Done(**figures) for figures in self.watch.wait_for("done")]
        self.rests.over()
        outcomes, disturbance = self.rests.end(done, self.lock_waits.share)
        self.events.on_end()
        self.processes.resume()
        for process in self.processes.each:
            process.wait()
        is_divided = len(outcomes) > 1
        outcome = sum_outcomes(outcomes) if is_divided else outcomes[0]
        outcome = outcome.updated(disturbance=disturbance)
        folder = Path(self.context.folder)
        samples = read_measured(folder)
        if is_staggered(self.context.workload):
            slots = self.context.concurrency
            shares = find_delay_shares(samples.numbers, firsts, slots)
            samples = replace(samples, delay_shares=shares)
        has_streams = self.context.workload.stream is not None
        streams = read_streams(folder, samples) if has_streams else None
        tool = _read_tool_note(folder)
        if tool is not None:
            outcome = outcome.updated(
                **dict.fromkeys(_UNKNOWN_OF_TOOLS),
                wall_seconds=tool.wall_seconds,
                cpu_seconds=tool.cpu_seconds,
            )
        return Measurement(
            outcome,
            _join_slices(samples, done[0].slices),
            tool,
            tuple(outcomes) if is_divided else (),
            streams,
        )


def _read_tool_note(folder: Path) -> ToolNote | None:
    path = folder / TOOL_FILE
    if not path.exists():
        return None
    return ToolNote(**json.loads(path.read_text(encoding="ascii")))


def choose_slices(context: TrialContext, wave: float | None) -> int:
    """Return into how many slices the measured time is divided.

    `wave`: seconds of a wave, if it is known. Each slice has to last for several waves,
    because its first and its last one do not count.
    """
    if not context.least_waves or wave is None:
        return context.slices
    shortest = max(_SHORTEST_SLICE, context.least_waves * wave)
    fitting = int(1e-9 + (context.workload.load.duration or 0.0) / shortest)
    return max(1, min(context.slices, fitting))


def _join_slices(samples: Samples, slices: Sequence[tuple[float, float]]) -> Samples:
    """Return the samples as if each slice had begun when the one before it ended."""
    if not slices:
        return samples
    began, seconds = np.array(slices).T
    joined = began[0] + np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    records = samples.records.copy()
    places = np.searchsorted(began, records["start"], side="right") - 1
    records["start"] -= (began - joined)[places]
    return replace(samples, records=records)


def sum_outcomes(parts: Sequence[Outcome]) -> Outcome:
    """Return the outcome of several processes or machines.

    It lasts from the first start to the last end.
    """
    first = min(part.began for part in parts)
    return Outcome(
        **{name: over_parts(sum, parts, name) for name in _SUMMED},
        began=first,
        # The difference first: beside seconds since 1970, a short time would be rounded
        # to nothing.
        wall_seconds=max(part.began - first + part.wall_seconds for part in parts),
        extended=over_parts(any, parts, "extended"),
        gil=all(part.gil for part in parts),
        fullest_cpu_seconds=over_parts(max, parts, "fullest_cpu_seconds"),
        startup_seconds=max(
            part.began - first + part.startup_seconds for part in parts
        ),
        lock_waits=over_parts(max, parts, "lock_waits"),
    )


@contextlib.contextmanager
def _between_slices() -> Iterator[None]:
    try:
        yield
    except ProcessEnded as failure:
        raise TrialVanished(f"{failure}, between two slices") from failure


class Watch:
    """Counts the finished requests of a running trial, and ends it at its limits.

    It counts and reports them twice a second.

    Most libraries limit each wait for bytes, but not the whole response, and none
    limits the size of a body. While no request ends, all requests in flight are at
    least as old as the last end. So the trial is stalled if no request ended for the
    longest time that one may take.
    """

    def __init__(
        self,
        context: TrialContext,
        processes: TrialProcesses,
        events: TrialEvents,
        deadline: float,
        patience: float,
    ) -> None:
        workload = context.workload
        limits = workload.limits
        client = strategies.client_spec(context.strategy.client)
        folder = Path(context.folder)
        self._processes = processes
        self._events = events
        self._has_tool = bool(client.program)
        self._folders = folder, folder / WARM_UP_FOLDER
        self._counters = [FinishedCounter(folder) for folder in self._folders]
        self._began = time.monotonic()
        self._deadline = deadline
        self._timeout = limits.timeout
        self._patience = limits.timeout + patience
        self._pause = longest_pause(workload)
        if limits.request_limit is None:
            longest = self._patience + stream_seconds(workload)
            if workload.faults is not None:
                longest += workload.faults.longest
            retry = strategies.retry_of(context.strategy)
            self._request_seconds = longest * (1 if retry is None else retry.attempts)
        else:
            self._request_seconds = limits.request_limit
        if limits.memory_limit is None:
            self._most_bytes = _SHARE_OF_FREE * _find_free_memory()
        else:
            self._most_bytes = limits.memory_limit * context.shards
        if context.warm:
            shards = [context.of_shard(shard) for shard in range(context.shards)]
            self._warm_up = sum(shard.warm_up for shard in shards)
        else:
            self._warm_up = workload.load.warmup * context.shards
        planned = requests_in(workload)
        self._requests = math.inf if planned is None else planned
        self._finished = 0
        self._failed = 0
        self._failed_in_a_row = 0
        self.begin("warm-up")

    def pause(self) -> Generator[None, None, None]:
        """Let others be measured. Their time does not count for the deadline."""
        began = time.monotonic()
        yield
        self._began += time.monotonic() - began

    def begin(self, part: Literal["warm-up", "measured", "end"]) -> None:
        """Go on with the next part of the trial."""
        self._part = part
        self._until = {
            "warm-up": self._warm_up,
            "measured": self._warm_up + self._requests,
            "end": 0,
        }[part]
        self._seen: tuple[int, ...] = ()
        self._since = time.monotonic()

    def wait_for(
        self, event: str, look: Callable[[], None] = nothing
    ) -> list[dict[str, Any]]:
        """Wait until each process has sent this event, and return the events' figures.

        `look` is called twice a second until then.
        """

        def look_at_all() -> None:
            look()
            self.look()

        self._since = time.monotonic()
        return self._processes.wait_for(event, look_at_all)

    def look(self) -> None:
        """Count the finished requests, and report them.

        Raise TrialFailed if a limit is reached.
        """
        measured, warmed_up = (counter.count() for counter in self._counters)
        finished = measured + warmed_up
        self._count_failures(finished)
        senders: set[int] = set()
        for folder in self._folders:
            senders |= {note.pid for note in process_notes(folder)}
        self._check_memory(senders | {process.pid for process in self._processes.each})
        self._check_progress(finished, len(senders))
        if time.monotonic() - self._began > self._deadline:
            raise TrialFailed(
                f"not done within its deadline of {self._deadline:,g} s, with"
                f" {measured:,} requests finished; set a longer `deadline` for the"
                " workload"
            )
        # At the end, nothing is sent that could end a row of failures.
        in_a_row = 0 if self._part == "end" else self._failed_in_a_row
        self._events.on_progress(measured, in_a_row)

    def _count_failures(self, finished: int) -> None:
        """Count failures in a row. A success since the last look ends the row."""
        failed = sum(counter.failed for counter in self._counters)
        new_failed = failed - self._failed
        if new_failed == finished - self._finished:
            self._failed_in_a_row += new_failed
        else:
            self._failed_in_a_row = 0
        self._finished = finished
        self._failed = failed

    def _check_memory(self, pids: set[int]) -> None:
        held = 0  # resident bytes that no file backs (on macOS, all)
        for pid in pids:
            with contextlib.suppress(psutil.Error):  # it has ended
                memory = psutil.Process(pid).memory_info()
                held += int(memory.rss - getattr(memory, "shared", 0))
        # Only near the limit, pages that forked processes share are counted once: that
        # keeps them from mapping memory.
        if held > self._most_bytes:
            footprint = read_footprint(pids, left_out=MAPPED_FILES)
            held = held if footprint is None else footprint.now
        if held > self._most_bytes:
            raise TrialFailed(
                f"memory: its processes held {units.memory(held)}, more than"
                f" {units.memory(self._most_bytes)}, which is the `memory_limit` of the"
                f" workload or {_SHARE_OF_FREE:.0%} of the free memory"
            )

    def _check_progress(self, finished: int, senders: int) -> None:
        now = time.monotonic()
        is_sending = senders > 0 and finished < self._until
        # A tool reports nothing before its end, and enforces the workload's timeout
        # itself.
        waits_for_tool = self._has_tool and self._part == "measured"
        longest = self._request_seconds
        if not is_sending:
            longest = max(self._patience, longest)
        if (finished, senders) != self._seen:
            self._seen = finished, senders
            self._since = now
        elif now - self._since > longest + self._pause and not waits_for_tool:
            cause = ""
            if is_sending:
                cause = (
                    f" although each wait for bytes ends after {self._timeout:g} s:"
                    " answers arrive too slowly (raise `request_limit`), or the client"
                    " has no time limit"
                )
            raise TrialStalled(f"stalled: no request ended for {longest:g} s{cause}")


def _find_free_memory() -> int:
    """Return the bytes that the machine, or the control group, has left."""
    available: int = psutil.virtual_memory().available
    left = memory_left()
    return available if left is None else max(0, min(available, left))
