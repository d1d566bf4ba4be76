"""One request after the other."""

from __future__ import annotations

import asyncio

from clientlab.executors.shape import LOOP, AsyncCaller, Bench, Numbers


class Serial:
    """A loop in one thread."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._call = self._bench.open(connections=1)

    def run(self, numbers: Numbers) -> None:
        self._call.drain(numbers)

    def close(self) -> None:
        self._call.close()


class AsyncSerial:
    """A loop of awaits in one task."""

    def __init__(self, bench: Bench, *, loop: str = LOOP) -> None:
        self._bench = bench
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(loop_factory=self._bench.loop_factory(self._loop))
        self._call: AsyncCaller = self._runner.run(self._bench.aopen(connections=1))

    def run(self, numbers: Numbers) -> None:
        self._runner.run(self._call.drain(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()
