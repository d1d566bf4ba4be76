"""A limit of requests per second for all workers together: a token bucket, by the generic cell rate algorithm.

ITU-T I.371 has the algorithm. The bucket is one number in shared memory: the moment at which the next request would
come if all came evenly. A request that is more than `burst - 1` intervals early is refused.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import tempfile
import threading
import time

_CELL = 8


class RateLimit:
    """A token bucket. The master makes it before it forks.

    A lock on a file excludes other workers, and ends with a worker that is killed; a lock of its own excludes threads.
    """

    def __init__(self, rate: float, burst: int) -> None:
        """`rate`: requests per second; `burst`: requests that may come at once after a pause."""
        self._interval = 1 / rate
        self._early = (burst - 1) * self._interval
        self._due = memoryview(mmap.mmap(-1, mmap.PAGESIZE))[:_CELL].cast("d")
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        self._threads = threading.Lock()

    def wait(self) -> float:
        """Take a token: 0. If there is none, the seconds until there will be one."""
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                now = time.monotonic()
                due = max(self._due[0], now)
                if (early := due - now - self._early) > 0:
                    return early
                self._due[0] = due + self._interval
                return 0.0
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)


def retry_after(wait: float) -> str:
    """The value of the header for a wait of so many seconds: whole ones, at least 1."""
    return str(max(1, math.ceil(wait)))
