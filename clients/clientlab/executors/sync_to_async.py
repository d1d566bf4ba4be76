"""A blocking client under asyncio: called by the event loop itself, or by `sync_to_async` in one thread or in many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async

from clientlab.executors.asyncio_tasks import start_each
from clientlab.executors.executor_interface import LOOP, ExecutorContext, RequestNumbers


class BlockingInCoroutines:
    """`asyncio.gather` over coroutines that call a blocking client. Each call blocks the loop."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(start_each(numbers, self._sender()))

    def close(self) -> None:
        self._runner.close()
        self._call.close()

    def _sender(self) -> Callable[[int], Awaitable[None]]:
        async def one(number: int) -> None:
            self._call(number)

        return one


class ThreadSensitive(BlockingInCoroutines):
    """`sync_to_async` with its default, thread-sensitive: all calls share one thread."""

    def _sender(self) -> Callable[[int], Awaitable[None]]:
        return sync_to_async(self._call)


class SyncToAsync(BlockingInCoroutines):
    """`asyncio.gather` over `sync_to_async(thread_sensitive=False)`, with a thread pool of size `concurrency`."""

    def open(self) -> None:
        super().open()
        self._pool = ThreadPoolExecutor(self._context.concurrency)

    def close(self) -> None:
        self._pool.shutdown()
        super().close()

    def _sender(self) -> Callable[[int], Awaitable[None]]:
        return sync_to_async(self._call, thread_sensitive=False, executor=self._pool)
