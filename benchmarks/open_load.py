"""Open load: whether the planned rate is achieved, and what a frozen server does to both latencies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import constant_rate
from benchmarks.figures import BenchmarkRow
from benchmarks.frozen_server import FROZEN_SECONDS, PERIOD, PERIODS, Freezer, bare_server
from benchmarks.trials import Site, context_on, expect_no_errors
from clientlab.analysis.latencies import rank_of
from clientlab.measuring.measurement import measure
from clientlab.measuring.outcome import Measurement
from clientlab.results.trial import OpenLoad, Quantiles
from clientlab.running.open_load import KeptSchedule
from clientlab.running.quantiles import quantiles_of
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload

_RATE = 200
_PLACES = 400
"""Enough for all requests that arrive while the server is frozen."""


@dataclass(frozen=True)
class _Paced:
    """A trial of an open load. `figures`: of its schedule; `latency`: from the planned start."""

    measured: Measurement
    figures: OpenLoad
    latency: Quantiles


def rows(site: Site) -> Iterator[BenchmarkRow]:
    """Rates against the lab's upstream, the frozen server, and the arithmetic of wrk2."""
    yield from _rate(site, "aiohttp@workers", 1000, 30.0, 0.2)
    yield from _rate(site, "pycurl@multi", 5000, 10.0, 1.0)
    yield from _frozen(10)
    yield from _frozen(_PLACES)
    yield from _beside_wrk2()


def _rate(site: Site, strategy: str, rate: int, seconds: float, percent: float) -> Iterator[BenchmarkRow]:
    workload = Workload(rate=rate, duration=seconds, concurrency=32, connections="warm")
    figures = _measured(site, strategy, workload).figures
    name, late = f"{strategy} at {rate:,}/s for {seconds:g} s", _known(figures.lateness_seconds)
    missing = 100 * (1 - figures.achieved_per_second / figures.planned_per_second)
    yield _row(f"{name}: achieved less than planned", missing, f"<= {percent}", "%", met=missing <= percent)
    p99 = 1e3 * late.p99
    target = "<= 2" if rate == 1000 else "none"
    yield BenchmarkRow(
        f"{name}: start error, p99", p99, 1e3 * late.p50, 1e3 * late.max, "p50 to longest", target,
        rate != 1000 or p99 <= 2, "ms",
    )  # fmt: skip


def _frozen(places: int) -> Iterator[BenchmarkRow]:
    """A server that is stopped for 1 s in every 10 s. With places enough, both latencies agree."""
    workload = Workload(rate=_RATE, duration=PERIODS * PERIOD, concurrency=places, connections="warm")
    with bare_server() as (site, process), Freezer(process.pid) as freezer:
        paced = _measured(site, "aiohttp@workers", workload, freezer)
    schedule = _schedule(workload)
    # What each request waits until the server goes on, from the schedule alone.
    starts = paced.measured.outcome.began + np.array([schedule.start_of(number) for number in range(schedule.count)])
    waits = np.zeros(schedule.count)
    for frozen, thawed in freezer.times:
        waits += np.where((starts >= frozen) & (starts < thawed), thawed - starts, 0.0)
    computed = float(np.sort(waits)[rank_of(99, len(waits)) - 1])
    name = f"server frozen {FROZEN_SECONDS:g} s in {PERIOD:g} s, {_RATE}/s, c={places}"
    ratio, of_send = paced.latency.p99 / computed, _known(paced.figures.sent_seconds).p99 / computed
    yield _row(f"{name}: p99 from the plan over computed", ratio, "0.95 to 1.05", "x", met=0.95 <= ratio <= 1.05)
    far = places < _RATE * FROZEN_SECONDS
    met = of_send <= 0.5 if far else 0.95 <= of_send <= 1.05
    yield _row(f"{name}: p99 from the send over computed", of_send, "<= 0.5" if far else "0.95 to 1.05", "x", met=met)


def _row(name: str, value: float, target: str, unit: str, *, met: bool) -> BenchmarkRow:
    return BenchmarkRow(name, value, value, value, "one trial", target, met, unit)


def _beside_wrk2() -> Iterator[BenchmarkRow]:
    """A response takes 50 ms, and the server is frozen at times."""
    seconds = int(PERIODS * PERIOD)
    workload = Workload(path="/delayed", rate=_RATE, duration=seconds, concurrency=_PLACES, connections="warm")
    with bare_server() as (site, process), Freezer(process.pid) as freezer:
        paced = _measured(site, "aiohttp@workers", workload, freezer)
    for quantile, value in constant_rate.of_wrk2(paced.measured, _RATE).items():
        ratio = getattr(paced.latency, quantile) / value
        yield _row(
            f"the same schedule, 50 ms of delay, c={_PLACES}: {quantile} of the lab over that of wrk2's arithmetic",
            ratio, "0.95 to 1.05", "x", met=0.95 <= ratio <= 1.05,
        )  # fmt: skip


def _measured(site: Site, strategy: str, workload: Workload, freezer: Freezer | None = None) -> _Paced:
    """A trial. Raises SystemExit where a request failed."""
    with tempfile.TemporaryDirectory() as folder:
        context = context_on(site, strategy, workload, folder)
        found = measure(context, on_start=freezer.start if freezer else lambda: None)
    expect_no_errors(found.samples)
    kept = KeptSchedule(found.samples, _schedule(workload))
    latencies = _known(quantiles_of(kept.from_planned.records["seconds"]))
    return _Paced(found, kept.figures(found.outcome.began, found.outcome.wall_seconds), latencies)


def _known(found: Quantiles | None) -> Quantiles:
    if found is None:
        raise SystemExit("no request was answered")
    return found


def _schedule(workload: Workload) -> Arrivals:
    schedule = arrivals_of(workload)
    if schedule is None:
        raise SystemExit("an open load has a schedule")
    return schedule
