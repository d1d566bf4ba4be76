"""Measuring one trial from the parent process: what happened, what it cost, and its samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clientlab import strategies
from clientlab.measuring.context import WARM_UP_FOLDER, Done, TrialContext
from clientlab.measuring.limits import Limits
from clientlab.measuring.lock_waits import LockWaits
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.outcome import Measurement, Outcome, of_tool, summed
from clientlab.measuring.rests import Rests
from clientlab.measuring.tool_trials import read_note
from clientlab.measuring.trial_handle import OWN, PATIENCE, Interpreter, TrialFailed, TrialProcesses, TrialVanished
from clientlab.samples.log_reader import FinishedCounter, Samples, number_behind, read_measured
from clientlab.workload.load import longest_pause

START_AHEAD = 0.05
"""Seconds before the start of a divided trial at which the machine's counters are read, and each process is told."""

_SLICES_PER_LOOK = 10
"""The lab looks in one of this many slices whether threads wait for locks: a look takes up to a millisecond."""

_Result = TypeVar("_Result")


def nothing(*_arguments: object) -> None:
    """Default callback."""


@dataclass(frozen=True)
class Callbacks:
    """Callbacks that report a trial's progress. The trial waits while one of the first two runs.

    `on_start`, `on_end`: just before and after the measured part, or each slice. `on_start` may return the moment at
    which the measured part begins, in seconds of the monotonic clock; by default it begins at once, and all shards of
    a divided trial at one moment. `on_progress` gets the number of finished requests every half second, and
    `on_failures` the number of requests that failed since the last one that succeeded.
    """

    on_start: Callable[[], float | None] = nothing
    on_end: Callable[[], None] = nothing
    on_progress: Callable[[int], None] = nothing
    on_failures: Callable[[int], None] = nothing


def measure(
    context: TrialContext,
    *,
    interpreter: Interpreter = OWN,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
    patience: float = PATIENCE,
    **callbacks: Callable[..., Any],
) -> Measurement:
    """Run one trial in fresh processes, one for each shard (see `measure_by_steps`). `callbacks`: as in `Callbacks`."""
    return to_its_end(measure_by_steps(context, interpreter, Callbacks(**callbacks), deadline, cpus, patience))


def to_its_end(steps: Generator[None, None, _Result]) -> _Result:
    """Take all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: _Result = ended.value
            return found


def measure_by_steps(  # noqa: PLR0913, PLR0917 - a trial's limits
    context: TrialContext,
    interpreter: Interpreter,
    callbacks: Callbacks,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
    patience: float = PATIENCE,
) -> Generator[None, None, Measurement]:
    """Run one trial, with a step for the start of its processes, for their warm-up, and for each slice.

    Between two steps, the trial's processes wait, and others may be measured. Closing the generator ends them.

    `deadline`: seconds from the start of its processes after which the trial has failed. `cpus`: those that its
    processes may use; empty means those of this process. `patience`: seconds beyond the workload's timeout after which
    a trial without progress counts as stalled.

    Raise TrialFailed if the strategy cannot do its workload, or reaches one of its limits. After any exception,
    including those of the callbacks, no process of the trial is left.
    """
    folder = Path(context.folder)
    with TrialProcesses(context, interpreter, cpus) as processes:
        trial = _Trial(context, processes, callbacks, deadline, patience)
        with trial.pause():
            yield
        trial.warm_up()
        for index in range(context.slices):
            with trial.pause():
                yield
            trial.slice(index)
        done, parts, disturbance = trial.end()
    outcome = replace(parts[0] if len(parts) == 1 else summed(parts), disturbance=disturbance)
    samples, tool = read_measured(folder), read_note(folder)
    return Measurement(
        outcome if tool is None else of_tool(outcome, tool),
        _without_pauses(samples, done[0].slices) if done[0].slices else samples,
        tool,
        tuple(parts) if len(parts) > 1 else (),
    )


class _Trial:
    """A trial whose processes have been started."""

    def __init__(
        self, context: TrialContext, processes: TrialProcesses, callbacks: Callbacks, deadline: float, patience: float
    ) -> None:
        self._context, self._processes, self._callbacks = context, processes, callbacks
        self._folder = Path(context.folder)
        self._limits = Limits(context, [process.pid for process in processes.each], patience)
        self._stall_seconds = longest_pause(context.workload) + max(
            context.workload.timeout + patience, self._limits.seconds
        )
        self._progress = Progress(self._folder, callbacks, deadline, self._limits.check)

    def warm_up(self) -> None:
        """Wait until it is over."""
        self._wait_for("waiting" if self._context.slices > 1 else "ready")
        executor = strategies.executor_spec(self._context.strategy.executor)
        client = strategies.client_spec(self._context.strategy.client)
        # Only if each request in flight has a thread. Threads of a native library wait for work as for a lock.
        has_threads = executor.threads and not client.own_threads
        self._waits = LockWaits(self._processes.pids if has_threads else list)
        self._rests = Rests(self._processes, self._folder)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Measure others meanwhile. Their time does not count for the trial's deadline."""
        began = time.monotonic()
        yield
        self._progress.began += time.monotonic() - began

    def slice(self, index: int) -> None:
        """Measure a slice, or all of the measured part."""
        slices = self._context.slices
        if slices > 1:
            self._wake(index)
        start = self._callbacks.on_start()
        self._rests.start()
        self._limits.begin("measured")
        if slices > 1:
            self._processes.resume(number_behind(self._folder))
            if index % _SLICES_PER_LOOK == min(_SLICES_PER_LOOK, slices) // 2:
                time.sleep((self._context.workload.duration or 0.0) / slices / 2)
                self._waits.look()
            look = self._progress.look
        else:
            if start is None and self._context.shards > 1:
                start = time.perf_counter() + START_AHEAD
            duration = self._context.workload.duration or math.inf
            self._waits.until = (time.perf_counter() if start is None else start) + duration
            self._processes.resume(start)
            look = self._look
        self._wait_for("sent", look)
        if index < slices - 1:
            self._rests.sent()
            self._rests.over()
            self._callbacks.on_end()
            with _waiting():
                self._processes.resume()
        else:
            self._rests.last_sent()
            self._limits.begin("end")
            self._processes.resume()

    def end(self) -> tuple[list[Done], list[Outcome], Disturbance]:
        """Return the figures and the outcome of each process, and what disturbed them, when all have ended."""
        done = [Done(**one) for one in self._processes.event("done", self._progress.finished, self._stall_seconds)]
        self._rests.over()
        parts, disturbance = self._rests.end(done)
        self._callbacks.on_end()
        self._processes.resume()
        self._processes.wait()
        return done, [replace(part, lock_waits=self._waits.share) for part in parts], disturbance

    def _look(self) -> int:
        self._waits.look()
        return self._progress.look()

    def _wake(self, index: int) -> None:
        """Let the processes send a few requests, which do not count: caches are warm, and lost connections are back."""
        with _waiting():
            if index:
                self._wait_for("waiting")
            self._processes.resume()
        self._wait_for("ready")

    def _wait_for(self, event: str, look: Callable[[], int] | None = None) -> None:
        # A tool reports nothing before its end, and enforces the workload's timeout itself.
        patience = math.inf if event == "sent" and self._context.has_tool else self._stall_seconds
        self._processes.event(event, look or self._progress.look, patience)


@contextmanager
def _waiting() -> Iterator[None]:
    """Turn the failure of a trial that waits for its next slice into TrialVanished."""
    try:
        yield
    except TrialFailed as failure:
        raise TrialVanished(f"{failure}, between two slices") from failure


def _without_pauses(found: Samples, slices: Sequence[tuple[float, float]]) -> Samples:
    """Return the samples as if each slice had begun when the one before it ended. A request is within one slice."""
    began, seconds = np.array(slices).T
    joined = began[0] + np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    records = found.records.copy()
    records["start"] -= (began - joined)[np.searchsorted(began, records["start"], side="right") - 1]
    return replace(found, records=records)


class Progress:
    """How many requests of a trial have finished, by its sample logs: that of the trial, and that of its warm-up.

    `began`: moment from which the deadline counts.
    """

    def __init__(
        self, folder: Path, callbacks: Callbacks, deadline: float, check: Callable[[int], None] = nothing
    ) -> None:
        self.began = time.monotonic()
        self._counter, self._warm_up = FinishedCounter(folder), FinishedCounter(folder / WARM_UP_FOLDER)
        self._callbacks, self._deadline, self._check = callbacks, deadline, check
        self._before = (0, 0)
        self._in_a_row = 0

    def finished(self) -> int:
        """Return the number of finished requests, including the warm-up. Raise TrialFailed after the deadline."""
        finished, warmed_up = self._counter.count(), self._warm_up.count()
        self._check(finished + warmed_up)
        if time.monotonic() - self.began > self._deadline:
            raise TrialFailed(
                f"not done within its deadline of {self._deadline:,g} s, with {finished:,} requests finished; "
                "set a longer `deadline` for the workload"
            )
        self._callbacks.on_progress(finished)
        return finished + warmed_up

    def look(self) -> int:
        """Return the same, and call `on_failures`. A success in the last half second ends a row of failures."""
        finished = self.finished()
        failed = self._counter.failed + self._warm_up.failed
        fresh, fresh_failed = finished - self._before[0], failed - self._before[1]
        self._in_a_row = self._in_a_row + fresh_failed if fresh == fresh_failed else 0
        self._before = finished, failed
        self._callbacks.on_failures(self._in_a_row)
        return finished
