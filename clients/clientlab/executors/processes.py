"""Pools of processes, each with its own client; and an external program.

A task is one request, one chunk or one event loop. asyncio is imported only for the
executor with event loops, because it would add to the memory of the others.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import multiprocessing
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import util
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Barrier
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clientlab.errors import LabError
from clientlab.executors.executor_interface import (
    LOOP,
    TASKS_AHEAD,
    AsyncCaller,
    Caller,
    Executor,
    ExecutorContext,
    ExecutorSpec,
    RequestNumbers,
)
from clientlab.executors.pacing import PacedNumbers, prepare, spawn_each

if TYPE_CHECKING:
    import asyncio
    from multiprocessing.sharedctypes import Synchronized

# Explicit, because Python 3.14 changed the default. The articles ran fork, which is
# cheap; system libraries of macOS do not survive a fork.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

MEETING_SECONDS = 20.0

# In a pool process:
_callers: list[Caller] = []
"""Its only caller of a blocking client."""
_loops: dict[int, tuple[asyncio.Runner, AsyncCaller]] = {}
"""Connections → event loop and caller; usually one entry."""
_meetings: list[Barrier] = []
"""The barrier at which all pool processes meet once, before the measured part."""
_sources: list[Callable[[float], PacedNumbers]] = []
"""Returns the numbers of the open load, given when it began."""


def _share(
    context: ExecutorContext, meeting: Barrier | None, counter: Synchronized[int] | None
) -> None:
    """Initialize a pool process.

    Only now can it be given a barrier, and the counter of an open load.
    """
    if meeting is not None:
        _meetings.append(meeting)
    schedule = context.schedule
    if counter is None or schedule is None:
        return

    def take() -> int:
        with counter.get_lock():
            counter.value += 1
            return counter.value - 1

    _sources.append(lambda began: PacedNumbers(schedule, began, take))


def _open_caller(
    context: ExecutorContext, meeting: Barrier | None, counter: Synchronized[int] | None
) -> None:
    _share(context, meeting, counter)
    caller = context.open(connections=1)
    _callers.append(caller)
    # Pool processes do not run `atexit` functions, but they run finalizers.
    util.Finalize(None, caller.close, exitpriority=10)


def _arrive(_index: int = 0) -> None:
    """Wait until every process of the pool is here.

    Raises LabError if some have not come in time.
    """
    prepare()
    try:
        _meetings[0].wait(MEETING_SECONDS)
    except threading.BrokenBarrierError:
        raise LabError(
            f"not all processes of the pool had started after {MEETING_SECONDS:g} s;"
            " lower -c"
        ) from None


def _preload(method: BaseContext, send_first: Callable[[], list[str]]) -> None:
    """Import the modules that a first request needs, before the pool is forked.

    A process of its own sends that request: pyqwest starts threads, and hangs in a
    process that is forked later. Spawned processes share no imports.
    """
    if method.get_start_method() == "spawn":
        return
    with ProcessPoolExecutor(1, multiprocessing.get_context(START_METHOD)) as pool:
        names = pool.submit(send_first).result()
    if method.get_start_method() == "forkserver":
        method.set_forkserver_preload(names)
    for name in names:
        with contextlib.suppress(ImportError):  # a library made this module itself
            importlib.import_module(name)


def _send_first(context: ExecutorContext) -> list[str]:
    """Send a request, and return the names of all modules that are imported then."""
    _open_caller(context, None, None)
    _callers[0](0)
    return list(sys.modules)


def _send_first_with_loop(context: ExecutorContext, loop: str) -> list[str]:
    runner, call = _open_loop(context, loop, 1)
    runner.run(call(0))
    return list(sys.modules)


def _send(number: int) -> None:
    _callers[0](number)
    _meet()


def _send_chunk(numbers: list[int]) -> None:
    _callers[0].send_all(numbers)
    _meet()


def _meet() -> None:
    """After the first task, wait until every process has done its first task.

    Then all of them are there, and warm.
    """
    if _meetings:
        meeting = _meetings.pop()
        with contextlib.suppress(threading.BrokenBarrierError):  # some never arrived
            meeting.wait(MEETING_SECONDS)


def _send_paced(began: float) -> None:
    _callers[0].send_all(_sources[0](began))


def _send_until(
    deadline: float | None, first: int, step: int, least: int, most: int | None = None
) -> bool:
    """Send a share of the numbers: all of them, or at most `most`.

    Return whether requests were begun after the deadline.
    """
    numbers = RequestNumbers(None, deadline, first, step, least=least)
    _callers[0].send_all(itertools.islice(numbers, most))
    return numbers.extended


class _PoolExecutor(Executor):
    """Functions of this module, called in a pool of processes."""

    _pool: ProcessPoolExecutor

    def __init__(
        self, context: ExecutorContext, *, start_method: str = START_METHOD
    ) -> None:
        super().__init__(context)
        self._multiprocessing = multiprocessing.get_context(start_method)

    def close(self) -> None:
        self._pool.shutdown()

    def _call_each(self, function: Callable[..., None], *values: Iterable[Any]) -> None:
        """Call a function for each of the values, and wait until all have ended."""
        deque(self._pool.map(function, *values), maxlen=0)


@ExecutorSpec("processes", size="processes")
class Processes(_PoolExecutor):
    """ProcessPoolExecutor.map with one request per task, one process per request in
    flight.

    With a duration, only a few tasks are queued ahead. In an open load, all processes
    are there before the schedule begins, and the next free one takes the next number.
    """

    def preload(self) -> None:
        _preload(self._multiprocessing, partial(_send_first, self._context))

    def open(self) -> None:
        processes = self._context.concurrency
        is_paced = self._context.schedule is not None
        meeting = None
        counter = None
        if self._context.warm or is_paced:
            meeting = self._multiprocessing.Barrier(processes)
        if is_paced:
            counter = self._multiprocessing.Value("q", 0)
        self._pool = ProcessPoolExecutor(
            processes,
            self._multiprocessing,
            initializer=_open_caller,
            initargs=(self._context, meeting, counter),
        )
        if is_paced and not self._context.warm:
            self._call_each(_arrive, range(processes))

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            self._call_each(_send_paced, [numbers.began] * self._context.concurrency)
        elif numbers.count is not None:
            self._run_count(numbers)
        else:
            self._run_until_over(numbers)

    def _run_count(self, numbers: Iterable[int]) -> None:
        self._call_each(_send, numbers)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        """Send until the deadline.

        A process looks at the clock before it sends, so no queued task is late.
        """
        ended = queue.SimpleQueue[Future[bool]]()
        guaranteed = numbers.first + numbers.least
        most_left = TASKS_AHEAD * self._context.concurrency
        left = 0
        extended = False
        for number in numbers:
            least = 1 if number < guaranteed else 0
            task = self._pool.submit(
                _send_until, numbers.deadline, number, 1, least, most=1
            )
            task.add_done_callback(ended.put)
            left += 1
            if left == most_left:
                extended |= ended.get().result()
                left -= 1
        for _ in range(left):
            extended |= ended.get().result()
        numbers.extended = extended


@ExecutorSpec("process-chunks", size="processes")
class ProcessChunks(Processes):
    """ProcessPoolExecutor.map with one chunk of the requests per process."""

    def _run_count(self, numbers: Iterable[int]) -> None:
        every = list(numbers)
        processes = self._context.concurrency
        ends = [len(every) * index // processes for index in range(processes + 1)]
        chunks = [
            every[start:end] for start, end in itertools.pairwise(ends) if start < end
        ]
        self._call_each(_send_chunk, chunks)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        processes = self._context.concurrency
        share = partial(
            _send_until,
            numbers.deadline,
            step=processes,
            least=math.ceil(numbers.least / processes),
        )
        firsts = range(numbers.first, numbers.first + processes)
        extended = list(self._pool.map(share, firsts))  # all of them have to end
        numbers.extended = any(extended)


@ExecutorSpec("async-processes", "asyncio", needs_count=True, clock_first=True)
class AsyncioProcesses(_PoolExecutor):
    """asyncio.gather over one chunk in each of 6 processes, and in a further one for
    the remainder.

    Every process has its own connection pool. `concurrency` is divided among the
    processes. With warm connections or an open load, there are `chunks` processes with
    equal shares. In an open load, the next free one takes the next number when it is
    due, and starts a task for it.
    """

    def __init__(
        self,
        context: ExecutorContext,
        *,
        chunks: int = 6,
        start_method: str = START_METHOD,
        loop: str = LOOP,
    ) -> None:
        super().__init__(context, start_method=start_method)
        self._processes = chunks + 1  # the last one for the remainder
        self._chunks = chunks
        self._loop = loop
        self._shares_equally = context.warm or context.schedule is not None

    @classmethod
    def import_library(cls) -> None:
        importlib.import_module("asyncio")

    def preload(self) -> None:
        send_first = partial(_send_first_with_loop, self._context, self._loop)
        _preload(self._multiprocessing, send_first)

    def open(self) -> None:
        if not self._shares_equally:
            self._pool = ProcessPoolExecutor(self._processes, self._multiprocessing)
            return
        self._processes = min(self._chunks, self._context.concurrency)
        share = self._context.concurrency // self._processes
        self._connections = [share] * self._processes
        meeting = self._multiprocessing.Barrier(self._processes)
        counter = self._multiprocessing.Value("q", 0)
        self._pool = ProcessPoolExecutor(
            self._processes,
            self._multiprocessing,
            initializer=_share,
            initargs=(self._context, meeting, counter),
        )
        if self._context.schedule is not None:
            arrive = partial(_arrive_with_loop, self._context, self._loop)
            self._call_each(arrive, self._connections)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            self._call_each(_spawn_paced, [numbers.began] * self._processes)
            return
        every = list(numbers)
        gather = partial(_gather, self._context, self._loop)
        if self._shares_equally:
            # The warm-up warms the clients that the measured part will use.
            shares = [
                every[index :: self._processes] for index in range(self._processes)
            ]
            self._call_each(gather, shares, self._connections)
        else:
            parts = share_out(every, self._chunks, self._context.concurrency)
            self._call_each(gather, *zip(*parts, strict=True))


def share_out(
    numbers: list[int], chunks: int, concurrency: int
) -> list[tuple[list[int], int]]:
    """Return chunks of numbers, each with its share of connections.

    The shares add up to at most `concurrency`. There are fewer chunks if a chunk would
    get no number or no connection.
    """
    chunks = max(1, min(chunks, len(numbers), concurrency - 1))
    size = len(numbers) // chunks
    rest = numbers[chunks * size :]
    for_rest = min(len(rest), concurrency // (chunks + 1))
    share = (concurrency - for_rest) // chunks
    parts = [(numbers[i * size : (i + 1) * size], share) for i in range(chunks)]
    if rest:
        parts.append((rest, for_rest))
    return parts


def _arrive_with_loop(context: ExecutorContext, loop: str, connections: int) -> None:
    """Be there before the schedule begins, with an event loop and a client."""
    _open_loop(context, loop, connections)
    _arrive()


def _spawn_paced(began: float) -> None:
    ((runner, call),) = _loops.values()
    runner.run(spawn_each(_sources[0](began), call))


def _gather(
    context: ExecutorContext, loop: str, numbers: list[int], connections: int
) -> None:
    import asyncio  # noqa: PLC0415 - see above

    runner, call = _open_loop(context, loop, connections)

    async def gather() -> None:
        await asyncio.gather(*(call(number) for number in numbers))

    runner.run(gather())
    _meet()


def _open_loop(
    context: ExecutorContext, loop: str, connections: int
) -> tuple[asyncio.Runner, AsyncCaller]:
    """Return an event loop and a caller, which stay open until this process ends."""
    import asyncio  # noqa: PLC0415 - see above

    if connections not in _loops:
        runner = asyncio.Runner(loop_factory=context.loop_factory(loop))
        call: AsyncCaller = runner.run(context.aopen(connections))
        util.Finalize(None, runner.close, exitpriority=9)
        util.Finalize(None, lambda: runner.run(call.close()), exitpriority=10)
        _loops[connections] = runner, call
    return _loops[connections]


@ExecutorSpec("program", "program", needs_count=True)
class Program(Executor):
    """Starts the client's program once, which sends all requests itself."""

    def open(self) -> None:
        self._driven = self._context.drive()

    def run(self, numbers: RequestNumbers) -> None:
        driven = self._driven
        requests = numbers.count or 0
        in_flight = self._context.concurrency
        command = driven.client.command(
            driven.request, requests, in_flight, driven.folder
        )
        began = perf_counter()
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            lines = ended.stderr.strip().splitlines() or ["it printed nothing"]
            raise RuntimeError(
                f"{command[0]} ended with code {ended.returncode}: {lines[-1].strip()}"
            )
        report = driven.client.report(ended.stdout, driven.folder, requests, in_flight)
        driven.finish(began, report)

    def close(self) -> None:
        self._driven.close()
