"""Counters of all workers, in memory that the gunicorn master shares with them.

The master maps the memory before it forks. Every worker counts in a part of its own, any of them can read all, and
what a killed worker counted stays. prometheus_client's own multiprocess mode uses files and takes 6 µs per request
instead of 0.8.
"""

from __future__ import annotations

import mmap
import os
import resource
import threading
from bisect import bisect_left
from typing import NamedTuple
from urllib.parse import unquote
from zlib import crc32

from mockupstream.behaviour import FIRST_STATUS, LAST_STATUS
from mockupstream.contract import EVERY_ROUTE

# Upper bounds in seconds of the hold time's histogram.
HOLD_BOUNDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip

# Cells of eight bytes: first whole numbers, three floats, then two tables.
IN_FLIGHT, CONNECTIONS, RECEIVED, SENT, DIGEST, ASKED, HELD, CPU, BUCKETS = range(9)
REQUESTS = BUCKETS + len(HOLD_BOUNDS) + 1
STATUSES = LAST_STATUS - FIRST_STATUS + 1
_CELLS = REQUESTS + STATUSES * len(EVERY_ROUTE)
_CELL = 8
# A metric is a float, which holds whole numbers up to 2 ** 53: enough for 8,000 million hashes of 20 bits.
_HASH = (1 << 20) - 1
# Workers ever started, including those that ended. Memory is taken only by those that were.
MOST_WORKERS = 1024


def digest_of(method: str, target: str) -> int:
    """Return a hash of 20 bits of a request's method and target (its path with the query).

    The sum of these hashes shows whether a client sent the requests that it was asked to send, in any order. Libraries
    differ in what they percent-encode, so the target is decoded. `clientlab.running.received` has the same function.
    """
    decoded = unquote(target) if "%" in target else target
    return crc32(f"{method} {decoded}".encode(errors="surrogateescape")) & _HASH


class Page(NamedTuple):
    """The cells of one worker, seen as whole numbers and as floats; `alive` until the master saw it end."""

    pid: int
    alive: bool
    whole: memoryview[int]
    floats: memoryview[float]


class Book:
    """The pages of all workers."""

    def __init__(self) -> None:
        memory = memoryview(mmap.mmap(-1, (MOST_WORKERS + MOST_WORKERS * _CELLS) * _CELL))
        # The process id of each worker, negative after its end; 0: never started.
        self._pids = memory[: MOST_WORKERS * _CELL].cast("q")
        self._memory = memory[MOST_WORKERS * _CELL :]
        self._reaped = 0.0

    def open(self, number: int) -> Ledger:
        """Return the ledger of this process, the `number`-th worker that was started, from 0."""
        if number >= MOST_WORKERS:
            raise RuntimeError(
                f"{MOST_WORKERS} workers were started, and most of them ended; see the log for the reason"
            )
        self._pids[number] = os.getpid()
        return Ledger(self._page(number))

    def close(self, number: int) -> None:
        """Record the end of a worker, and its CPU time. The master calls it right after it has reaped that worker."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        reaped = usage.ru_utime + usage.ru_stime
        if self._pids[number] > 0:
            self._page(number).floats[CPU] = reaped - self._reaped
            self._pids[number] = -self._pids[number]
        self._reaped = reaped

    def pages(self) -> list[Page]:
        """Return the page of every worker ever started."""
        return [self._page(number) for number, pid in enumerate(self._pids.tolist()) if pid]

    def _page(self, number: int) -> Page:
        cells = self._memory[number * _CELLS * _CELL : (number + 1) * _CELLS * _CELL]
        pid = self._pids[number]
        return Page(abs(pid), pid > 0, cells.cast("q"), cells.cast("d"))


class Ledger:
    """The counters of one worker. Threads may share it: each method takes its lock once."""

    def __init__(self, page: Page) -> None:
        self._whole = page.whole
        self._floats = page.floats
        self._lock = threading.Lock()

    def connection(self) -> None:
        """Count a connection, at its first request."""
        with self._lock:
            self._whole[CONNECTIONS] += 1

    def begin(self) -> None:
        """Count a request as in flight."""
        with self._lock:
            self._whole[IN_FLIGHT] += 1

    def ready(  # noqa: PLR0913, PLR0917 - by position: it is called for each request
        self, route: int, status: int, held: float, asked: float, received: int, sent: int, digest: int
    ) -> None:
        """Count a reply that is ready: seconds since its request was read, seconds asked for, bytes of both bodies.

        It is called before the reply is sent, so a client that has read its replies finds all of them counted.
        """
        whole, floats = self._whole, self._floats
        with self._lock:
            whole[REQUESTS + route * STATUSES + status - FIRST_STATUS] += 1
            whole[BUCKETS + bisect_left(HOLD_BOUNDS, held)] += 1
            floats[HELD] += held
            if asked:
                floats[ASKED] += asked
            if received:
                whole[RECEIVED] += received
            whole[SENT] += sent
            whole[DIGEST] += digest

    def sent(self, size: int) -> None:
        """Count bytes of a piece of a response's body."""
        with self._lock:
            self._whole[SENT] += size

    def end(self) -> None:
        """Count a request as no longer in flight."""
        with self._lock:
            self._whole[IN_FLIGHT] -= 1
