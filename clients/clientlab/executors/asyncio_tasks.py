"""asyncio in one process: one event loop, one per thread, or a blocking client."""

from __future__ import annotations

import asyncio
import importlib
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
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
    """Start a coroutine for each request: at once, or in an open load when due."""
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
        self._open_loop()
        self._call: AsyncCaller = self._runner.run(self._context.aopen(self.in_flight))

    def run(self, numbers: RequestNumbers) -> None:
        self._runner.run(self._run(numbers))

    def close(self) -> None:
        self._runner.run(self._call.close())
        self._runner.close()

    def _open_loop(self) -> None:
        loop_factory = self._context.loop_factory(self._loop)
        self._runner = asyncio.Runner(loop_factory=loop_factory)

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
            return
        sending = [self._call(number) for number in numbers]
        for done in asyncio.as_completed(sending):
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
        count = min(threads, context.concurrency)
        self._loops = [WorkerTasks(context, loop=loop) for _ in range(count)]
        for index, worker in enumerate(self._loops):
            worker.in_flight = len(range(index, context.concurrency, count))
        self._warms_up = context.warm

    def open(self) -> None:
        self._pools = [ThreadPoolExecutor(1) for _ in self._loops]
        self._call_in_threads(worker.open for worker in self._loops)

    def run(self, numbers: RequestNumbers) -> None:
        count = len(self._loops)
        parts: Sequence[RequestNumbers] = [numbers] * count
        if isinstance(numbers, PacedNumbers):
            parts = numbers.split(count)
        elif self._warms_up and numbers.count:
            # The first thread could take them all before the last one has begun.
            shares = [range(index, numbers.count, count) for index in range(count)]
            parts = [
                RequestNumbers(len(share), None, numbers.first + share.start, count)
                for share in shares
            ]
        self._warms_up = False
        pairs = zip(self._loops, parts, strict=True)
        self._call_in_threads(partial(worker.run, part) for worker, part in pairs)

    def close(self) -> None:
        self._call_in_threads(worker.close for worker in self._loops)
        for pool in self._pools:
            pool.shutdown()

    def _call_in_threads(self, functions: Iterable[Callable[[], None]]) -> None:
        """Call one function in each thread, all at once.

        Raises what one of them raised.
        """
        pairs = zip(self._pools, functions, strict=True)
        calls = [pool.submit(function) for pool, function in pairs]
        for call in calls:
            call.result()


@ExecutorSpec("blocking-coroutines", needs_count=True, concurrent=False)
class BlockingInCoroutines(_OneLoop):
    """asyncio.gather over coroutines that call a blocking client."""

    def open(self) -> None:
        self._blocking = self._context.open(self.in_flight)
        self._open_loop()

    def close(self) -> None:
        self._runner.close()
        self._blocking.close()

    async def _run(self, numbers: RequestNumbers) -> None:
        await start_each(numbers, self._make_coroutine_function())

    def _make_coroutine_function(self) -> Callable[[int], Coroutine[Any, Any, None]]:
        async def send(number: int) -> None:
            self._blocking(number)

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
        module = importlib.import_module("asgiref.sync")
        cls._sync_to_async = staticmethod(module.sync_to_async)

    def _make_coroutine_function(self) -> Any:
        return self._sync_to_async(self._blocking)


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
            self._blocking, thread_sensitive=False, executor=self._pool
        )
