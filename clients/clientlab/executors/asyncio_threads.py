"""asyncio in several threads of one process: each thread has an event loop and a client of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers

_Home = tuple[asyncio.Runner, AsyncCaller, int]
"""What a thread holds: an event loop, a caller, and the number of its tasks."""
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


class AsyncioThreads:
    """`threads` threads, and in each of them one task per request in flight, which takes the next number.

    Requests in flight and connections are divided among the threads. All threads take from the same numbers. Without a
    GIL, each of them can use a core.
    """

    def __init__(self, context: ExecutorContext, *, threads: int = 4, loop: str = LOOP) -> None:
        self._context = context
        self._threads = min(threads, context.concurrency)
        self._loop = loop
        self._warms_up = context.warm

    def open(self) -> None:
        shares = [len(range(index, self._context.concurrency, self._threads)) for index in range(self._threads)]
        self._pools = [ThreadPoolExecutor(1) for _ in shares]
        self._homes = self._in_each_thread(self._open_home, shares)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            parts: list[Iterable[int]] = [*numbers.split(self._threads)]
        elif self._warms_up:  # the first thread could take them all before the last one has begun
            every = list(numbers)
            parts = [iter(every[index :: self._threads]) for index in range(self._threads)]
        else:
            parts = [iter(numbers)] * self._threads
        self._warms_up = False
        self._in_each_thread(_send, [*zip(self._homes, parts, strict=True)])

    def close(self) -> None:
        self._in_each_thread(_close_home, self._homes)
        for pool in self._pools:
            pool.shutdown()

    def _open_home(self, tasks: int) -> _Home:
        runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))
        return runner, runner.run(self._context.aopen(tasks)), tasks

    def _in_each_thread(self, function: Callable[[_Given], _Result], given: Sequence[_Given]) -> list[_Result]:
        """Call the function in all threads at once. Raises what one of them raised."""
        calls = [pool.submit(function, one) for pool, one in zip(self._pools, given, strict=True)]
        return [call.result() for call in calls]


def _send(work: tuple[_Home, Iterable[int]]) -> None:
    (runner, caller, tasks), numbers = work

    async def send() -> None:
        await asyncio.gather(*(caller.send_all(numbers) for _ in range(tasks)))

    runner.run(send())


def _close_home(home: _Home) -> None:
    runner, caller, _ = home
    runner.run(caller.close())
    runner.close()
