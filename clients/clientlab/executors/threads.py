"""Blocking requests one after the other, by a thread pool, and by threads that share a queue."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from clientlab.executors.executor_interface import LOOP, AsyncCaller, ExecutorContext, RequestNumbers


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


class Threads:
    """`ThreadPoolExecutor.map` over the requests. With a duration, each thread takes the next number."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._pool = ThreadPoolExecutor(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is not None:
            deque(self._pool.map(self._call, numbers), maxlen=0)
            return
        threads = range(self._context.concurrency)
        for worker in [self._pool.submit(self._call.send_all, numbers) for _ in threads]:
            worker.result()

    def close(self) -> None:
        self._pool.shutdown()
        self._call.close()


class ThreadQueue:
    """Threads that take numbers from a `queue.Queue`. With a duration, each thread takes the next number itself."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._queue = queue.Queue[Iterable[int] | None]()
        self._faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(self._context.concurrency)]
        for thread in self._threads:
            thread.start()

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is None:
            for _ in self._threads:
                self._queue.put(numbers)
        else:
            for number in numbers:
                self._queue.put((number,))
        self._queue.join()
        if self._faults:
            raise self._faults[0]

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._call.close()

    def _work(self) -> None:
        while (numbers := self._queue.get()) is not None:
            try:
                self._call.send_all(numbers)
            except Exception as error:  # noqa: BLE001 - `run` raises it
                self._faults.append(error)
            finally:
                self._queue.task_done()
