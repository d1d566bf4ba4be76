"""One request after the other, blocking or awaited."""

from __future__ import annotations

import asyncio

from clientlab.executors.interfaces import LOOP, AsyncCaller, ExecutorContext, RequestNumbers


class Serial:
    """A loop of calls in one thread."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._call = self._context.open(connections=1)

    def run(self, numbers: RequestNumbers) -> None:
        self._call.send_all(numbers)

    def close(self) -> None:
        self._call.close()


class AsyncSerial:
    """A loop of awaits in one task."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        self._context = context
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(loop_factory=self._context.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._context.aopen(connections=1))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._call.send_all(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()
