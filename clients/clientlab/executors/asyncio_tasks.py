"""asyncio in one process: all at once, bounded by a semaphore, or drawn by worker tasks."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from clientlab.executors.shape import LOOP, AsyncCaller, Bench, Numbers


class _OneLoop(ABC):
    """A loop and a caller that live from `open` to `close`."""

    def __init__(self, bench: Bench, *, loop: str = LOOP) -> None:
        self._bench = bench
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(loop_factory=self._bench.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._bench.aopen(self._bench.concurrency))

    def run(self, numbers: Numbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()

    @abstractmethod
    async def _run(self, numbers: Numbers) -> None:
        """Send every number once."""


class Gather(_OneLoop):
    """`asyncio.gather` over all requests: the client's pool is all that bounds them.

    A request that waits for a connection of the pool is already on the clock.
    """

    async def _run(self, numbers: Numbers) -> None:
        await asyncio.gather(*(self._call(number) for number in numbers))


class Unbounded(Gather):
    """The same with as many connections as requests: nothing bounds them at all."""


class AsCompleted(_OneLoop):
    """`asyncio.as_completed` over all requests, each answer taken as it comes: bounded as `Gather` is."""

    async def _run(self, numbers: Numbers) -> None:
        for done in asyncio.as_completed([self._call(number) for number in numbers]):
            await done


class Semaphore(_OneLoop):
    """`asyncio.gather` over all requests, each waiting for a semaphore, off the clock."""

    async def _run(self, numbers: Numbers) -> None:
        gate = asyncio.Semaphore(self._bench.concurrency)

        async def one(number: int) -> None:
            async with gate:
                await self._call(number)

        await asyncio.gather(*(one(number) for number in numbers))


class Workers(_OneLoop):
    """As many tasks as there may be requests in flight, each drawing its next."""

    async def _run(self, numbers: Numbers) -> None:
        tasks = range(self._bench.concurrency)
        await asyncio.gather(*(self._call.drain(numbers) for _ in tasks))
