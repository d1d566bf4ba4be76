"""What scrapes cost the trial that they look at: scraped every second against not scraped, in pairs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Pipe
from pathlib import Path

from benchmarks.figures import BenchmarkRow, at_most
from benchmarks.trials import Site, context_on
from clientlab.measuring.measurement import measure
from clientlab.results.trial import PlannedTrial
from clientlab.worker.channel import JobMetrics, MetricsSender
from clientlab.worker.exporter import Exporter
from clientlab.worker.metrics_server import MetricsServer
from clientlab.workload.workload import Workload

LIMIT = 1.01
STRATEGIES = {"http.client": 25_000, "aiohttp@workers": 25_000}
"""And how many requests: some seconds of them, so that each trial is scraped several times."""

_SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1], timeout=5).read()
    time.sleep(1)
"""


def rows(url: str, rounds: int) -> Iterator[BenchmarkRow]:
    """A row a strategy. Each pair is two fresh processes, the first of them in turn."""
    for name, requests in STRATEGIES.items():
        ratios = []
        for number in range(rounds):
            order = (True, False) if number % 2 else (False, True)
            seconds = {scraped: _seconds(name, url, requests, scraped=scraped) for scraped in order}
            ratios.append(seconds[True] / seconds[False])
        yield at_most(f"scraped every second over not scraped, {name}, N={requests:,}", ratios, LIMIT)


def _seconds(strategy: str, url: str, requests: int, *, scraped: bool) -> float:
    """Wall seconds of one trial, with its page as a worker has it."""
    workload = Workload(requests=requests)
    with tempfile.TemporaryDirectory() as folder:
        context = context_on(Site(url), strategy, workload, folder)
        planned = PlannedTrial(
            arm=strategy, strategy=strategy, upstream="aiohttp", route="direct", workload="w", round=1, order=0,
            concurrency=context.concurrency,
        )  # fmt: skip
        exporter = Exporter("bench", "bench", planned, workload, Path(folder))
        ours, theirs = Pipe()
        metrics = JobMetrics()
        MetricsSender(theirs, exporter)
        metrics.attach(ours)
        server = MetricsServer("127.0.0.1", 0, metrics)
        with _scraper(server.port) if scraped else contextlib.nullcontext():
            outcome = measure(context, on_start=exporter.started, on_end=exporter.ended).outcome
        if bool(server.scrapes) != scraped:
            raise SystemExit("scrape: the trial was not scraped as it was to be; give it more requests")
    return outcome.wall_seconds


@contextlib.contextmanager
def _scraper(port: int) -> Iterator[None]:
    """Prometheus' part, as a process of its own."""
    with subprocess.Popen([sys.executable, "-c", _SCRAPER, f"http://127.0.0.1:{port}/metrics"]) as process:
        try:
            yield
        finally:
            process.kill()
