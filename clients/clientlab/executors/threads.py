"""A pool of threads, as many as there may be requests in flight."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor

from clientlab.executors.shape import Bench, Numbers


class Threads:
    """`ThreadPoolExecutor.map` over the requests; without a count, each thread draws its next."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._call = self._bench.open(self._bench.concurrency)
        self._pool = ThreadPoolExecutor(self._bench.concurrency)

    def run(self, numbers: Numbers) -> None:
        if numbers.count is not None:
            deque(self._pool.map(self._call, numbers), maxlen=0)
            return
        threads = range(self._bench.concurrency)
        for drained in [self._pool.submit(self._call.drain, numbers) for _ in threads]:
            drained.result()

    def close(self) -> None:
        self._pool.shutdown()
        self._call.close()
