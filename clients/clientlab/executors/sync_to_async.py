"""A blocking client under asyncio: `sync_to_async` runs each request in a thread pool."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async

from clientlab.executors.executor_interface import LOOP, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, spawn_each


class SyncToAsync:
    """`asyncio.gather` over `sync_to_async(thread_sensitive=False)`, with a thread pool of size `concurrency`."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._pool = ThreadPoolExecutor(self._context.concurrency)
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.close()
        self._pool.shutdown()
        self._call.close()

    async def _run(self, numbers: RequestNumbers) -> None:
        call = sync_to_async(self._call, thread_sensitive=False, executor=self._pool)
        if isinstance(numbers, PacedNumbers):
            await spawn_each(numbers, call)
        else:
            await asyncio.gather(*(call(number) for number in numbers))
