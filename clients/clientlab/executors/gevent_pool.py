"""gevent: a pool of greenlets that run blocking code. A patched wait lets other greenlets run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import gevent
from gevent import monkey
from gevent.pool import Pool

from clientlab.executors.executor_interface import ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers


class GeventPool:
    """`gevent.pool.Pool.imap_unordered` over the requests: a greenlet for each, also with a duration.

    In an open load, each greenlet takes the next number when it is due.
    """

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
        if isinstance(numbers, PacedNumbers):
            greenlets = [self._pool.spawn(self._call.send_all, numbers) for _ in range(self._context.concurrency)]
            gevent.joinall(greenlets, raise_error=True)
            return
        coming = numbers if numbers.count is not None else self._when_free(numbers)
        deque(self._pool.imap_unordered(self._call, coming), maxlen=0)

    def close(self) -> None:
        self._pool.kill()
        self._call.close()

    def _when_free(self, numbers: RequestNumbers) -> Iterator[int]:
        """Numbers that are taken when a greenlet can begin: none begins when the time is over."""
        self._pool.wait_available()
        for number in numbers:
            yield number
            self._pool.wait_available()
