"""Open load: whether the planned rate is achieved, and what a frozen server does to both latencies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, context_on, expect_no_errors
from clientlab import child_processes
from clientlab.analysis.summary import latency_of, rank_of
from clientlab.measuring.measurement import Measurement, measure
from clientlab.running.open_load import KeptSchedule
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload

_FROZEN_SECONDS, _PERIOD = 1.0, 10.0
_PERIODS = 2
_RATE = 200


def rows(site: Site) -> Iterator[BenchmarkRow]:
    """Rates against the lab's upstream, and the frozen server."""
    yield from _rate(site, "aiohttp@workers", 1000, 30.0, 0.2)
    yield from _rate(site, "pycurl@multi", 5000, 10.0, 1.0)
    yield from _frozen(10)
    yield from _frozen(400)


def _rate(site: Site, strategy: str, rate: int, seconds: float, percent: float) -> Iterator[BenchmarkRow]:
    workload = Workload(rate=rate, duration=seconds, concurrency=32, connections="warm")
    figures, _ = _measured(site, strategy, workload)
    name, late = f"{strategy} at {rate:,}/s for {seconds:g} s", figures["lateness_seconds"]
    missing = 100 * (1 - figures["achieved_per_second"] / figures["planned_per_second"])
    yield _row(f"{name}: achieved less than planned", missing, f"<= {percent}", "%", met=missing <= percent)
    p99 = 1e3 * late["p99"]
    target = "<= 2" if rate == 1000 else "none"
    yield BenchmarkRow(
        f"{name}: start error, p99", p99, 1e3 * late["p50"], 1e3 * late["max"], "p50 to longest", target,
        rate != 1000 or p99 <= 2, "ms",
    )  # fmt: skip


def _frozen(places: int) -> Iterator[BenchmarkRow]:
    """A server that is stopped for 1 s in every 10 s. With places enough, both latencies agree."""
    workload = Workload(rate=_RATE, duration=_PERIODS * _PERIOD, concurrency=places, connections="warm")
    with _server() as (site, process):
        freezer = _Freezer(process.pid)
        figures, planned = _measured(site, "aiohttp@workers", workload, freezer)
    schedule = arrivals_of(workload)
    if schedule is None:
        raise SystemExit("an open load has a schedule")
    # What each request waits until the server goes on, from the schedule alone.
    starts = freezer.began + np.array([schedule.start_of(number) for number in range(schedule.count)])
    waits = np.zeros(schedule.count)
    for frozen, thawed in freezer.times:
        waits += np.where((starts >= frozen) & (starts < thawed), thawed - starts, 0.0)
    computed = float(np.sort(waits)[rank_of(99, len(waits)) - 1])
    name = f"server frozen {_FROZEN_SECONDS:g} s in {_PERIOD:g} s, {_RATE}/s, c={places}"
    ratio, of_send = planned["p99"] / computed, figures["sent_seconds"]["p99"] / computed
    yield _row(f"{name}: p99 from the plan over computed", ratio, "0.95 to 1.05", "x", met=0.95 <= ratio <= 1.05)
    far = places < _RATE * _FROZEN_SECONDS
    met = of_send <= 0.5 if far else 0.95 <= of_send <= 1.05
    yield _row(f"{name}: p99 from the send over computed", of_send, "<= 0.5" if far else "0.95 to 1.05", "x", met=met)


def _row(name: str, value: float, target: str, unit: str, *, met: bool) -> BenchmarkRow:
    return BenchmarkRow(name, value, value, value, "one trial", target, met, unit)


def _measured(
    site: Site, strategy: str, workload: Workload, freezer: _Freezer | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of the schedule, and latencies from the planned start. Raises SystemExit where a request failed."""
    with tempfile.TemporaryDirectory() as folder, freezer or contextlib.nullcontext():
        context = context_on(site, strategy, workload, folder)
        found: Measurement = measure(context, on_start=freezer.start if freezer else lambda: None)
    expect_no_errors(found.samples)
    schedule = arrivals_of(workload)
    if schedule is None:
        raise SystemExit("an open load has a schedule")
    if freezer is not None:
        freezer.began = found.outcome.began
    kept = KeptSchedule(found.samples, schedule)
    latencies = latency_of(kept.from_planned.records["seconds"], np.empty(0))
    return kept.figures(found.outcome.wall_seconds), latencies or {}


@dataclass
class _Freezer:
    """Stops a process for a second in the middle of every period, once it is started. `times`: from when to when."""

    pid: int
    began: float = 0.0
    times: list[tuple[float, float]] = field(default_factory=list)

    def __enter__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        began = time.perf_counter()
        for period in range(_PERIODS):
            moment = began + (period + 0.5) * _PERIOD
            if self._over.wait(moment - time.perf_counter()):
                return
            os.kill(self.pid, signal.SIGSTOP)
            frozen = time.perf_counter()
            self._over.wait(frozen + _FROZEN_SECONDS - time.perf_counter())
            os.kill(self.pid, signal.SIGCONT)
            self.times.append((frozen, time.perf_counter()))


@contextlib.contextmanager
def _server() -> Iterator[tuple[Site, subprocess.Popen[bytes]]]:
    """One process with nothing but aiohttp."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "benchmarks.bare_upstream", str(writing)]
    process = child_processes.start(command, None, os.environ, [writing])
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            yield Site(f"http://127.0.0.1:{int(answer.readline())}"), process
    finally:
        child_processes.stop(process, patience=0)
