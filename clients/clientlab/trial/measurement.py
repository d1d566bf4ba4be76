"""Measures one trial from the parent process: runs its processes step by step, within
limits, and reads its samples.
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
from clientlab.trial.context import (
    TOOL_FILE,
    WARM_UP_FOLDER,
    Done,
    ToolNote,
    TrialContext,
)
from clientlab.trial.noise import LockWaits, over_known
from clientlab.trial.process_handle import (
    OWN,
    Interpreter,
    ProcessEnded,
    TrialFailed,
    TrialProcesses,
    TrialStalled,
    TrialVanished,
)
from clientlab.trial.rests import Rests
from clientlab.trial.result import Outcome
from clientlab.trial.sample_log import process_notes
from clientlab.trial.samples import (
    FinishedCounter,
    Samples,
    find_delay_shares,
    next_number,
    read_measured,
    read_wave,
)
from clientlab.trial.stream_times import StreamTimes, read_streams
from clientlab.trial.usage import memory_left, read_footprint
from clientlab.workload.load import is_staggered, longest_pause, requests_in
from clientlab.workload.workload import stream_seconds

START_AHEAD = (
    0.05  # seconds from reading the machine's counters to the start of a divided trial
)
# Looks for threads that wait for locks: one in ten slices, since a look takes up to 1
# ms.
_SLICES_PER_LOOK = 10
# Of the free memory, which a trial's processes may hold if the workload has no limit.
_SHARE_OF_FREE = 0.75

_SUMMED = (
    "cpu_seconds",
    "idle_rss_bytes",
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

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Measurement:
    """A finished trial."""

    outcome: Outcome
    samples: Samples
    tool: ToolNote | None = (
        None  # the report of an external tool; None if the recorder timed the requests
    )
    by_shard: tuple[
        Outcome, ...
    ] = ()  # of each process of a divided trial, without the disturbance of the machine
    streams: StreamTimes | None = None


def nothing(*_arguments: object) -> None:
    """Default callback."""


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


def measure_by_steps(  # noqa: C901, PLR0913, PLR0915 - one story, with the limits of a trial
    context: TrialContext,
    *,
    interpreter: Interpreter = OWN,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
    patience: float = 30.0,
    on_start: Callable[[], float | None] = nothing,
    on_end: Callable[[], None] = nothing,
    on_progress: Callable[[int], None] = nothing,
    on_failures: Callable[[int], None] = nothing,
) -> Generator[None, None, Measurement]:
    """Run one trial, with a step for the start of its processes, for their warm-up, and
    for each slice.

    Between two steps, the trial's processes wait, and others may be measured. Closing
    the generator ends them.

    `deadline`: seconds from the start of its processes after which the trial has
    failed. `cpus`: those that they may use; empty means those of this process.
    `patience`: seconds beyond the workload's timeout after which a trial without
    progress is stalled. `on_start`, `on_end`: called just before and after the measured
    part, or each slice, while the trial waits. `on_start` may return the moment at
    which the measured part begins, in monotonic seconds; by default it begins at once,
    and in all shards of a divided trial together. `on_progress` gets the number of
    finished requests every half second, `on_failures` that of the failures since the
    last request that succeeded.

    Raise TrialFailed if the strategy cannot do its workload, or reaches one of its
    limits. After any exception, including those of the callbacks, no process of the
    trial is left.
    """
    folder, slices, duration = (
        Path(context.folder),
        context.slices,
        context.workload.duration or 0.0,
    )
    in_slices = slices > 1
    with TrialProcesses(context, interpreter, cpus) as processes:
        watch = Watch(context, processes, deadline, patience, on_progress, on_failures)
        with watch.pause():
            yield
        watch.wait_for("waiting" if in_slices else "ready")
        if in_slices:
            slices = choose_slices(context, read_wave(folder, context.concurrency))
        client = strategies.client_spec(context.strategy.client)
        # Only if each request in flight has a thread. Threads of a native library wait
        # for work as for a lock.
        has_threads = (
            strategies.executor_spec(context.strategy.executor).threads
            and not client.own_threads
        )
        waits = LockWaits(processes.pids if has_threads else list)
        rests = Rests(processes, folder)
        firsts = [] if in_slices else [0]  # number of the first request of each slice
        for index in range(slices):
            with watch.pause():
                yield
            if in_slices:
                with _between_slices():
                    if index:
                        watch.wait_for("waiting")
                    processes.resume(None if index else slices)
                    watch.wait_for(
                        "ready"
                    )  # they have sent a few requests if connections may have been lost
            start = on_start()
            rests.start()
            watch.begin("measured")
            if in_slices:
                first = next_number(folder)
                firsts.append(first)
                processes.resume(first)
                if index % _SLICES_PER_LOOK == min(_SLICES_PER_LOOK, slices) // 2:
                    time.sleep(duration / slices / 2)
                    waits.look()
                watch.wait_for("sent")
            else:
                if start is None and context.shards > 1:
                    start = time.perf_counter() + START_AHEAD
                waits.until = (time.perf_counter() if start is None else start) + (
                    duration or math.inf
                )
                processes.resume(start)
                watch.wait_for("sent", waits.look)
            is_last = index == slices - 1
            rests.sent(is_last=is_last)
            if not is_last:
                rests.over()
                on_end()
                with _between_slices():
                    processes.resume()
        watch.begin("end")
        processes.resume()
        done = [
            Done(**figures)
            for figures in processes.wait_for("done", watch.count_finished)
        ]
        rests.over()
        parts, disturbance = rests.end(done, waits.share)
        on_end()
        processes.resume()
        for process in processes.each:
            process.wait()
    whole = parts[0] if len(parts) == 1 else sum_outcomes(parts)
    outcome = whole.model_copy(update={"disturbance": disturbance})
    found = read_measured(folder)
    if is_staggered(context.workload):
        shares = find_delay_shares(found.numbers, firsts, context.concurrency)
        found = replace(found, delay_shares=shares)
    streams = None if context.workload.stream is None else read_streams(folder, found)
    samples, tool = _join_slices(found, done[0].slices), None
    if (note := folder / TOOL_FILE).exists():
        tool = ToolNote(**json.loads(note.read_text(encoding="ascii")))
        # The lab's clock includes the start of the tool, whose memory is unknown.
        unknown = (
            "fullest_cpu_seconds",
            "idle_rss_bytes",
            "peak_rss_bytes",
            "idle_pss_bytes",
            "peak_pss_bytes",
        )
        own = {"wall_seconds": tool.wall_seconds, "cpu_seconds": tool.cpu_seconds}
        outcome = outcome.model_copy(update=own | dict.fromkeys(unknown))
    return Measurement(
        outcome, samples, tool, tuple(parts) if len(parts) > 1 else (), streams
    )


_SHORTEST_SLICE = 0.2  # seconds


def choose_slices(context: TrialContext, wave: float | None) -> int:
    """Return into how many slices the measured time is divided.

    `wave`: seconds of a wave, if it is known.

    Each slice has to last for several waves, because its first and its last one do not
    count.
    """
    if not context.least_waves or wave is None:
        return context.slices
    shortest = max(_SHORTEST_SLICE, context.least_waves * wave)
    fitting = int(1e-9 + (context.workload.duration or 0.0) / shortest)
    return max(1, min(context.slices, fitting))


def _join_slices(samples: Samples, slices: Sequence[tuple[float, float]]) -> Samples:
    """Return the samples as if each slice had begun when the one before it ended."""
    if not slices:
        return samples
    began, seconds = np.array(slices).T
    joined = began[0] + np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    records = samples.records.copy()
    records["start"] -= (began - joined)[
        np.searchsorted(began, records["start"], side="right") - 1
    ]
    return replace(samples, records=records)


def sum_outcomes(parts: Sequence[Outcome]) -> Outcome:
    """Return the outcome of several processes or machines, from the first start to the
    last end.
    """
    first = min(one.began for one in parts)
    extended = [one.extended for one in parts]
    summed: dict[str, Any] = {
        name: over_known(sum, (getattr(one, name) for one in parts)) for name in _SUMMED
    }
    return Outcome(
        **summed,
        began=first,
        # The difference first: beside seconds since 1970, a short time would be rounded
        # to nothing.
        wall_seconds=max(one.began - first + one.wall_seconds for one in parts),
        extended=None if None in extended else any(extended),
        gil=all(one.gil for one in parts),
        fullest_cpu_seconds=over_known(max, (one.fullest_cpu_seconds for one in parts)),
        startup_seconds=max(one.began - first + one.startup_seconds for one in parts),
        lock_waits=over_known(max, (one.lock_waits for one in parts)),
    )


@contextlib.contextmanager
def _between_slices() -> Iterator[None]:
    try:
        yield
    except ProcessEnded as failure:
        raise TrialVanished(f"{failure}, between two slices") from failure


class Watch:
    """Counts the finished requests of a running trial twice a second, reports them, and
    ends it at its limits.

    Most libraries limit each wait for bytes, but not the whole response, and none
    limits the size of a body. While no request ends, all requests in flight are at
    least as old as the last end. So the trial is stalled if no request ended for the
    longest time that one may take.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the limits, and two callbacks
        self,
        context: TrialContext,
        processes: TrialProcesses,
        deadline: float,
        patience: float,
        on_progress: Callable[[int], None],
        on_failures: Callable[[int], None],
    ) -> None:
        workload, folder = context.workload, Path(context.folder)
        self._processes, self._has_tool = (
            processes,
            bool(strategies.client_spec(context.strategy.client).program),
        )
        self._on_progress, self._on_failures = on_progress, on_failures
        self._folders = folder, folder / WARM_UP_FOLDER
        self._counters = [FinishedCounter(one) for one in self._folders]
        self._began, self._deadline = time.monotonic(), deadline
        self._patience, self._pause = (
            workload.timeout + patience,
            longest_pause(workload),
        )
        self._timeout = workload.timeout
        longest = self._patience + stream_seconds(workload)
        self._request_seconds = (
            longest if workload.request_limit is None else workload.request_limit
        )
        if workload.memory_limit is not None:
            self._most_bytes: float = workload.memory_limit * context.shards
        else:
            available, left = psutil.virtual_memory().available, memory_left()
            free = available if left is None else max(0, min(available, left))
            self._most_bytes = _SHARE_OF_FREE * free
        own = sum(context.of_shard(shard).warm_up for shard in range(context.shards))
        self._warm_up = own if context.warm else workload.warmup * context.shards
        self._requests = math.inf if (count := requests_in(workload)) is None else count
        self._before, self._failed_in_a_row = (0, 0), 0
        self.begin("warm-up")

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Let others be measured. Their time does not count for the deadline."""
        began = time.monotonic()
        yield
        self._began += time.monotonic() - began

    def begin(self, part: Literal["warm-up", "measured", "end"]) -> None:
        """Go on with the next part of the trial."""
        # A tool reports nothing before its end, and enforces the workload's timeout
        # itself.
        self._waits_for_tool = self._has_tool and part == "measured"
        self._until = {
            "warm-up": self._warm_up,
            "measured": self._warm_up + self._requests,
            "end": 0,
        }[part]
        self._seen: tuple[int, ...] = ()
        self._since = time.monotonic()

    def wait_for(self, event: str, look: Callable[[], None] = nothing) -> None:
        """Wait until each process has sent this event.

        `look` is called twice a second until then.
        """
        self._since = time.monotonic()
        self._processes.wait_for(event, lambda: self.report_progress(look))

    def count_finished(self) -> int:
        """Return the number of finished requests, including the warm-up.

        Raise TrialFailed if a limit is reached.
        """
        finished, warmed_up = (counter.count() for counter in self._counters)
        senders = {
            note.pid for folder in self._folders for note in process_notes(folder)
        }
        pids = senders | {process.pid for process in self._processes.each}
        held = 0  # resident bytes that no file backs (on macOS, all)
        for pid in pids:
            with contextlib.suppress(psutil.Error):  # it has ended
                memory = psutil.Process(pid).memory_info()
                held += int(memory.rss - getattr(memory, "shared", 0))
        # Only near the limit, pages that forked processes share are counted once: that
        # keeps them from mapping memory.
        if held > self._most_bytes and (found := read_footprint(pids)) is not None:
            held = found.now
        if held > self._most_bytes:
            raise TrialFailed(
                f"memory: its processes held {units.memory(held)}, more than"
                f" {units.memory(self._most_bytes)}, which is the `memory_limit` of the"
                f" workload or {_SHARE_OF_FREE:.0%} of the free memory"
            )
        seen, now = (finished + warmed_up, len(senders)), time.monotonic()
        is_sending = bool(senders) and finished + warmed_up < self._until
        longest = (
            self._request_seconds
            if is_sending
            else max(self._patience, self._request_seconds)
        )
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since > longest + self._pause and not self._waits_for_tool:
            cause = ""
            if is_sending:
                cause = (
                    f" although each wait for bytes ends after {self._timeout:g} s:"
                    " answers arrive too slowly "
                )
                cause += "(raise `request_limit`), or the client has no time limit"
            raise TrialStalled(f"stalled: no request ended for {longest:g} s{cause}")
        if now - self._began > self._deadline:
            raise TrialFailed(
                f"not done within its deadline of {self._deadline:,g} s, with"
                f" {finished:,} requests finished; set a longer `deadline` for the"
                " workload"
            )
        self._on_progress(finished)
        return finished + warmed_up

    def report_progress(self, look: Callable[[], None] = nothing) -> int:
        """Call `look`, do the same, and call `on_failures`.

        A success since the last call ends a row of failures.
        """
        look()
        finished = self.count_finished()
        failed = sum(counter.failed for counter in self._counters)
        new, new_failed = finished - self._before[0], failed - self._before[1]
        self._failed_in_a_row = (
            self._failed_in_a_row + new_failed if new == new_failed else 0
        )
        self._before = finished, failed
        self._on_failures(self._failed_in_a_row)
        return finished
