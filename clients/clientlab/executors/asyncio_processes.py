"""asyncio in several processes: equal chunks of requests, with one event loop and one client per process."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import util
from multiprocessing.synchronize import Barrier

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, spawn_each
from clientlab.executors.processes import START_METHOD, SharedCounter, arrive

_Part = tuple[ExecutorContext, str, int]
"""Context, name of the event loop, connections."""

# In a pool process:
_sources: list[tuple[SharedCounter, Barrier]] = []  # the numbers of an open load, and where all processes meet
_homes: dict[int, tuple[asyncio.Runner, AsyncCaller]] = {}  # connections → event loop and caller; usually one entry


class AsyncioProcesses:
    """`chunks` equal chunks and one for the remainder. Each process gathers all requests of its chunk.

    Every process has its own connection pool. `concurrency` is divided among the processes. In an open load, there are
    `chunks` processes. Whichever is free takes the next number when it is due, and starts a task for it.
    """

    def __init__(
        self,
        context: ExecutorContext,
        *,
        chunks: int = 6,
        processes: int | None = None,
        start_method: str = START_METHOD,
        loop: str = LOOP,
    ) -> None:
        self._context = context
        self._processes = processes or chunks + 1
        self._chunks = chunks
        self._loop = loop
        self._multiprocessing = multiprocessing.get_context(start_method)

    def open(self) -> None:
        if self._context.schedule is None:
            self._pool = ProcessPoolExecutor(self._processes, self._multiprocessing)
            return
        self._processes = min(self._chunks, self._context.concurrency)
        # What a process of an open load gets: its share of the connections.
        self._part = self._context, self._loop, self._context.concurrency // self._processes
        shared = SharedCounter(self._multiprocessing), self._multiprocessing.Barrier(self._processes)
        self._pool = ProcessPoolExecutor(
            self._processes, self._multiprocessing, initializer=_share, initargs=(self._context, *shared)
        )
        deque(self._pool.map(_arrive, [self._part] * self._processes), maxlen=0)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            deque(self._pool.map(_send_paced, [(self._part, numbers.began)] * self._processes), maxlen=0)
            return
        every = list(numbers)
        if self._context.schedule is None:
            parts = share_out(every, self._chunks, self._context.concurrency)
        else:  # the warm-up warms the clients that the schedule will use
            parts = [(every[index :: self._processes], self._part[2]) for index in range(self._processes)]
        deque(self._pool.map(_gather, [(self._context, self._loop, *part) for part in parts]), maxlen=0)

    def close(self) -> None:
        self._pool.shutdown()


def share_out(numbers: list[int], chunks: int, concurrency: int) -> list[tuple[list[int], int]]:
    """Return chunks of numbers, each with its share of connections; the shares add up to at most `concurrency`.

    There are fewer chunks if a chunk would get no number or no connection.
    """
    chunks = max(1, min(chunks, len(numbers), concurrency - 1))
    size = len(numbers) // chunks
    rest = numbers[chunks * size :]
    for_rest = min(len(rest), concurrency // (chunks + 1)) if rest else 0
    share = (concurrency - for_rest) // chunks
    parts = [(numbers[i * size : (i + 1) * size], share) for i in range(chunks)]
    return [*parts, (rest, for_rest)] if rest else parts


def _share(context: ExecutorContext, counter: SharedCounter, meeting: Barrier) -> None:
    if context.schedule is not None:
        _sources.append((counter, meeting))


def _arrive(part: _Part) -> None:
    """Be there before the schedule begins, with an event loop and a client."""
    _home(*part)
    arrive(_sources[0][1])


def _send_paced(task: tuple[_Part, float]) -> None:
    part, began = task
    runner, call = _home(*part)
    schedule = part[0].schedule
    if schedule is not None:
        runner.run(spawn_each(PacedNumbers(schedule, began, _sources[0][0].take), call))


def _gather(part: tuple[ExecutorContext, str, list[int], int]) -> None:
    context, loop, numbers, connections = part
    runner, call = _home(context, loop, connections)

    async def gather() -> None:
        await asyncio.gather(*(call(number) for number in numbers))

    runner.run(gather())


def _home(context: ExecutorContext, loop: str, connections: int) -> tuple[asyncio.Runner, AsyncCaller]:
    if connections not in _homes:
        runner = asyncio.Runner(loop_factory=context.loop_factory(loop))
        call: AsyncCaller = runner.run(context.aopen(connections))
        # Pool processes do not run `atexit` functions, but they run finalizers.
        util.Finalize(None, _close, args=(runner, call), exitpriority=10)
        _homes[connections] = runner, call
    return _homes[connections]


def _close(runner: asyncio.Runner, call: AsyncCaller) -> None:
    runner.run(call.close())
    runner.close()
