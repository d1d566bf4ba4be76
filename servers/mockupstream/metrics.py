"""The metrics of an upstream: counted in memory that all workers share, and exposed in
Prometheus' text format.

The gunicorn master maps the memory before it forks. Every worker counts in its own
page, and each can read all pages. The counts of a worker that ended stay, and the
worker that replaces it goes on counting in the same page. prometheus_client's own
multiprocess mode uses files and takes 6 µs per request instead of 0.8.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import resource
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from zlib import crc32

import psutil
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mockupstream.behaviour import FIRST_STATUS, LAST_STATUS
from mockupstream.contract import EVERY_ROUTE

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Upper bounds in seconds of the hold time's histogram.
HOLD_BOUNDS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)

# Cells of eight bytes: first whole numbers, four floats, then two tables. EARLIER_CPU:
# of the workers before this one.
(
    IN_FLIGHT,
    CONNECTIONS,
    RECEIVED,
    SENT,
    DIGEST,
    ASKED,
    HELD,
    CPU,
    EARLIER_CPU,
    BUCKETS,
) = range(10)
REQUESTS = BUCKETS + len(HOLD_BOUNDS) + 1
STATUSES = LAST_STATUS - FIRST_STATUS + 1
_CELLS = REQUESTS + STATUSES * len(EVERY_ROUTE)
_CELL = 8
# A metric is a float, which holds whole numbers up to 2 ** 53: enough for 8,000 million
# hashes of 20 bits.
_HASH = (1 << 20) - 1
# More than can be configured. Only pages of workers that were started take memory.
MOST_WORKERS = 512
_SCHED = 2  # CPUCLOCK_SCHED of Linux: nanoseconds that a process has run
_QUOTA = Path("/sys/fs/cgroup/cpu.max")

_TOTALS = (
    (
        "mockupstream_connections_accepted",
        "Connections whose first request was not a scrape.",
        CONNECTIONS,
    ),
    ("mockupstream_request_body_bytes", "Bytes of request bodies.", RECEIVED),
    ("mockupstream_response_body_bytes", "Bytes of response bodies.", SENT),
    (
        "mockupstream_request_digest",
        "Sum of the hashes of all requests' methods and targets.",
        DIGEST,
    ),
)


def digest_of(method: str, target: str) -> int:
    """Return a hash of 20 bits of a request's method and target (its path with the
    query).

    The sum of these hashes shows whether a client sent the requests that it was asked
    to send, in any order. Libraries differ in what they percent-encode, so the target
    is decoded. `clientlab.analysis.received` has the same function.
    """
    decoded = unquote(target) if "%" in target else target
    return crc32(f"{method} {decoded}".encode(errors="surrogateescape")) & _HASH


class Page(NamedTuple):
    """The cells of a worker and of those before it, as whole numbers and as floats;
    `alive` until its end is seen.
    """

    pid: int
    alive: bool
    whole: memoryview[int]
    floats: memoryview[float]


class Book:
    """The pages of all workers."""

    def __init__(self) -> None:
        memory = memoryview(
            mmap.mmap(-1, (MOST_WORKERS + MOST_WORKERS * _CELLS) * _CELL)
        )
        # The process id of each page's last worker: negative after its end, 0 if none
        # was started.
        self._pids = memory[: MOST_WORKERS * _CELL].cast("q")
        self._memory = memory[MOST_WORKERS * _CELL :]
        self._reaped = 0.0
        self._reserved: set[int] = set()

    def reserve(self) -> int:
        """Return the number of the first page that no worker has, from 0.

        The master calls it before it forks.
        """
        number = next(
            number for number in range(MOST_WORKERS) if number not in self._reserved
        )
        self._reserved.add(number)
        return number

    def open(self, number: int) -> Ledger:
        """Return the ledger of this process, which counts in the page of
        that number.
        """
        page = self._page(number)
        page.whole[IN_FLIGHT] = 0  # others may be left of a worker that was killed
        page.floats[EARLIER_CPU] = page.floats[CPU]
        self._pids[number] = os.getpid()
        return Ledger(page)

    def close(self, number: int) -> None:
        """Record the end of a page's worker, and its CPU time.

        The master calls it right after it has reaped it.
        """
        self._reserved.discard(number)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        reaped = usage.ru_utime + usage.ru_stime
        if self._pids[number] > 0:
            floats = self._page(number).floats
            floats[CPU] = floats[EARLIER_CPU] + reaped - self._reaped
            self._pids[number] = -self._pids[number]
        self._reaped = reaped

    def pages(self) -> list[Page]:
        """Return every page that a worker has ever opened."""
        return [
            self._page(number) for number, pid in enumerate(self._pids.tolist()) if pid
        ]

    def _page(self, number: int) -> Page:
        cells = self._memory[number * _CELLS * _CELL : (number + 1) * _CELLS * _CELL]
        pid = self._pids[number]
        return Page(abs(pid), pid > 0, cells.cast("q"), cells.cast("d"))


class Ledger:
    """The counters of one worker.

    Threads can share it: each method takes its lock once.
    """

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
        self,
        route: int,
        status: int,
        held: float,
        asked: float,
        received: int,
        sent: int,
        digest: int,
    ) -> None:
        """Count a reply that is ready: seconds since its request was read, seconds
        asked for, bytes of both bodies.

        It is called before the reply is sent, so once a client has read its replies,
        all of them are counted.
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


class UpstreamCollector(Collector):
    """Adds up the pages of a book at each scrape, so every worker returns the numbers
    of all workers.
    """

    def __init__(
        self, book: Book, framework: str, server: str, threads: int | None = None
    ) -> None:
        """`threads`: requests that a worker can hold at once; None without a limit."""
        self._book = book
        self._threads = threads
        self._about = {
            "framework": framework,
            "server": server,
            "python": platform.python_version(),
        }

    def text(self) -> bytes:
        """Return the content of /metrics, in the format of CONTENT_TYPE."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric. Totals include workers that ended; gauges do not."""
        pages = self._book.pages()
        alive = [page for page in pages if page.alive]
        held = [page.floats[HELD] for page in pages]
        cpu = [_cpu_seconds(page) for page in pages]
        yield _requests(pages)
        yield _hold_times(pages, sum(held))
        for name, text, cell in _TOTALS:
            yield CounterMetricFamily(
                name, text, sum(page.whole[cell] for page in pages)
            )
        asked = sum(page.floats[ASKED] for page in pages)
        yield CounterMetricFamily(
            "mockupstream_asked_delay_seconds", "Delays asked for.", asked
        )
        yield CounterMetricFamily(
            "mockupstream_cpu_seconds",
            "CPU time of all workers, user and system.",
            sum(cpu),
        )
        yield _by_worker(
            "mockupstream_worker_cpu_seconds",
            "CPU time of each worker and those before it.",
            cpu,
        )
        yield _by_worker(
            "mockupstream_worker_hold_seconds",
            "Sum of the times for which a worker held requests.",
            held,
        )
        in_flight = sum(page.whole[IN_FLIGHT] for page in alive)
        busy = sum(page.whole[IN_FLIGHT] > 0 for page in alive)
        yield GaugeMetricFamily(
            "mockupstream_requests_in_flight",
            "Requests read and not yet sent.",
            in_flight,
        )
        yield GaugeMetricFamily(
            "mockupstream_workers", "Worker processes alive.", len(alive)
        )
        yield GaugeMetricFamily(
            "mockupstream_workers_busy", "Workers that have a request just now.", busy
        )
        text = "Requests that all workers can hold at once; no sample without a limit."
        slots = (
            None if self._threads is None else self._threads * len(pages)
        )  # workers that ended are replaced
        yield GaugeMetricFamily("mockupstream_request_slots", text, slots)
        yield GaugeMetricFamily(
            "mockupstream_cores", "CPU cores that the workers may use.", usable_cores()
        )
        about = GaugeMetricFamily(
            "mockupstream_info",
            "What this upstream is; always 1.",
            labels=list(self._about),
        )
        about.add_metric(list(self._about.values()), 1)
        yield about


def _requests(pages: list[Page]) -> Metric:
    text = "Requests answered, by the route's template and status."
    family = CounterMetricFamily(
        "mockupstream_requests", text, labels=["route", "status"]
    )
    for cell, count in enumerate(
        _sum_cells(pages, REQUESTS, STATUSES * len(EVERY_ROUTE))
    ):
        if count:
            route, status = divmod(cell, STATUSES)
            family.add_metric(
                [EVERY_ROUTE[route].template, str(status + FIRST_STATUS)], count
            )
    return family


def _hold_times(pages: list[Page], total: float) -> Metric:
    text = "From a request's body read to its response ready, asked delay included."
    family = HistogramMetricFamily("mockupstream_hold_seconds", text)
    counts = _sum_cells(pages, BUCKETS, len(HOLD_BOUNDS) + 1)
    bounds = [*(str(bound) for bound in HOLD_BOUNDS), "+Inf"]
    family.add_metric(
        [],
        [(bound, sum(counts[: number + 1])) for number, bound in enumerate(bounds)],
        total,
    )
    return family


def _by_worker(name: str, text: str, values: list[float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["worker"])
    for number, value in enumerate(values):
        family.add_metric([str(number)], value)
    return family


def _sum_cells(pages: list[Page], first: int, count: int) -> list[int]:
    """Return `count` cells from `first`, each summed over all pages."""
    columns = zip(
        *(page.whole[first : first + count].tolist() for page in pages), strict=True
    )
    return [sum(column) for column in columns] or [0] * count


def _cpu_seconds(page: Page) -> float:
    """Return the CPU time of a page's workers: the last value seen, or the final one
    that the master has written.
    """
    if page.alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            page.floats[CPU] = page.floats[EARLIER_CPU] + cpu_seconds(page.pid)
    return page.floats[CPU]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process without its children.

    Raise psutil.NoSuchProcess.

    Linux has a clock for each process, in nanoseconds (clock_getcpuclockid(3)). psutil
    reads steps of 10 ms.
    """
    if sys.platform == "linux":
        with contextlib.suppress(
            OSError
        ):  # it has ended, or the kernel refuses: psutil finds out which
            return time.clock_gettime(~pid << 3 | _SCHED)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def usable_cores() -> float:
    """Return the cores that this process may use: by its affinity, and by its control
    group's quota (version 2).
    """
    allowed = float(
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return min(allowed, float(quota) / float(period))  # ValueError for `max`
    return allowed
