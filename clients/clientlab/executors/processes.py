"""Pools of processes, each with its own client: one request, one chunk or one event
loop per task; and a program.

asyncio is imported only for the executor with event loops: the memory of the others
would grow by it.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
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
from typing import TYPE_CHECKING

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
_callers: list[Caller] = []  # its only caller of a blocking client
_loops: dict[
    int, tuple[asyncio.Runner, AsyncCaller]
] = {}  # connections → event loop and caller; usually one entry
_meetings: list[
    Barrier
] = []  # the barrier at which all pool processes meet once, before the measured part
_sources: list[
    Callable[[float], PacedNumbers]
] = []  # returns the numbers of the open load, given when it began


def _share(
    context: ExecutorContext, meeting: Barrier | None, counter: Synchronized[int] | None
) -> None:
    """Initialize a pool process: only now can it be given a barrier, and the counter of
    an open load.
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
        message = (
            f"not all processes of the pool had started after {MEETING_SECONDS:g} s;"
            " lower -c"
        )
        raise LabError(message) from None


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
    """After the first task, wait until every process has done its first task: then all
    of them are there, and warm.
    """
    if _meetings:
        with contextlib.suppress(
            threading.BrokenBarrierError
        ):  # some processes never arrived
            _meetings.pop().wait(MEETING_SECONDS)


def _send_paced(began: float) -> None:
    _callers[0].send_all(_sources[0](began))


def _send_until(
    share: tuple[float | None, int, int, int], most: int | None = None
) -> bool:
    """Send a share of the numbers, or the first of them.

    Return whether requests were begun after the deadline.
    """
    deadline, first, step, least = share
    numbers = RequestNumbers(None, deadline, first, step, least=least)
    _callers[0].send_all(itertools.islice(numbers, most))
    return numbers.extended


@ExecutorSpec("processes", size="processes")
class Processes(Executor):
    """ProcessPoolExecutor.map with one request per task, one process per request in
    flight.

    With a duration, only a few tasks are queued ahead. In an open load, all processes
    are there before the schedule begins, and the next free one takes the next number.
    """

    def __init__(
        self, context: ExecutorContext, *, start_method: str = START_METHOD
    ) -> None:
        super().__init__(context)
        self._multiprocessing = multiprocessing.get_context(start_method)

    def preload(self) -> None:
        _preload(self._multiprocessing, partial(_send_first, self._context))

    def open(self) -> None:
        processes = self._context.concurrency
        is_paced = self._context.schedule is not None
        meeting = (
            self._multiprocessing.Barrier(processes)
            if self._context.warm or is_paced
            else None
        )
        shared = (
            self._context,
            meeting,
            self._multiprocessing.Value("q", 0) if is_paced else None,
        )
        self._pool = ProcessPoolExecutor(
            processes, self._multiprocessing, initializer=_open_caller, initargs=shared
        )
        if is_paced and not self._context.warm:
            deque(self._pool.map(_arrive, range(processes)), maxlen=0)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            deque(
                self._pool.map(
                    _send_paced, [numbers.began] * self._context.concurrency
                ),
                maxlen=0,
            )
        elif numbers.count is not None:
            self._run_count(numbers)
        else:
            self._run_until_over(numbers)

    def close(self) -> None:
        self._pool.shutdown()

    def _run_count(self, numbers: Iterable[int]) -> None:
        deque(self._pool.map(_send, numbers), maxlen=0)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        """Send until the deadline.

        A process looks at the clock before it sends, so no queued task is late.
        """
        ended, left, extended = queue.SimpleQueue[Future[bool]](), 0, False
        for number in numbers:
            task = (
                numbers.deadline,
                number,
                1,
                int(number < numbers.first + numbers.least),
            )
            self._pool.submit(_send_until, task, most=1).add_done_callback(ended.put)
            left += 1
            if left == TASKS_AHEAD * self._context.concurrency:
                extended |= ended.get().result()
                left -= 1
        for _ in range(left):
            extended |= ended.get().result()
        numbers.extended = extended


@ExecutorSpec("process-chunks", size="processes")
class ProcessChunks(Processes):
    """ProcessPoolExecutor.map with one chunk of the requests per process."""

    def _run_count(self, numbers: Iterable[int]) -> None:
        every, processes = list(numbers), self._context.concurrency
        ends = [len(every) * index // processes for index in range(processes + 1)]
        chunks = [
            every[start:end] for start, end in itertools.pairwise(ends) if start < end
        ]
        deque(self._pool.map(_send_chunk, chunks), maxlen=0)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        processes = self._context.concurrency
        least = -(-numbers.least // processes)
        shares = [
            (numbers.deadline, numbers.first + index, processes, least)
            for index in range(processes)
        ]
        numbers.extended = any(
            list(self._pool.map(_send_until, shares))
        )  # all of them have to end


@ExecutorSpec("async-processes", "asyncio", needs_count=True, clock_first=True)
class AsyncioProcesses(Executor):
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
        super().__init__(context)
        self._processes = chunks + 1  # the last one for the remainder
        self._chunks = chunks
        self._loop = loop
        self._multiprocessing = multiprocessing.get_context(start_method)
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
        self._connections = [
            self._context.concurrency // self._processes
        ] * self._processes
        shared = (
            self._context,
            self._multiprocessing.Barrier(self._processes),
            self._multiprocessing.Value("q", 0),
        )
        self._pool = ProcessPoolExecutor(
            self._processes, self._multiprocessing, initializer=_share, initargs=shared
        )
        if self._context.schedule is not None:
            arrive = partial(_arrive_with_loop, self._context, self._loop)
            deque(self._pool.map(arrive, self._connections), maxlen=0)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            deque(
                self._pool.map(_spawn_paced, [numbers.began] * self._processes),
                maxlen=0,
            )
            return
        every = list(numbers)
        if not self._shares_equally:
            parts = share_out(every, self._chunks, self._context.concurrency)
        else:  # the warm-up warms the clients that the measured part will use
            shares = (
                every[index :: self._processes] for index in range(self._processes)
            )
            parts = [*zip(shares, self._connections, strict=True)]
        deque(
            self._pool.map(
                partial(_gather, self._context, self._loop), *zip(*parts, strict=True)
            ),
            maxlen=0,
        )

    def close(self) -> None:
        self._pool.shutdown()


def share_out(
    numbers: list[int], chunks: int, concurrency: int
) -> list[tuple[list[int], int]]:
    """Return chunks of numbers, each with its share of connections; the shares add up
    to at most `concurrency`.

    There are fewer chunks if a chunk would get no number or no connection.
    """
    chunks = max(1, min(chunks, len(numbers), concurrency - 1))
    size = len(numbers) // chunks
    rest = numbers[chunks * size :]
    for_rest = min(len(rest), concurrency // (chunks + 1)) if rest else 0
    share = (concurrency - for_rest) // chunks
    parts = [(numbers[i * size : (i + 1) * size], share) for i in range(chunks)]
    return [*parts, (rest, for_rest)] if rest else parts


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
    """Return an event loop and a caller of this process, which stay open
    until it ends.
    """
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
        requests, in_flight, driven = (
            numbers.count or 0,
            self._context.concurrency,
            self._driven,
        )
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
            *_, last = (
                "it printed nothing",
                *filter(str.strip, ended.stderr.splitlines()),
            )
            raise RuntimeError(
                f"{command[0]} ended with code {ended.returncode}: {last.strip()}"
            )
        driven.finish(
            began,
            driven.client.report(ended.stdout, driven.folder, requests, in_flight),
        )

    def close(self) -> None:
        self._driven.close()
