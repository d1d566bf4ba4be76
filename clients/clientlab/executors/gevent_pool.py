"""gevent: a pool of greenlets that run blocking code.

A patched wait lets other greenlets run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import gevent
from gevent import monkey
from gevent.pool import Pool

from clientlab.executors.executor_interface import (
    Executor,
    ExecutorSpec,
    RequestNumbers,
)
from clientlab.executors.pacing import PacedNumbers


@ExecutorSpec(
    "gevent",
    size="size",
    distribution="gevent",
    # These have no connection per thread.
    only=("requests", "requests-session", "urllib3", "geventhttpclient"),
)
class GeventPool(Executor):
    """gevent.pool.Pool, one greenlet per request in flight, with everything
    monkey-patched.
    """

    @classmethod
    def prepare(cls) -> None:
        monkey.patch_all()

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._pool = Pool(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            greenlets = [
                self._pool.spawn(self._call.send_all, numbers)
                for _ in range(self._context.concurrency)
            ]
            gevent.joinall(greenlets, raise_error=True)
            return
        coming: Iterable[int] = numbers
        if numbers.count is None:
            coming = self._take_when_free(numbers)
        deque(self._pool.imap_unordered(self._call, coming), maxlen=0)

    def close(self) -> None:
        self._pool.kill()
        self._call.close()

    def _take_when_free(self, numbers: RequestNumbers) -> Iterator[int]:
        """Yield each number when a greenlet can send it: none after the deadline."""
        self._pool.wait_available()
        for number in numbers:
            yield number
            self._pool.wait_available()
