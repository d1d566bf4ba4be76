"""gevent: a pool of greenlets that run blocking code. A patched wait lets other greenlets run."""

from __future__ import annotations

from collections import deque

import gevent
from gevent import monkey
from gevent.pool import Pool

from clientlab.executors.executor_interface import ExecutorContext, RequestNumbers


class GeventPool:
    """`gevent.pool.Pool.imap_unordered` over the requests. With a duration, each greenlet takes the next number."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    @classmethod
    def prepare(cls) -> None:
        """Patch the standard library before a client's library is imported."""
        monkey.patch_all()

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._pool = Pool(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is not None:
            deque(self._pool.imap_unordered(self._call, numbers), maxlen=0)
            return
        greenlets = [self._pool.spawn(self._call.send_all, numbers) for _ in range(self._context.concurrency)]
        gevent.joinall(greenlets, raise_error=True)

    def close(self) -> None:
        self._pool.kill()
        self._call.close()
