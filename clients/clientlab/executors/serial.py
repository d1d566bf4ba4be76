"""One request after the other."""

from __future__ import annotations

import asyncio

from clientlab.executors.shape import AsyncCaller, Bench, Numbers


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

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._runner = asyncio.Runner()
        self._call: AsyncCaller = self._runner.run(self._bench.aopen(connections=1))

    def run(self, numbers: Numbers) -> None:
        self._runner.run(self._call.drain(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()
