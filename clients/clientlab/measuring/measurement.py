"""Measuring one trial from the parent process: what happened, what it cost, and its samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from clientlab import strategies
from clientlab.measuring.context import WARM_UP_FOLDER, Done, TrialContext
from clientlab.measuring.limits import Limits
from clientlab.measuring.lock_waits import LockWaits
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.outcome import Measurement, Outcome, of_tool, summed
from clientlab.measuring.rests import Rests
from clientlab.measuring.tool_trials import read_note
from clientlab.measuring.trial_handle import OWN, PATIENCE, Interpreter, TrialFailed, TrialVanished
from clientlab.measuring.trial_processes import TrialProcesses
from clientlab.samples.log_reader import FinishedCounter, Samples, number_behind, read, read_measured
from clientlab.workload.load import longest_pause

START_AHEAD = 0.05
"""Seconds before the start of a divided trial at which the machine's counters are read, and each process is told."""


_SLICES_PER_LOOK = 10
"""Of so many slices, the lab looks in one whether threads wait for locks: each look takes up to a millisecond."""

_Result = TypeVar("_Result")


def _nothing(*_arguments: object) -> None:
    """Default callback."""


@dataclass(frozen=True)
class Callbacks:
    """What is told of a trial (see `measure`). Of a trial in slices, `on_start` and `on_end` are told of each."""

    on_start: Callable[[], float | None] = _nothing
    on_end: Callable[[], None] = _nothing
    on_progress: Callable[[int], None] = _nothing
    on_failures: Callable[[int], None] = _nothing


def measure(  # noqa: PLR0913 - a trial's callbacks and limits
    context: TrialContext,
    *,
    interpreter: Interpreter = OWN,
    on_start: Callable[[], float | None] = _nothing,
    on_end: Callable[[], None] = _nothing,
    on_progress: Callable[[int], None] = _nothing,
    on_failures: Callable[[int], None] = _nothing,
    patience: float = PATIENCE,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
) -> Measurement:
    """Run one trial in fresh processes of `interpreter`, one for each shard, and read its samples.

    The trial waits while `on_start` runs, just before the measured part, and while `on_end` runs, just after it.
    `on_start` may return the moment at which the measured part begins, in seconds of the monotonic clock; by default
    it begins at once, and all shards of a divided trial at one moment. `on_progress` gets the number of finished
    requests, every half second. Until the last of them has ended, `on_failures` gets the number of requests that failed
    since the last one that succeeded. `patience`: seconds beyond the workload's timeout after which a trial without
    progress counts as stalled, unless it has a `request_limit`. `deadline`: seconds from the start of its processes
    after which the trial has failed. `cpus`: the only ones that the trial's processes may use; without any, those of
    this process.

    Raises TrialFailed when the strategy cannot do its workload, or reaches one of its limits. After any exception,
    KeyboardInterrupt and those of the callbacks included, no process of the trial is left.
    """
    callbacks = Callbacks(on_start, on_end, on_progress, on_failures)
    return to_its_end(measure_by_steps(context, interpreter, callbacks, deadline, cpus, patience))


def to_its_end(steps: Generator[None, None, _Result]) -> _Result:
    """What the steps return."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: _Result = ended.value
            return found


def measure_by_steps(  # noqa: PLR0913, PLR0917 - as of `measure`
    context: TrialContext,
    interpreter: Interpreter,
    callbacks: Callbacks,
    deadline: float,
    cpus: Collection[int] = (),
    patience: float = PATIENCE,
) -> Generator[None, None, Measurement]:
    """`measure`, with a step of its own for the start of the processes, for their warm-up, and for each slice.

    Between two steps, the trial's processes wait, and others may be measured. Closing the generator ends them.
    """
    with TrialProcesses(context, interpreter, cpus) as processes:
        trial = _Trial(context, processes, callbacks, deadline, patience)
        with trial.pause():
            yield
        trial.warm_up()
        for index in range(context.slices):
            with trial.pause():
                yield
            trial.slice(index)
        done = trial.done()
        parts, disturbance = trial.end(done)
    return _measurement(Path(context.folder), parts, disturbance, done[0].slices)


class _Trial:
    """A trial whose processes have been started."""

    def __init__(
        self,
        context: TrialContext,
        processes: TrialProcesses,
        callbacks: Callbacks,
        deadline: float,
        patience: float,
    ) -> None:
        self._context = context
        self._processes = processes
        self._callbacks = callbacks
        self._folder = Path(context.folder)
        self._limits = Limits(context, [process.pid for process in processes.each], patience)
        self._stall_seconds = longest_pause(context.workload) + max(
            context.workload.timeout + patience, self._limits.seconds
        )
        self._progress = _Progress(self._folder, callbacks, deadline, self._limits.check)

    def warm_up(self) -> None:
        """Wait until it is over."""
        self._wait_for("waiting" if self._context.slices > 1 else "ready")
        # An external tool reports nothing before its end, and enforces the workload's timeout itself.
        self._has_tool = bool(strategies.client_spec(self._context.strategy.client).program)
        self._waits = LockWaits(self._processes.pids if _has_threads(self._context) else list)
        self._rests = Rests(self._processes, self._folder)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Others are measured. Their time does not count for the trial's deadline."""
        began = time.monotonic()
        yield
        self._progress.spare(time.monotonic() - began)

    def slice(self, index: int) -> None:
        """Measure a slice, or all of the measured part, whose end is that of the processes."""
        if self._context.slices > 1:
            self._wake(index)
        start = self._callbacks.on_start()
        self._rests.start()
        self._limits.begin("measured", counted=not self._has_tool)
        if self._context.slices > 1:
            self._processes.resume(number_behind(self._folder))
            if index % _SLICES_PER_LOOK == min(_SLICES_PER_LOOK, self._context.slices) // 2:
                time.sleep((self._context.workload.duration or 0.0) / self._context.slices / 2)
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
        if index < self._context.slices - 1:
            self._rests.sent()
            self._rests.over()
            self._callbacks.on_end()
            with _waiting():
                self._processes.resume()
        else:
            self._rests.last_sent()
            self._limits.begin("end")
            self._processes.resume()

    def _look(self) -> int:
        """Return how many requests have finished, and look at the threads."""
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
        patience = math.inf if event == "sent" and self._has_tool else self._stall_seconds
        self._processes.event(event, look or self._progress.look, patience)

    def done(self) -> list[Done]:
        """Wait for the figures of each process."""
        found = self._processes.event("done", self._progress.finished, self._stall_seconds)
        self._rests.over()
        return [Done(**figures) for figures in found]

    def end(self, done: Sequence[Done]) -> tuple[list[Outcome], Disturbance]:
        """The outcomes of the processes, which have closed their connections and ended, and what disturbed them."""
        parts, disturbance = self._rests.end(done)
        self._callbacks.on_end()
        self._processes.resume()
        self._processes.wait()
        return [replace(part, lock_waits=self._waits.share) for part in parts], disturbance


@contextmanager
def _waiting() -> Iterator[None]:
    """A trial that fails meanwhile has vanished."""
    try:
        yield
    except TrialFailed as failure:
        raise TrialVanished(f"{failure}, between two slices") from failure


def _has_threads(context: TrialContext) -> bool:
    """Whether each request in flight has a thread. Threads of a native library wait for work as they do for a lock."""
    client = strategies.client_spec(context.strategy.client)
    return strategies.executor_spec(context.strategy.executor).threads and not client.own_threads


def _measurement(
    folder: Path, parts: list[Outcome], disturbance: Disturbance, slices: Sequence[tuple[float, float]]
) -> Measurement:
    """What the processes left in the trial's folder, beside the outcome of each. `slices`: as in `Done`."""
    outcome = replace(parts[0] if len(parts) == 1 else summed(parts), disturbance=disturbance)
    tool = read_note(folder)
    if tool is not None:
        outcome = of_tool(outcome, tool)
    by_shard = tuple(parts) if len(parts) > 1 else ()
    # What wakes a trial for a slice is later than the first one began, and has numbers below 0.
    samples = _without_pauses(read_measured(folder), slices) if slices else read(folder, outcome.began)
    return Measurement(outcome, samples, tool, by_shard)


def _without_pauses(found: Samples, slices: Sequence[tuple[float, float]]) -> Samples:
    """The samples as if each slice had begun when the one before it ended. A request is within one slice."""
    began, seconds = np.array(slices).T
    joined = began[0] + np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    records = found.records.copy()
    records["start"] -= (began - joined)[np.searchsorted(began, records["start"], side="right") - 1]
    return replace(found, records=records)


class _Progress:
    """How far the requests of a trial are, as its sample logs show it: that of the trial, and that of its warm-up."""

    def __init__(
        self, folder: Path, callbacks: Callbacks, deadline: float, check: Callable[[int, int], None] = _nothing
    ) -> None:
        self._counter = FinishedCounter(folder)
        self._warm_up = FinishedCounter(folder / WARM_UP_FOLDER)
        self._callbacks = callbacks
        self._deadline = deadline
        self._check = check
        self._began = time.monotonic()
        self._before = (0, 0)
        self._in_a_row = 0

    def spare(self, seconds: float) -> None:
        """So much time does not count for the deadline."""
        self._began += seconds

    def finished(self) -> int:
        """Number of finished requests, those of the warm-up included. Raises TrialFailed after the deadline."""
        finished, warmed_up = self._counter.count(), self._warm_up.count()
        self._check(finished, warmed_up)
        if time.monotonic() - self._began > self._deadline:
            raise TrialFailed(
                f"not done within its deadline of {self._deadline:,g} s, with {finished:,} requests finished; "
                "set a longer `deadline` for the workload"
            )
        self._callbacks.on_progress(finished)
        return finished + warmed_up

    def look(self) -> int:
        """The same, and `on_failures` is called. A success in the last half second ends a row of failures."""
        finished = self.finished()
        failed = self._counter.failed + self._warm_up.failed
        fresh, fresh_failed = finished - self._before[0], failed - self._before[1]
        self._in_a_row = self._in_a_row + fresh_failed if fresh == fresh_failed else 0
        self._before = finished, failed
        self._callbacks.on_failures(self._in_a_row)
        return finished
