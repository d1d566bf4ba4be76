"""asyncio in one process: one task, all requests at once, bounded by a semaphore, or by worker tasks."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, spawn_each


async def start_each(numbers: RequestNumbers, send: Callable[[int], Awaitable[None]]) -> None:
    """Start a coroutine for each request: all at once, or in an open load each when it is due."""
    if isinstance(numbers, PacedNumbers):
        await spawn_each(numbers, send)
    else:
        await asyncio.gather(*(send(number) for number in numbers))


class _OneLoop(ABC):
    """An event loop and a caller that live from `open` to `close`."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._context.aopen(self._context.concurrency))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()

    @abstractmethod
    async def _run(self, numbers: RequestNumbers) -> None:
        """Send every number once."""


class AsyncSerial(_OneLoop):
    """A loop of awaits in one task."""

    async def _run(self, numbers: RequestNumbers) -> None:
        await self._call.send_all(numbers)


class Gather(_OneLoop):
    """`asyncio.gather` over all requests. Only the connection pool of the client bounds them.

    The clock of a request already runs while the request waits for a pooled connection.
    """

    async def _run(self, numbers: RequestNumbers) -> None:
        await start_each(numbers, self._call)


class Unbounded(Gather):
    """`Gather` with as many connections as requests: nothing bounds them."""


class AsCompleted(_OneLoop):
    """`asyncio.as_completed` over all requests, bounded like `Gather`."""

    async def _run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            await spawn_each(numbers, self._call)
            return
        for done in asyncio.as_completed([self._call(number) for number in numbers]):
            await done


class Semaphore(_OneLoop):
    """`asyncio.gather` over all requests. Each waits for a semaphore before its clock starts."""

    async def _run(self, numbers: RequestNumbers) -> None:
        gate = asyncio.Semaphore(self._context.concurrency)

        async def one(number: int) -> None:
            async with gate:
                await self._call(number)

        await start_each(numbers, one)


class WorkerTasks(_OneLoop):
    """One task per request in flight. Each takes the next number, and in an open load waits for its planned start."""

    async def _run(self, numbers: RequestNumbers) -> None:
        tasks = range(self._context.concurrency)
        await asyncio.gather(*(self._call.send_all(numbers) for _ in tasks))
