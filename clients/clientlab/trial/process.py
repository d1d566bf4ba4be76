"""The measured process: does one workload once with one strategy, and nothing else.

Started as ``python -m clientlab.trial.process CONTEXT FD SHARD``, or by `cold_start`.
It reads the trial's context from the file descriptor CONTEXT, does that shard of it,
counted from 0, and writes events to the descriptor FD, one line of JSON each:

    ready    warmed up. Waits for a line on standard input before the measured part,
             or before each slice. The line may hold the moment of the start (monotonic
             seconds), or the number of the slice's first request
    waiting  a trial in slices waits for a line before it wakes up for its next slice.
             Before the first one, the line holds the number of slices
    sent     all requests have ended, and no process of a pool has: the clock rests
             until a line comes
    done     wall seconds, CPU seconds, peak memory. Waits for a line before it ends
    failed   why the strategy failed. No other event follows

It imports only the parts of the lab that the recorder needs, and only the strategy's
own HTTP library.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from clientlab import plugins, strategies
from clientlab.errors import PluginError
from clientlab.executors import pacing
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.executors.pacing import PacedNumbers
from clientlab.machine import usage
from clientlab.trial.context import WARM_UP_FOLDER, TrialContext
from clientlab.trial.recorder import CallerFactory
from clientlab.trial.recording import preallocate
from clientlab.trial.sample_log import begin_schedule, begin_slice
from clientlab.workload.load import Arrivals, arrivals_of
from clientlab.workload.recordings import read_recorded_requests


@dataclass(frozen=True)
class Events:
    """The pipe to the process that started this one."""

    descriptor: int

    def send(self, event: str, **figures: Any) -> None:
        line = json.dumps({"event": event, **figures})
        os.write(self.descriptor, line.encode() + b"\n")

    def send_and_wait(self, event: str, **figures: Any) -> str:
        """Send an event and return the answer, a line.

        End the process if the parent is gone.
        """
        self.send(event, **figures)
        line = sys.stdin.readline()
        if not line:
            raise SystemExit(1)
        return line.strip()


def main(
    arguments: list[str], import_seconds: float = 0.0, import_cpu_seconds: float = 0.0
) -> None:
    """Run the trial, or a shard of it, whose context is in an inherited file.

    `import_seconds`: of a cold trial, from the start of the interpreter until the
    libraries were imported.
    """
    inherited, descriptor, shard = map(int, arguments)
    _end_pool_on_sigterm()
    usage.raise_descriptor_limit()
    usage.offer_to_the_oom_killer()
    events = Events(descriptor)
    context: TrialContext | None = None
    try:
        with os.fdopen(inherited, "rb") as file:
            whole: TrialContext = pickle.load(file)  # noqa: S301 - the parent process wrote it
        context = whole.of_shard(shard)
        load_libraries(context)
        if context.workload.replay is not None:
            # Before the clock starts; forked processes share the requests.
            read_recorded_requests(context.workload.replay)
            gc.collect()
            gc.freeze()  # a collection of garbage would look at each of them
        if context.slices > 1:
            _run_in_slices(context, events)
        else:
            _run_whole(context, events, import_seconds, import_cpu_seconds)
        sys.stdout.flush()
        sys.stderr.flush()
        # Shutting down the interpreter would take time that belongs to no trial.
        os._exit(0)
    except Exception as error:  # noqa: BLE001 - the reason is the trial's result; the rest goes to its log
        traceback.print_exc()
        events.send("failed", reason=_describe(error, context))


def _end_pool_on_sigterm() -> None:
    """End all processes of the trial on SIGTERM.

    The kernel sends it when the lab is killed.
    """
    trial = os.getpid()

    def end(number: int, _frame: FrameType | None) -> None:
        # A pool's process inherits the handler, and ends alone.
        if os.getpid() == trial:
            os.killpg(0, signal.SIGKILL)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def load_libraries(context: TrialContext) -> None:
    """Import the strategy's libraries before the clock starts.

    Forked children share the imported modules.
    """
    strategy = context.strategy
    plugins.admit([strategy.client, strategy.executor])
    executor_class = strategies.load(
        strategies.executor_spec(strategy.executor).import_path
    )
    if hasattr(executor_class, "prepare"):
        executor_class.prepare()
    strategies.load(strategies.client_spec(strategy.client).import_path)
    if distribution := strategies.retry_distribution(strategy):
        importlib.import_module(distribution.replace("-", "_"))


def make_executor(context: TrialContext) -> Executor:
    """Return the strategy's executor, not yet open. Its libraries must be loaded."""
    import_path = strategies.executor_spec(context.strategy.executor).import_path
    settings = strategies.select_settings(context.strategy, import_path)
    executor_class = strategies.load(import_path)
    executor: Executor = executor_class(CallerFactory(context), **settings)
    return executor


class _SteadyCpu:
    """Reads the CPU time of this process around the steady part of each slice."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._slices: list[list[tuple[int, float]]] = []
        """For each slice, numbers of the requests that begin, and CPU seconds."""

    def numbers_until(
        self, deadline: float, first: int = 0, least: int = 0
    ) -> RequestNumbers:
        """Return the numbers of the requests of a slice that begins now."""
        readings: list[tuple[int, float]] = []
        self._slices.append(readings)

        def read(number: int) -> None:
            readings.append((number, usage.cpu_seconds()))

        return RequestNumbers(
            None, deadline, first, least=least, slots=self._slots, on_steady=read
        )

    def sum(self) -> tuple[float, int] | tuple[None, None]:
        """Return the CPU seconds of the steady parts, and the requests begun in them.

        Return None twice if there are no steady parts.
        """
        seconds = 0.0
        requests = 0
        for readings in self._slices:
            if len(readings) > 1:
                (first, begin), (after, end) = readings[:2]
                seconds += end - begin
                requests += after - first
        return (seconds, requests) if requests else (None, None)


class _Stopwatch:
    """Counts wall and CPU seconds from `began`, when it was made."""

    def __init__(self) -> None:
        self._cpu = usage.cpu_seconds()
        self.began = perf_counter()
        self._from = self.began

    def rest(self, events: Events) -> None:
        """Stop the clock while the parent reads the processes' counters."""
        wall, cpu = self.read()
        events.send_and_wait("sent")
        self._cpu = usage.cpu_seconds() - cpu
        self._from = perf_counter() - wall

    def read(self) -> tuple[float, float]:
        return perf_counter() - self._from, usage.cpu_seconds() - self._cpu


def _run_whole(
    context: TrialContext,
    events: Events,
    import_seconds: float,
    import_cpu_seconds: float,
) -> None:
    """Measure in one piece.

    Warm: the executor is opened in the warm-up and closed after the clock. Cold: pools,
    loops, sessions and connections are made and closed inside the clock. In an open
    load, the executor is opened before the schedule begins. A cold trial of a new
    interpreter ends with its response, and includes the imports.
    """
    workload = context.workload
    schedule = arrivals_of(workload)
    executor = _warm_up(context) if context.warm else _make_cold_executor(context)
    if schedule is not None:
        pacing.prepare()
        if not context.warm:
            executor.open()
    answer = events.send_and_wait("ready")
    start = float(answer) if answer else None
    if start is not None:
        time.sleep(max(0.0, start - perf_counter()))
    clock = _Stopwatch()
    if not context.warm and schedule is None:
        executor.open()
    steady = _SteadyCpu(context.concurrency)
    began = clock.began if start is None else start
    numbers = _choose_numbers(context, schedule, began, steady)
    executor.run(numbers)
    clock.rest(events)
    closes_later = context.warm or workload.cold
    if not closes_later:
        executor.close()
    wall, cpu = clock.read()
    _report_done(
        events,
        steady,
        began=clock.began,
        wall_seconds=wall + import_seconds,
        cpu_seconds=cpu + import_cpu_seconds,
        extended=numbers.extended if numbers.count is None else None,
        import_seconds=import_seconds,
    )
    if closes_later:
        executor.close()


def _choose_numbers(
    context: TrialContext, schedule: Arrivals | None, began: float, steady: _SteadyCpu
) -> RequestNumbers:
    """Return the numbers of the requests of a load that begins at `began`."""
    load = context.workload.load
    if schedule is not None:
        begin_schedule(Path(context.folder), began)
        return PacedNumbers(schedule, began)
    if load.requests is not None:
        return RequestNumbers(load.requests)
    # At least as many requests begin as may be in flight.
    deadline = began + (load.duration or 0.0)
    return steady.numbers_until(deadline, least=context.concurrency)


def _report_done(events: Events, steady: _SteadyCpu, **figures: Any) -> None:
    """Send these fields of `Done`, and those of the process, which has done its work.

    Wait until its memory and its connections are counted.
    """
    steady_cpu, steady_requests = steady.sum()
    events.send_and_wait(
        "done",
        gil=usage.has_gil(),
        peak_rss_bytes=usage.peak_rss(),
        steady_cpu_seconds=steady_cpu,
        steady_requests=steady_requests,
        **figures,
    )


def _run_in_slices(context: TrialContext, events: Events) -> None:
    """Open the connections in the warm-up, and measure a slice whenever asked.

    The parent knows after the warm-up how many slices there are. Between its turns, the
    process waits and keeps its connections. After a long wait, it sends as many
    requests as are in flight at once. A slice ends when its last request has ended.
    """
    executor = _warm_up(context)
    cpu = 0.0
    rested = perf_counter()
    steady = _SteadyCpu(context.concurrency)
    slices: list[tuple[float, float]] = []
    count = int(events.send_and_wait("waiting"))
    length = (context.workload.load.duration or 0.0) / count
    while True:
        if perf_counter() - rested > context.rest:
            executor.run(
                RequestNumbers(context.concurrency, first=-context.concurrency)
            )
        first = int(events.send_and_wait("ready"))
        begin_slice(Path(context.folder), first)
        clock = _Stopwatch()
        executor.run(steady.numbers_until(clock.began + length, first))
        wall, used = clock.read()
        slices.append((clock.began, wall))
        cpu += used
        rested = perf_counter()
        events.send_and_wait("sent")
        if len(slices) == count:
            break
        events.send_and_wait("waiting")
    _report_done(
        events,
        steady,
        began=slices[0][0],
        wall_seconds=sum(seconds for _, seconds in slices),
        cpu_seconds=cpu,
        extended=False,
        slices=slices,
    )
    executor.close()


def _warm_up(context: TrialContext) -> Executor:
    executor = make_executor(context)
    executor.open()
    executor.run(RequestNumbers(context.warm_up, first=-context.warm_up))
    gc.collect()
    return executor


def _make_cold_executor(context: TrialContext) -> Executor:
    """Make the lab's log, and warm up the code with another executor.

    The connections of that one are closed.
    """
    if context.workload.load.warmup:
        folder = str(Path(context.folder) / WARM_UP_FOLDER)
        apart = make_executor(replace(context, folder=folder))
        if hasattr(apart, "preload"):
            apart.preload()
        apart.open()
        apart.run(RequestNumbers(context.workload.load.warmup))
        apart.close()
        del apart
        gc.collect()
    preallocate(context)
    return make_executor(context)


def _describe(error: Exception, context: TrialContext | None) -> str:
    """Return the error and its place.

    That is the line in the user's own file if it came from there, else the innermost.
    """
    if isinstance(error, PluginError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    if context is not None:
        for name in (context.strategy.executor, context.strategy.client):
            path = strategies.file_of(name)
            line = None if path is None else plugins.line_of(error, path)
            if line:
                place = f"{path}:{line}"
    return f"{type(error).__name__}: {error} ({place})"


if __name__ == "__main__":
    main(sys.argv[1:])
