"""The measured process: one strategy does one workload once, and the process does nothing else.

Started as ``python -m clientlab.measuring.trial_process CONTEXT FD SHARD``. It reads the trial's context from the file
descriptor CONTEXT, does that shard of it, from 0, and writes its events, a line of JSON each, to the descriptor FD:

    ready    warmed up; the process waits for a line on standard input before the measured part, or before each slice.
             The line may have the moment of the start (monotonic seconds), or the number of the slice's first request
    waiting  a trial in slices waits for a line before it wakes for its next slice
    sent     all requests have ended, and no process of a pool has: the clock rests until a line comes
    done     wall seconds, CPU seconds, peak memory; the process waits for a line before it ends
    failed   why the strategy failed; no other event follows

It imports no more of the lab than the recorder needs, and no HTTP library but the strategy's own.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from clientlab import strategies
from clientlab.errors import PluginError
from clientlab.executors import pacing
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.executors.pacing import PacedNumbers
from clientlab.measuring import usage
from clientlab.measuring.context import WARM_UP_FOLDER, Done, TrialContext
from clientlab.measuring.recorder import CallerFactory
from clientlab.measuring.recording import preallocate
from clientlab.samples.log import begin_schedule
from clientlab.strategies import plugins
from clientlab.workload.load import arrivals_of


@dataclass
class Events:
    """The pipe to the process that started this one."""

    descriptor: int

    def send(self, event: str, **figures: Any) -> None:
        os.write(self.descriptor, json.dumps({"event": event, **figures}).encode() + b"\n")

    def send_and_wait(self, event: str, **figures: Any) -> str:
        """Send an event and return the answer, a line. End the process if the parent is gone."""
        self.send(event, **figures)
        if not (line := sys.stdin.readline()):
            raise SystemExit(1)
        return line.strip()

    def wait_for_start(self) -> float | None:
        """Send that the process is ready, wait for the start, and return its moment if the parent chose one."""
        chosen = self.send_and_wait("ready")
        if not chosen:
            return None
        time.sleep(max(0.0, float(chosen) - perf_counter()))
        return float(chosen)


def main(arguments: list[str]) -> None:
    """Run the trial, or a shard of it, whose context is in a file that this process has inherited."""
    inherited, descriptor, shard = arguments
    signal.signal(signal.SIGTERM, _end_all(os.getpid()))
    usage.raise_descriptor_limit()
    usage.offer_to_the_oom_killer()
    usage.keep_status_open()
    events = Events(int(descriptor))
    context: TrialContext | None = None
    try:
        with os.fdopen(int(inherited), "rb") as file:
            whole: TrialContext = pickle.load(file)  # noqa: S301 - the parent process wrote it
        context = whole.of_shard(int(shard))
        load_libraries(context)
        run_trial = _run_in_slices if context.slices > 1 else _run_whole
        run_trial(context, events)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # to take down the interpreter would cost time that belongs to no trial
    except Exception as error:  # noqa: BLE001 - the reason is the trial's result; the rest goes to its log
        traceback.print_exc()
        events.send("failed", reason=_reason(error, context))


def _end_all(trial: int) -> Callable[[int, FrameType | None], None]:
    """Return a handler of SIGTERM, which the kernel sends when the lab is killed: it ends all processes of the trial.

    A pool's process inherits the handler, and ends alone.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == trial:
            os.killpg(0, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return end


def load_libraries(context: TrialContext) -> None:
    """Import the strategy's libraries before the clock starts. Forked children share the imported modules."""
    plugins.admit([context.strategy.client, context.strategy.executor])
    executor_class = strategies.load(strategies.executor_spec(context.strategy.executor).import_path)
    if hasattr(executor_class, "prepare"):
        executor_class.prepare()
    strategies.load(strategies.client_spec(context.strategy.client).import_path)


def make_executor(context: TrialContext) -> Executor:
    """Return the strategy's executor, not yet open. Its libraries must be loaded."""
    import_path = strategies.executor_spec(context.strategy.executor).import_path
    executor_class = strategies.load(import_path)
    executor: Executor = executor_class(CallerFactory(context), **strategies.chosen(context.strategy, import_path))
    return executor


class _Stopwatch:
    """Wall and CPU seconds of the measured part, from the moment at which it is made. `began`: monotonic seconds."""

    def __init__(self) -> None:
        self._cpu = usage.cpu_seconds()
        self.began = self._from = perf_counter()

    def rest(self, events: Events) -> None:
        """Stop the clock, let the parent read what the trial's processes hold, and go on."""
        wall, cpu = self.read()
        events.send_and_wait("sent")
        self._cpu = usage.cpu_seconds() - cpu
        self._from = perf_counter() - wall

    def read(self) -> tuple[float, float]:
        """Return the wall and CPU seconds so far."""
        return perf_counter() - self._from, usage.cpu_seconds() - self._cpu


def _run_whole(context: TrialContext, events: Events) -> None:
    """Measure in one piece.

    Warm: the executor is opened in the warm-up and closed after the clock. Cold: pools, loops, sessions and connections
    are made and closed inside the clock; the lab's log is made before, and the warm-up has an executor of its own, so
    only code is warm. In an open load, the executor is opened before the schedule begins.
    """
    is_open_load = arrivals_of(context.workload) is not None
    if context.warm:
        executor = _warm_up(context)
    else:
        if context.workload.warmup:
            apart = make_executor(replace(context, folder=str(Path(context.folder) / WARM_UP_FOLDER)))
            apart.open()
            apart.run(RequestNumbers(context.workload.warmup))
            apart.close()
            del apart
            gc.collect()
        preallocate(context)
        executor = make_executor(context)
    if is_open_load:
        pacing.prepare()
        if not context.warm:
            executor.open()
    start = events.wait_for_start()
    clock = _Stopwatch()
    if not context.warm and not is_open_load:
        executor.open()
    numbers = _numbers(context, clock.began if start is None else start)
    executor.run(numbers)
    clock.rest(events)
    if not context.warm:
        executor.close()
    wall, cpu = clock.read()
    extended = numbers.extended if numbers.count is None else None
    done = Done(clock.began, wall, cpu, extended, usage.has_gil(), usage.peak_rss())
    events.send_and_wait("done", **vars(done))
    if context.warm:
        executor.close()


def _warm_up(context: TrialContext) -> Executor:
    executor = make_executor(context)
    executor.open()
    executor.run(RequestNumbers(context.warm_up, first=-context.warm_up))
    gc.collect()
    return executor


def _run_in_slices(context: TrialContext, events: Events) -> None:
    """Make everything and open the connections in the warm-up, and measure whenever it is this trial's turn.

    Between its turns, the process waits and keeps its connections. After a long wait, it sends as many requests as are
    in flight at once before the next slice. A slice is over when its last request has ended.
    """
    executor, cpu, rested = _warm_up(context), 0.0, perf_counter()
    slices: list[tuple[float, float]] = []
    length = (context.workload.duration or 0.0) / context.slices
    for _ in range(context.slices):
        events.send_and_wait("waiting")
        if perf_counter() - rested > context.rest:
            executor.run(RequestNumbers(context.concurrency, first=-context.concurrency))
        first = int(events.send_and_wait("ready"))
        clock = _Stopwatch()
        executor.run(RequestNumbers(None, clock.began + length, first))
        wall, used = clock.read()
        slices.append((clock.began, wall))
        cpu, rested = cpu + used, perf_counter()
        events.send_and_wait("sent")
    wall = sum(seconds for _, seconds in slices)
    done = Done(slices[0][0], wall, cpu, False, usage.has_gil(), usage.peak_rss(), tuple(slices))
    events.send_and_wait("done", **vars(done))
    executor.close()


def _numbers(context: TrialContext, began: float) -> RequestNumbers:
    """Return all numbers of the measured part. A duration is extended until as many began as may be in flight."""
    workload = context.workload
    schedule = arrivals_of(workload)
    if schedule is not None:
        begin_schedule(Path(context.folder), began)
        return PacedNumbers(schedule, began)
    if workload.requests is not None:
        return RequestNumbers(workload.requests)
    return RequestNumbers(None, began + (workload.duration or 0.0), least=context.concurrency)


def _reason(error: Exception, context: TrialContext | None) -> str:
    """Return the error and its place: the line in the user's own file if it came from there, else the innermost."""
    if isinstance(error, PluginError):
        return str(error)
    for place in (context.strategy.client, context.strategy.executor) if context else ():
        path = plugins.file_of(place)
        if path is not None and (line := plugins.line_of(error, path)):
            return f"{type(error).__name__}: {error} ({path}:{line})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


if __name__ == "__main__":
    main(sys.argv[1:])
