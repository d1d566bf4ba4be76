"""A blocking client under asyncio: each request is sent to a pool of threads by `sync_to_async`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async

from clientlab.executors.shape import LOOP, Bench, Numbers


class SyncToAsync:
    """`asyncio.gather` over `sync_to_async(thread_sensitive=False)`, on a pool of the given size."""

    def __init__(self, bench: Bench, *, loop: str = LOOP) -> None:
        self._bench = bench
        self._loop = loop

    def open(self) -> None:
        self._call = self._bench.open(self._bench.concurrency)
        self._pool = ThreadPoolExecutor(self._bench.concurrency)
        self._runner = asyncio.Runner(loop_factory=self._bench.loop_factory(self._loop))

    def run(self, numbers: Numbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.close()
        self._pool.shutdown()
        self._call.close()

    async def _run(self, numbers: Numbers) -> None:
        call = sync_to_async(self._call, thread_sensitive=False, executor=self._pool)
        await asyncio.gather(*(call(number) for number in numbers))
