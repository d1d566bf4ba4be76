"""asyncio in several processes: the requests in equal chunks, a loop and a client a process."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import util

from clientlab.executors.processes import START_METHOD
from clientlab.executors.shape import LOOP, AsyncCaller, Bench, Numbers

# In a process of the pool: its loop and caller by the connections they may hold; commonly one.
_homes: dict[int, tuple[asyncio.Runner, AsyncCaller]] = {}


class AsyncioProcesses:
    """`chunks` equal chunks, and one for the remainder, each gathered whole in a process of its own.

    Every process has a connection pool of its own: `concurrency` is shared out among them, so that
    all together keep to it.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        chunks: int = 6,
        processes: int | None = None,
        start_method: str = START_METHOD,
        loop: str = LOOP,
    ) -> None:
        self._bench = bench
        self._processes = processes or chunks + 1
        self._chunks = chunks
        self._loop = loop
        self._context = multiprocessing.get_context(start_method)

    def open(self) -> None:
        self._pool = ProcessPoolExecutor(self._processes, self._context)

    def run(self, numbers: Numbers) -> None:
        parts = share_out(list(numbers), self._chunks, self._bench.concurrency)
        deque(self._pool.map(_gather, [(self._bench, self._loop, *part) for part in parts]), maxlen=0)

    def close(self) -> None:
        self._pool.shutdown()


def share_out(numbers: list[int], chunks: int, concurrency: int) -> list[tuple[list[int], int]]:
    """Chunks of numbers, each with its connections: together never more than `concurrency`.

    Fewer chunks where there is not one number, or not one connection, for each.
    """
    chunks = max(1, min(chunks, len(numbers), concurrency - 1))
    size = len(numbers) // chunks
    rest = numbers[chunks * size :]
    for_rest = min(len(rest), concurrency // (chunks + 1)) if rest else 0
    share = (concurrency - for_rest) // chunks
    parts = [(numbers[i * size : (i + 1) * size], share) for i in range(chunks)]
    return [*parts, (rest, for_rest)] if rest else parts


def _gather(part: tuple[Bench, str, list[int], int]) -> None:
    bench, loop, numbers, connections = part
    if connections not in _homes:
        _homes[connections] = _new_home(bench, loop, connections)
    runner, call = _homes[connections]
    runner.run(_gather_all(call, numbers))


async def _gather_all(call: AsyncCaller, numbers: list[int]) -> None:
    await asyncio.gather(*(call(number) for number in numbers))


def _new_home(bench: Bench, loop: str, connections: int) -> tuple[asyncio.Runner, AsyncCaller]:
    runner = asyncio.Runner(loop_factory=bench.loop_factory(loop))
    call: AsyncCaller = runner.run(bench.aopen(connections))
    # A pool's processes run no `atexit`, but they do run their finalizers.
    util.Finalize(None, _close, args=(runner, call), exitpriority=10)
    return runner, call


def _close(runner: asyncio.Runner, call: AsyncCaller) -> None:
    runner.run(call.close())
    runner.close()
