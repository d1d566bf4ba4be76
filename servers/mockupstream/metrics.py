"""The metrics of an upstream: all workers' counters, as prometheus_client writes them."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import psutil
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from mockupstream import ledger
from mockupstream.behaviour import FIRST_STATUS
from mockupstream.contract import EVERY_ROUTE
from mockupstream.processor import cpu_seconds, usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

CONTENT_TYPE = CONTENT_TYPE_LATEST


class UpstreamCollector(Collector):
    """Adds up the pages of a book at each scrape; whichever worker answers it, the numbers are those of all."""

    def __init__(self, book: ledger.Book, framework: str, server: str, threads: int | None = None) -> None:
        """Take the book, and what to tell of the upstream: its framework and what serves it.

        `threads`: requests that a worker can hold at once; None where nothing limits them.
        """
        self._book = book
        self._threads = threads
        self._about = {"framework": framework, "server": server, "python": platform.python_version()}

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; totals include workers that ended, gauges do not."""
        pages = self._book.pages()
        yield _requests(pages)
        yield _hold(pages)
        for name, text, cell in _TOTALS:
            yield CounterMetricFamily(name, text, sum(page.whole[cell] for page in pages))
        asked = sum(page.floats[ledger.ASKED] for page in pages)
        yield CounterMetricFamily("mockupstream_asked_delay_seconds", "Delays asked for.", asked)
        cpu = [_cpu_seconds(page) for page in pages]
        yield CounterMetricFamily("mockupstream_cpu_seconds", "CPU time of all workers, user and system.", sum(cpu))
        yield _by_worker(
            "mockupstream_worker_cpu_seconds", "CPU time of each worker, in the order of their start.", cpu
        )
        held = [page.floats[ledger.HELD] for page in pages]
        yield _by_worker("mockupstream_worker_hold_seconds", "Time in which each worker held requests, summed.", held)
        alive = [page for page in pages if page.alive]
        in_flight = sum(page.whole[ledger.IN_FLIGHT] for page in alive)
        yield GaugeMetricFamily("mockupstream_requests_in_flight", "Requests read and not yet sent.", in_flight)
        yield GaugeMetricFamily("mockupstream_workers", "Worker processes alive.", len(alive))
        busy = sum(page.whole[ledger.IN_FLIGHT] > 0 for page in alive)
        yield GaugeMetricFamily("mockupstream_workers_busy", "Workers that have a request just now.", busy)
        slots = GaugeMetricFamily(
            "mockupstream_request_slots", "Requests that all workers can hold at once, if limited."
        )
        if self._threads is not None:
            slots.add_metric([], self._threads * len(alive))
        yield slots
        yield GaugeMetricFamily("mockupstream_cores", "CPU cores that the workers may use.", usable_cores())
        about = GaugeMetricFamily("mockupstream_info", "What this upstream is; always 1.", labels=list(self._about))
        about.add_metric(list(self._about.values()), 1)
        yield about


class Exposition:
    """The page that /metrics answers with."""

    def __init__(self, collector: UpstreamCollector) -> None:
        """Write what `collector` tells, and nothing of this process alone: any worker may be asked."""
        self._registry = CollectorRegistry()
        self._registry.register(collector)

    def text(self) -> bytes:
        """Return the text exposition, in the format of CONTENT_TYPE."""
        return generate_latest(self._registry)


_TOTALS = (
    ("mockupstream_connections_accepted", "Connections whose first request was not a scrape.", ledger.CONNECTIONS),
    ("mockupstream_request_body_bytes", "Bytes of request bodies.", ledger.RECEIVED),
    ("mockupstream_response_body_bytes", "Bytes of response bodies.", ledger.SENT),
    ("mockupstream_request_digest", "Sum of the hashes of all requests' methods and targets.", ledger.DIGEST),
)


def _requests(pages: list[ledger.Page]) -> Metric:
    family = CounterMetricFamily(
        "mockupstream_requests", "Requests answered, by the route's template and status.", labels=["route", "status"]
    )
    totals = _added(pages, ledger.REQUESTS, ledger.STATUSES * len(EVERY_ROUTE))
    for cell, count in enumerate(totals):
        if count:
            route, status = divmod(cell, ledger.STATUSES)
            family.add_metric([EVERY_ROUTE[route].template, str(status + FIRST_STATUS)], count)
    return family


def _by_worker(name: str, text: str, values: list[float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["worker"])
    for number, value in enumerate(values):
        family.add_metric([str(number)], value)
    return family


def _hold(pages: list[ledger.Page]) -> Metric:
    counts = _added(pages, ledger.BUCKETS, len(ledger.HOLD_BOUNDS) + 1)
    bounds = [*(str(bound) for bound in ledger.HOLD_BOUNDS), "+Inf"]
    cumulative = [(bound, sum(counts[: number + 1])) for number, bound in enumerate(bounds)]
    family = HistogramMetricFamily(
        "mockupstream_hold_seconds", "From a request's body read to its response ready, asked delay included."
    )
    family.add_metric([], cumulative, sum(page.floats[ledger.HELD] for page in pages))
    return family


def _added(pages: list[ledger.Page], first: int, count: int) -> list[int]:
    """Return `count` cells from `first`, each summed over all pages."""
    columns = zip(*(page.whole[first : first + count].tolist() for page in pages), strict=True)
    return [sum(column) for column in columns] or [0] * count


def _cpu_seconds(page: ledger.Page) -> float:
    if not page.alive:
        return page.floats[ledger.CPU]
    try:
        seen = cpu_seconds(page.pid)
    except psutil.NoSuchProcess:
        # It was reaped, and the master is just about to write its final time down: until then, the last one seen.
        return page.floats[ledger.CPU]
    page.floats[ledger.CPU] = seen
    return seen
