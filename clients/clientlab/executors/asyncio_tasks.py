"""asyncio in one process: tasks of one event loop, one event loop per thread, or a
blocking client under a loop.
"""

from __future__ import annotations

import asyncio
import importlib
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

from clientlab.executors.executor_interface import (
    LOOP,
    AsyncCaller,
    Executor,
    ExecutorContext,
    ExecutorSpec,
    RequestNumbers,
)
from clientlab.executors.pacing import PacedNumbers, spawn_each


async def start_each(
    numbers: RequestNumbers, send: Callable[[int], Coroutine[Any, Any, None]]
) -> None:
    """Start a coroutine for each request: all at once, or in an open load each when it
    is due.
    """
    if isinstance(numbers, PacedNumbers):
        await spawn_each(numbers, send)
    else:
        await asyncio.gather(*(send(number) for number in numbers))


class _OneLoop(Executor):
    """An event loop and a caller that live from `open` to `close`."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        super().__init__(context)
        self.in_flight = context.concurrency
        self._loop = loop

    def open(self) -> None:
        self._runner = asyncio.Runner(
            loop_factory=self._context.loop_factory(self._loop)
        )
        self._call: AsyncCaller = self._runner.run(self._context.aopen(self.in_flight))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()

    @abstractmethod
    async def _run(self, numbers: RequestNumbers) -> None:
        """Send every number once."""


@ExecutorSpec("await", "asyncio", concurrent=False)
class AsyncSerial(_OneLoop):
    """One request after the other in one task."""

    async def _run(self, numbers: RequestNumbers) -> None:
        await self._call.send_all(numbers)


@ExecutorSpec("gather", "asyncio", needs_count=True, clock_first=True, pool_bound=True)
class Gather(_OneLoop):
    """asyncio.gather over all requests at once; the client's pool limits them."""

    async def _run(self, numbers: RequestNumbers) -> None:
        await start_each(numbers, self._call)


@ExecutorSpec("unbounded", "asyncio", needs_count=True, unbounded=True)
class Unbounded(Gather):
    """asyncio.gather over all requests at once, with a connection for each."""


@ExecutorSpec(
    "as-completed", "asyncio", needs_count=True, clock_first=True, pool_bound=True
)
class AsCompleted(_OneLoop):
    """asyncio.as_completed over all requests at once; the client's pool limits them."""

    async def _run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            await spawn_each(numbers, self._call)
        else:
            for done in asyncio.as_completed(
                [self._call(number) for number in numbers]
            ):
                await done


@ExecutorSpec("semaphore", "asyncio", needs_count=True, size="semaphore")
class Semaphore(_OneLoop):
    """asyncio.gather over all requests, each waiting for a semaphore."""

    async def _run(self, numbers: RequestNumbers) -> None:
        gate = asyncio.Semaphore(self.in_flight)

        async def send_through_gate(number: int) -> None:
            async with gate:
                await self._call(number)

        await start_each(numbers, send_through_gate)


@ExecutorSpec("workers", "asyncio", size="tasks")
class WorkerTasks(_OneLoop):
    """asyncio tasks, one per request in flight, each taking the next request."""

    async def _run(self, numbers: RequestNumbers) -> None:
        await asyncio.gather(
            *(self._call.send_all(numbers) for _ in range(self.in_flight))
        )


@ExecutorSpec("async-threads", "asyncio")
class AsyncioThreads(Executor):
    """4 threads with an event loop and a client each, and in them asyncio tasks that
    take the next request.

    Requests in flight and connections are divided among the threads. All threads take
    from the same numbers. Without a GIL, each of them can use a core.
    """

    def __init__(
        self, context: ExecutorContext, *, threads: int = 4, loop: str = LOOP
    ) -> None:
        super().__init__(context)
        self._loops = [
            WorkerTasks(context, loop=loop)
            for _ in range(min(threads, context.concurrency))
        ]
        for index, one in enumerate(self._loops):
            one.in_flight = len(range(index, context.concurrency, len(self._loops)))
        self._warms_up = context.warm

    def open(self) -> None:
        self._pools = [ThreadPoolExecutor(1) for _ in self._loops]
        self._call_in_threads(one.open for one in self._loops)

    def run(self, numbers: RequestNumbers) -> None:
        parts: list[RequestNumbers] = [numbers] * len(self._loops)
        if isinstance(numbers, PacedNumbers):
            parts = [*numbers.split(len(parts))]
        elif (
            self._warms_up and numbers.count
        ):  # the first thread could take them all before the last one has begun
            shares = [
                range(index, numbers.count, len(parts)) for index in range(len(parts))
            ]
            parts = [
                RequestNumbers(len(one), None, numbers.first + one.start, one.step)
                for one in shares
            ]
        self._warms_up = False
        self._call_in_threads(
            partial(one.run, part) for one, part in zip(self._loops, parts, strict=True)
        )

    def close(self) -> None:
        self._call_in_threads(one.close for one in self._loops)
        for pool in self._pools:
            pool.shutdown()

    def _call_in_threads(self, functions: Iterable[Callable[[], None]]) -> None:
        """Call one function in each thread, all at once.

        Raises what one of them raised.
        """
        for call in [
            pool.submit(function)
            for pool, function in zip(self._pools, functions, strict=True)
        ]:
            call.result()


@ExecutorSpec("blocking-coroutines", needs_count=True, concurrent=False)
class BlockingInCoroutines(Executor):
    """asyncio.gather over coroutines that call a blocking client."""

    def __init__(self, context: ExecutorContext, *, loop: str = LOOP) -> None:
        super().__init__(context)
        self._loop = loop

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._runner = asyncio.Runner(
            loop_factory=self._context.loop_factory(self._loop)
        )

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(start_each(numbers, self._make_coroutine_function()))

    def close(self) -> None:
        self._runner.close()
        self._call.close()

    def _make_coroutine_function(self) -> Callable[[int], Coroutine[Any, Any, None]]:
        async def send(number: int) -> None:
            self._call(number)

        return send


@ExecutorSpec(
    "sync_to_async-sensitive",
    needs_count=True,
    concurrent=False,
    distribution="asgiref",
)
class ThreadSensitive(BlockingInCoroutines):
    """asyncio.gather over sync_to_async with its defaults: all calls in one thread."""

    _sync_to_async: ClassVar[Any]

    @classmethod
    def import_library(cls) -> None:
        cls._sync_to_async = staticmethod(
            importlib.import_module("asgiref.sync").sync_to_async
        )

    def _make_coroutine_function(self) -> Any:
        return self._sync_to_async(self._call)


@ExecutorSpec(
    "sync_to_async",
    needs_count=True,
    threads=True,
    size="max_workers",
    distribution="asgiref",
)
class SyncToAsync(ThreadSensitive):
    """asyncio.gather over sync_to_async(thread_sensitive=False) on a pool
    of threads.
    """

    def open(self) -> None:
        super().open()
        self._pool = ThreadPoolExecutor(self._context.concurrency)

    def close(self) -> None:
        self._pool.shutdown()
        super().close()

    def _make_coroutine_function(self) -> Any:
        return self._sync_to_async(
            self._call, thread_sensitive=False, executor=self._pool
        )
