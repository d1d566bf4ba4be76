"""Counters of all workers, in memory that the gunicorn master shares with them.

The master maps the memory before it forks, so that every worker counts in a part of its own and any of them can read
all: there are no files to clear away, and what a killed worker counted stays. prometheus_client's own multiprocess
mode does the same with files for about eight times the price (6 µs a request, against 0.8).
"""

from __future__ import annotations

import mmap
import os
import resource
import threading
from bisect import bisect_left
from typing import NamedTuple

from mockupstream.attempts import AttemptTable
from mockupstream.behaviour import FIRST_STATUS, LAST_STATUS
from mockupstream.contract import EVERY_ROUTE
from mockupstream.faults import KINDS
from mockupstream.rate_limit import RateLimit

# Upper bounds in seconds of the hold time's histogram; a last one holds everything above.
HOLD_BOUNDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip

# Upper bounds in seconds of the histogram of late events; a last one holds everything above.
LATE_BOUNDS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
)  # fmt: skip

# Cells of eight bytes: first whole numbers, four floats, then four tables.
(
    IN_FLIGHT, CONNECTIONS, RECEIVED, SENT, EVENTS, STREAMS_OPEN, STREAMS_LEFT, REPEATS, DUPLICATES, LIMITED,
    ASKED, HELD, CPU, LATE, BUCKETS,
) = range(15)  # fmt: skip
LATE_BUCKETS = BUCKETS + len(HOLD_BOUNDS) + 1
REQUESTS = LATE_BUCKETS + len(LATE_BOUNDS) + 1
STATUSES = LAST_STATUS - FIRST_STATUS + 1
FAULTS = REQUESTS + STATUSES * len(EVERY_ROUTE)
_CELLS = FAULTS + len(KINDS)
_CELL = 8
# Workers ever started, those that died included. Memory is taken only by those that were.
MOST_WORKERS = 1024


class Page(NamedTuple):
    """The cells of one worker, seen as whole numbers and as floats; `alive` until the master saw it end."""

    pid: int
    alive: bool
    whole: memoryview[int]
    floats: memoryview[float]


class Book:
    """The pages of all workers, and what else they share: counts of attempts, and a limit of requests per second."""

    def __init__(self, limit: RateLimit | None = None) -> None:
        """Map fresh memory, shared with all processes forked from this one."""
        self._attempts = AttemptTable()
        self._limit = limit
        memory = memoryview(mmap.mmap(-1, (MOST_WORKERS + MOST_WORKERS * _CELLS) * _CELL))
        # The process id of each worker, negative after its end; 0: never started.
        self._pids = memory[: MOST_WORKERS * _CELL].cast("q")
        self._memory = memory[MOST_WORKERS * _CELL :]
        self._reaped = 0.0

    def open(self, number: int) -> Ledger:
        """Return the ledger of this process, the `number`-th worker that was started, from 0.

        RuntimeError says so where more were started than the book has pages.
        """
        if number >= MOST_WORKERS:
            msg = f"{MOST_WORKERS} workers were started, and most of them ended; see the log for the reason"
            raise RuntimeError(msg)
        self._pids[number] = os.getpid()
        return Ledger(self._page(number), self._attempts, self._limit)

    def close(self, number: int) -> None:
        """Record the end of a worker. The master calls it right after it has reaped that worker.

        What the master's reaped children used in all, less what it was before, is the last one's exact CPU time,
        however it ended.
        """
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

    def __init__(self, page: Page, attempts: AttemptTable, limit: RateLimit | None = None) -> None:
        """Count on `page`, which no other process writes. All processes share the others."""
        self._attempts = attempts
        self._limit = limit
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

    def ready(self, route: int, status: int, held: float, asked: float, received: int, sent: int) -> None:  # noqa: PLR0913, PLR0917 - by position: it is called for each request
        """Count a reply that is ready: seconds since its request was read, seconds asked for, bytes of both bodies.

        Where the reply comes in pieces, `sent` counts them.
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

    @property
    def limits(self) -> bool:
        """Whether requests per second are limited."""
        return self._limit is not None

    def refused_for(self) -> float:
        """Seconds until a request would be within the limit, and counts one that is not; 0: it is within."""
        wait = 0.0 if self._limit is None else self._limit.wait()
        if wait:
            with self._lock:
                self._whole[LIMITED] += 1
        return wait

    def arrived(self, request: int, method: str) -> int:
        """Count an attempt of a request, by its identity. Returns its number, from 1."""
        arrival = self._attempts.arrived(request, method)
        if arrival.attempt > 1:
            with self._lock:
                self._whole[REPEATS] += 1
                self._whole[DUPLICATES] += arrival.duplicate
        return arrival.attempt

    def sent(self, size: int) -> None:
        """Count bytes of a piece of a response's body."""
        with self._lock:
            self._whole[SENT] += size

    def fault(self, number: int) -> None:
        """Count a fault that is about to be made. `number`: of its kind."""
        with self._lock:
            self._whole[FAULTS + number] += 1

    def stream_opened(self) -> None:
        """Count a stream of events as open."""
        with self._lock:
            self._whole[STREAMS_OPEN] += 1

    def event(self, late: float, size: int) -> None:
        """Count a written event of `size` bytes, `late` seconds after its planned moment."""
        whole = self._whole
        with self._lock:
            whole[EVENTS] += 1
            whole[SENT] += size
            whole[LATE_BUCKETS + bisect_left(LATE_BOUNDS, late)] += 1
            self._floats[LATE] += late

    def stream_closed(self, *, left: bool) -> None:
        """Count a stream as no longer open. `left`: the client closed it before its end."""
        with self._lock:
            self._whole[STREAMS_OPEN] -= 1
            if left:
                self._whole[STREAMS_LEFT] += 1

    def end(self) -> None:
        """Count a request as no longer in flight."""
        with self._lock:
            self._whole[IN_FLIGHT] -= 1
