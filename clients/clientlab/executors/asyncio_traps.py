"""Traps of asyncio: a client that blocks the event loop, and thread-sensitive calls that share one thread."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from clientlab.executors.interfaces import LOOP, ExecutorContext, Numbers


class BlockingInCoroutines:
    """`asyncio.gather` over coroutines that call a blocking client. Each call blocks the loop."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._call = self._context.open(connections=1)
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))

    def run(self, numbers: Numbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.close()
        self._call.close()

    async def _run(self, numbers: Numbers) -> None:
        async def one(number: int) -> None:
            self._call(number)

        await asyncio.gather(*(one(number) for number in numbers))


class ThreadSensitive(BlockingInCoroutines):
    """`sync_to_async` with its default, thread-sensitive: all calls share one thread."""

    async def _run(self, numbers: Numbers) -> None:
        call = sync_to_async(self._call)
        await asyncio.gather(*(call(number) for number in numbers))
