"""A thread pool, one thread per request in flight."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor

from clientlab.executors.interfaces import ExecutorContext, RequestNumbers


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
