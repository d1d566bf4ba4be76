"""What scrapes cost the trial that they look at: scraped every second against not scraped, in pairs."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.figures import Row, at_most
from benchmarks.trials import Site, bench_on
from clientlab.analysis import samples
from clientlab.measuring.trial import run_trial
from clientlab.runs.document import Trial
from clientlab.work.exporter import Exporter
from clientlab.work.pages import Pages
from clientlab.workload import Workload

LIMIT = 1.01
STRATEGIES = {"http.client": 25_000, "aiohttp@workers": 25_000}
"""And how many requests: some seconds of them, so that each trial is scraped several times."""

_SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1], timeout=5).read()
    time.sleep(1)
"""


def rows(url: str, rounds: int) -> Iterator[Row]:
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
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        bench = bench_on(Site(url), strategy, workload, folder)
        planned = Trial(
            arm=strategy, strategy=strategy, upstream="aiohttp", route="direct", workload="w", round=1, order=0,
            status="failed", started=datetime.now(UTC).isoformat(), concurrency=bench.concurrency,
        )  # fmt: skip
        exporter = Exporter("bench", "bench", planned, workload, Path(folder))
        registry = CollectorRegistry()
        registry.register(exporter)
        pages = Pages(listener, lambda: generate_latest(registry))
        tail = samples.Tail(Path(folder))
        with _scraper(listener.getsockname()[1]) if scraped else contextlib.nullcontext():
            outcome = run_trial(bench, tail.finished, exporter.started, exporter.ended)
        pages.stop()
        if bool(pages.scrapes) != scraped:
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
