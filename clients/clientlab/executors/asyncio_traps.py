"""Traps of asyncio: a client that blocks the event loop, and thread-sensitive calls that share one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from asgiref.sync import sync_to_async

from clientlab.executors.interfaces import LOOP, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, spawn_each


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
