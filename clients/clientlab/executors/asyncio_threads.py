"""asyncio in several threads of one process: each thread has an event loop and a client of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers


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
        self._loops = [_LoopThread(self._context, self._loop, share) for share in shares]
        _wait(thread.do(thread.open) for thread in self._loops)

    def run(self, numbers: RequestNumbers) -> None:
        parts = self._parts(numbers)
        self._warms_up = False
        _wait(thread.do(thread.send, part) for thread, part in zip(self._loops, parts, strict=True))

    def close(self) -> None:
        _wait(thread.do(thread.close) for thread in self._loops)
        for thread in self._loops:
            thread.end()

    def _parts(self, numbers: RequestNumbers) -> list[Iterable[int]]:
        """What each thread iterates over."""
        if isinstance(numbers, PacedNumbers):
            return [*numbers.split(self._threads)]
        if self._warms_up:  # the first thread could take them all before the last one has begun
            every = list(numbers)
            return [iter(every[index :: self._threads]) for index in range(self._threads)]
        shared = iter(numbers)
        return [shared] * self._threads


class _LoopThread:
    """A thread with an event loop and a caller. Its methods but `do` and `end` are called in the thread."""

    def __init__(self, context: ExecutorContext, loop: str, tasks: int) -> None:
        self._context = context
        self._loop = loop
        self._tasks = tasks
        self._pool = ThreadPoolExecutor(1)

    def do(self, method: Callable[..., None], *arguments: Iterable[int]) -> Future[None]:
        """Call a method in the thread."""
        return self._pool.submit(method, *arguments)

    def end(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def open(self) -> None:
        """Make the loop and the client."""
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._context.aopen(self._tasks))

    def send(self, numbers: Iterable[int]) -> None:
        """Send the requests of these numbers."""
        self._runner.run(self._send(numbers))

    def close(self) -> None:
        """Close both."""
        self._runner.run(self._call.close())
        self._runner.close()

    async def _send(self, numbers: Iterable[int]) -> None:
        await asyncio.gather(*(self._call.send_all(numbers) for _ in range(self._tasks)))


def _wait(futures: Iterable[Future[None]]) -> None:
    """Wait for calls that all threads have begun. Raises what one of them raised."""
    for future in list(futures):
        future.result()
