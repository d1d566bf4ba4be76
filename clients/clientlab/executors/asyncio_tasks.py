"""asyncio in one process: all requests at once, bounded by a semaphore, by worker tasks, or in a trap of asyncio."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from asgiref.sync import sync_to_async

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, spawn_each


class _OneLoop(ABC):
    """An event loop and a caller that live from `open` to `close`."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._context.aopen(self._context.concurrency))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run_paced(numbers) if isinstance(numbers, PacedNumbers) else self._run(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()

    @abstractmethod
    async def _run(self, numbers: RequestNumbers) -> None:
        """Send every number once."""

    async def _run_paced(self, numbers: PacedNumbers) -> None:
        """Send every number when it is due: a task for each."""
        await spawn_each(numbers, self._call)


class Gather(_OneLoop):
    """`asyncio.gather` over all requests. Only the connection pool of the client bounds them.

    The clock of a request already runs while the request waits for a pooled connection.
    """

    async def _run(self, numbers: RequestNumbers) -> None:
        await asyncio.gather(*(self._call(number) for number in numbers))


class Unbounded(Gather):
    """`Gather` with as many connections as requests: nothing bounds them."""


class AsCompleted(_OneLoop):
    """`asyncio.as_completed` over all requests, bounded like `Gather`."""

    async def _run(self, numbers: RequestNumbers) -> None:
        for done in asyncio.as_completed([self._call(number) for number in numbers]):
            await done


class Semaphore(_OneLoop):
    """`asyncio.gather` over all requests. Each waits for a semaphore before its clock starts."""

    async def _run(self, numbers: RequestNumbers) -> None:
        one = self._behind_gate()
        await asyncio.gather(*(one(number) for number in numbers))

    async def _run_paced(self, numbers: PacedNumbers) -> None:
        await spawn_each(numbers, self._behind_gate())

    def _behind_gate(self) -> Callable[[int], Awaitable[None]]:
        gate = asyncio.Semaphore(self._context.concurrency)

        async def one(number: int) -> None:
            async with gate:
                await self._call(number)

        return one


class WorkerTasks(_OneLoop):
    """One task per request in flight. Each task takes the next number."""

    async def _run(self, numbers: RequestNumbers) -> None:
        tasks = range(self._context.concurrency)
        await asyncio.gather(*(self._call.send_all(numbers) for _ in tasks))

    async def _run_paced(self, numbers: PacedNumbers) -> None:
        """Each task takes the next number and waits for its planned start."""
        await self._run(numbers)


class BlockingInCoroutines:
    """`asyncio.gather` over coroutines that call a blocking client. Each call blocks the loop."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._call = self._context.open(connections=1)
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.close()
        self._call.close()

    async def _run(self, numbers: RequestNumbers) -> None:
        async def one(number: int) -> None:
            self._call(number)

        await _start_each(numbers, one)


class ThreadSensitive(BlockingInCoroutines):
    """`sync_to_async` with its default, thread-sensitive: all calls share one thread."""

    async def _run(self, numbers: RequestNumbers) -> None:
        await _start_each(numbers, sync_to_async(self._call))


async def _start_each(numbers: RequestNumbers, send: Callable[[int], Awaitable[None]]) -> None:
    """Start a coroutine for each request: all at once, or in an open load each when it is due."""
    if isinstance(numbers, PacedNumbers):
        await spawn_each(numbers, send)
    else:
        await asyncio.gather(*(send(number) for number in numbers))
