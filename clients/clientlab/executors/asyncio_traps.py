"""What goes wrong under asyncio: a client that blocks the loop, and threads that take turns."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from clientlab.executors.shape import LOOP, Bench, Numbers


class BlockingInCoroutines:
    """`asyncio.gather` over coroutines that call a blocking client: one after the other, and nothing else runs."""

    def __init__(self, bench: Bench, *, loop: str = LOOP) -> None:
        self._bench = bench
        self._loop = loop

    def open(self) -> None:
        self._call = self._bench.open(connections=1)
        self._runner = asyncio.Runner(loop_factory=self._bench.loop_factory(self._loop))

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
    """`sync_to_async` as it comes: thread-sensitive, so that all calls share one thread and take turns."""

    async def _run(self, numbers: Numbers) -> None:
        call = sync_to_async(self._call)
        await asyncio.gather(*(call(number) for number in numbers))
