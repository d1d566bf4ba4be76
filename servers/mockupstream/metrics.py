"""The metrics of an upstream: all workers' counters, in Prometheus' text format."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockupstream import ledger
from mockupstream.behaviour import FIRST_STATUS
from mockupstream.contract import EVERY_ROUTE

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SCHED = 2  # CPUCLOCK_SCHED of Linux: nanoseconds that a process has run
_QUOTA = Path("/sys/fs/cgroup/cpu.max")

_TOTALS = (
    ("mockupstream_connections_accepted", "Connections whose first request was not a scrape.", ledger.CONNECTIONS),
    ("mockupstream_request_body_bytes", "Bytes of request bodies.", ledger.RECEIVED),
    ("mockupstream_response_body_bytes", "Bytes of response bodies.", ledger.SENT),
    ("mockupstream_request_digest", "Sum of the hashes of all requests' methods and targets.", ledger.DIGEST),
)


class UpstreamCollector(Collector):
    """Adds up the pages of a book at each scrape, so whichever worker answers it, the numbers are those of all."""

    def __init__(self, book: ledger.Book, framework: str, server: str, threads: int | None = None) -> None:
        """`threads`: requests that a worker can hold at once; None without a limit."""
        self._registry = CollectorRegistry()
        self._book = book
        self._threads = threads
        self._about = {"framework": framework, "server": server, "python": platform.python_version()}
        self._registry.register(self)

    def text(self) -> bytes:
        """Return the page that /metrics answers with, in the format of CONTENT_TYPE."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; totals include workers that ended, gauges do not."""
        pages = self._book.pages()
        alive = [page for page in pages if page.alive]
        held = [page.floats[ledger.HELD] for page in pages]
        cpu = [_cpu_seconds(page) for page in pages]
        yield _requests(pages)
        yield _hold_times(pages, sum(held))
        for name, text, cell in _TOTALS:
            yield CounterMetricFamily(name, text, sum(page.whole[cell] for page in pages))
        asked = sum(page.floats[ledger.ASKED] for page in pages)
        yield CounterMetricFamily("mockupstream_asked_delay_seconds", "Delays asked for.", asked)
        yield CounterMetricFamily("mockupstream_cpu_seconds", "CPU time of all workers, user and system.", sum(cpu))
        yield _by_worker("mockupstream_worker_cpu_seconds", "CPU time of each worker, in order of start.", cpu)
        yield _by_worker("mockupstream_worker_hold_seconds", "Sum of the times for which a worker held requests.", held)
        in_flight = sum(page.whole[ledger.IN_FLIGHT] for page in alive)
        busy = sum(page.whole[ledger.IN_FLIGHT] > 0 for page in alive)
        yield GaugeMetricFamily("mockupstream_requests_in_flight", "Requests read and not yet sent.", in_flight)
        yield GaugeMetricFamily("mockupstream_workers", "Worker processes alive.", len(alive))
        yield GaugeMetricFamily("mockupstream_workers_busy", "Workers that have a request just now.", busy)
        text = "Requests that all workers can hold at once; no sample without a limit."
        slots = None if self._threads is None else self._threads * len(alive)
        yield GaugeMetricFamily("mockupstream_request_slots", text, slots)
        yield GaugeMetricFamily("mockupstream_cores", "CPU cores that the workers may use.", usable_cores())
        about = GaugeMetricFamily("mockupstream_info", "What this upstream is; always 1.", labels=list(self._about))
        about.add_metric(list(self._about.values()), 1)
        yield about


def _requests(pages: list[ledger.Page]) -> Metric:
    text = "Requests answered, by the route's template and status."
    family = CounterMetricFamily("mockupstream_requests", text, labels=["route", "status"])
    for cell, count in enumerate(_sum_cells(pages, ledger.REQUESTS, ledger.STATUSES * len(EVERY_ROUTE))):
        if count:
            route, status = divmod(cell, ledger.STATUSES)
            family.add_metric([EVERY_ROUTE[route].template, str(status + FIRST_STATUS)], count)
    return family


def _hold_times(pages: list[ledger.Page], total: float) -> Metric:
    text = "From a request's body read to its response ready, asked delay included."
    family = HistogramMetricFamily("mockupstream_hold_seconds", text)
    counts = _sum_cells(pages, ledger.BUCKETS, len(ledger.HOLD_BOUNDS) + 1)
    bounds = [*(str(bound) for bound in ledger.HOLD_BOUNDS), "+Inf"]
    family.add_metric([], [(bound, sum(counts[: number + 1])) for number, bound in enumerate(bounds)], total)
    return family


def _by_worker(name: str, text: str, values: list[float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["worker"])
    for number, value in enumerate(values):
        family.add_metric([str(number)], value)
    return family


def _sum_cells(pages: list[ledger.Page], first: int, count: int) -> list[int]:
    """Return `count` cells from `first`, each summed over all pages."""
    columns = zip(*(page.whole[first : first + count].tolist() for page in pages), strict=True)
    return [sum(column) for column in columns] or [0] * count


def _cpu_seconds(page: ledger.Page) -> float:
    """Return the CPU time of a worker: the last value that was seen, until the master has written the final one."""
    if page.alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            page.floats[ledger.CPU] = cpu_seconds(page.pid)
    return page.floats[ledger.CPU]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process without its children. Raise psutil.NoSuchProcess.

    Linux has a clock for each process, in nanoseconds (clock_getcpuclockid(3)). psutil reads steps of 10 ms.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # it has ended, or the kernel refuses: psutil tells which
            return time.clock_gettime(~pid << 3 | _SCHED)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def usable_cores() -> float:
    """Return the cores that this process may use: by its affinity, and by its control group's quota (version 2)."""
    allowed = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return min(allowed, float(quota) / float(period))  # `max` is no number
    return allowed
