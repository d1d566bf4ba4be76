"""gevent: a pool of greenlets that run blocking code, whose waits are patched to let the others go on."""

from __future__ import annotations

from collections import deque

import gevent
from gevent import monkey
from gevent.pool import Pool

from clientlab.executors.shape import Bench, Numbers


class GeventPool:
    """`gevent.pool.Pool.imap_unordered` over the requests; without a count, each greenlet draws its next."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    @classmethod
    def prepare(cls) -> None:
        """Patch the standard library, before any client's is imported."""
        monkey.patch_all()

    def open(self) -> None:
        self._call = self._bench.open(self._bench.concurrency)
        self._pool = Pool(self._bench.concurrency)

    def run(self, numbers: Numbers) -> None:
        if numbers.count is not None:
            deque(self._pool.imap_unordered(self._call, numbers), maxlen=0)
            return
        greenlets = [self._pool.spawn(self._call.drain, numbers) for _ in range(self._bench.concurrency)]
        gevent.joinall(greenlets, raise_error=True)

    def close(self) -> None:
        self._pool.kill()
        self._call.close()
