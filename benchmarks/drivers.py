"""The lab's strategies beside load generators, on one upstream; and the upstream beside go-httpbin and httpbin.

Each driver keeps 32 requests in flight for the same time, in rounds in which another one begins in turn. Nothing is
installed: programs are looked up on PATH, and what is missing is named on standard error.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from statistics import median

from benchmarks.figures import BenchmarkRow, ratio
from benchmarks.trials import Site, context_on, expect_no_errors
from clientlab import strategies
from clientlab.generators import programs
from clientlab.generators.generator_interface import Generator, GeneratorLoad
from clientlab.measuring.measurement import measure
from clientlab.results.surroundings import cpu_usable
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload

SECONDS, IN_FLIGHT = 4, 32
STRATEGIES = (
    "pycurl@multi", "pyqwest-async@workers", "aiohttp@workers", "urllib3@threads",
)  # fmt: skip
_UPSTREAM = ("aiohttp", "direct")


@dataclass(frozen=True)
class Sent:
    """One load. `cpu_seconds`: of the driver; `upstream`: busy share of the upstream's cores."""

    requests: int
    seconds: float
    cpu_seconds: float
    upstream: float = 0.0

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True)
class Driver:
    """A program or a strategy. `name` has the version, if the program prints it."""

    name: str
    send: Callable[[], Sent]


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """A row a driver, the fastest first: its rate as a share of the fastest one's."""
    workers = workers_for(IN_FLIGHT)
    with tempfile.TemporaryDirectory() as logs, LocalTestbed(["aiohttp"], ["direct"], Path(logs), workers) as testbed:
        site = Site(f"{testbed.base_url(*_UPSTREAM)}/")
        drivers = [*_programs(site), *_strategies(site)]
        found: dict[str, list[Sent]] = {driver.name: [] for driver in drivers}
        for number in range(rounds):
            first = number % len(drivers)
            for driver in drivers[first:] + drivers[:first]:
                found[driver.name].append(_watched(driver, testbed))
    print(f"drivers: load average {os.getloadavg()[0]:.1f} on {cpu_usable():g} cores at the end", file=sys.stderr)
    rates = {name: [sent.rate for sent in loads] for name, loads in found.items()}
    order = sorted(rates, key=lambda name: -median(rates[name]))
    for place, name in enumerate(order, 1):
        shares = [own / best for own, best in zip(rates[name], rates[order[0]], strict=True)]
        yield ratio(f"{place}. {name} over {order[0]}, c={IN_FLIGHT}: {_figures(found[name])}", shares)


def _figures(loads: list[Sent]) -> str:
    each = median(sent.cpu_seconds / sent.requests for sent in loads) * 1e6
    busy = 100 * median(sent.upstream for sent in loads)
    return f"{median(sent.rate for sent in loads):,.0f} req/s, {each:.1f} µs of CPU each, upstream {busy:.0f} % busy"


def _watched(driver: Driver, testbed: LocalTestbed) -> Sent:
    """The load, with the CPU time of the upstream as a share of its cores."""
    before = testbed.reading(*_UPSTREAM).upstream
    sent = driver.send()
    after = testbed.reading(*_UPSTREAM).upstream
    if before is None or after is None:
        raise SystemExit("the upstream has no counters")
    spent = after.cpu_seconds - before.cpu_seconds
    return Sent(sent.requests, sent.seconds, sent.cpu_seconds, spent / sent.seconds / (after.processes or 1))


def _programs(site: Site) -> Iterator[Driver]:
    """The load generators that are installed."""
    load = GeneratorLoad(requests_of(Workload(), site.url.rstrip("/"))(0), IN_FLIGHT, SECONDS)
    for generator in programs.GENERATORS:
        if which(generator.name) is None:
            say_left_out(generator.name, f"it is not installed; {generator.install}")
            continue
        name = " ".join(filter(None, (generator.name, programs.version_of(generator))))
        yield Driver(name, lambda one=generator: driven(one, load))  # type: ignore[misc]


def driven(generator: Generator, load: GeneratorLoad) -> Sent:
    """One load of a program. Raises GeneratorFailed, and SystemExit where a request failed."""
    with tempfile.TemporaryDirectory() as folder:
        found = programs.drive(generator, load, Path(folder))
    if found.report.failed:
        raise SystemExit(f"{found.report.failed:,} requests of {generator.name} failed: that is another load")
    return Sent(found.report.succeeded, found.report.seconds, found.cpu_seconds)


def _strategies(site: Site) -> Iterator[Driver]:
    """The strategies whose libraries are installed."""
    workload = Workload(duration=float(SECONDS), concurrency=IN_FLIGHT)
    for name in STRATEGIES:
        if reason := strategies.unavailable(strategies.find(name)):
            say_left_out(name, reason)
            continue
        yield Driver(name, lambda one=name: _sent_by(one, site, workload))  # type: ignore[misc]


def _sent_by(strategy: str, site: Site, workload: Workload) -> Sent:
    with tempfile.TemporaryDirectory() as folder:
        found = measure(context_on(site, strategy, workload, folder))
        expect_no_errors(found.samples)
        return Sent(len(found.samples.records), found.outcome.wall_seconds, found.outcome.cpu_seconds)


def say_left_out(name: str, reason: str) -> None:
    """Name what is not measured, and the reason."""
    print(f"drivers: {name} is left out: {reason}", file=sys.stderr)
