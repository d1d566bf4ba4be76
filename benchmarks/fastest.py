"""Who is fastest with 32 in flight: requests a second over those of aiohttp, on one upstream, in shared rounds."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.figures import BenchmarkRow, at_least, ratio
from benchmarks.trials import Site, outcome_of
from clientlab.workload.workload import Workload

REQUESTS, CONCURRENCY = 5_000, 32
STANDARD, HELD, LIMIT = "aiohttp@workers", "pycurl@multi", 2
STRATEGIES = (
    STANDARD, HELD, "pyreqwest-async@workers", "aiosonic@workers", "httpx-async@workers", "pycurl@threads",
    "http.client@threads", "urllib3@threads", "requests-session@threads",
)  # fmt: skip


def rows(site: Site, rounds: int) -> Iterator[BenchmarkRow]:
    """A row a strategy, the fastest first. Each round is a fresh process a strategy, another of them first in turn."""
    workload = Workload(requests=REQUESTS, concurrency=CONCURRENCY)
    wall: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    cpu: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for number in range(rounds):
        first = number % len(STRATEGIES)
        for name in STRATEGIES[first:] + STRATEGIES[:first]:
            outcome = outcome_of(name, site, workload)
            wall[name].append(outcome.wall_seconds)
            cpu[name].append(outcome.cpu_seconds / REQUESTS)
    ratios_of = {
        name: [standard / own for standard, own in zip(wall[STANDARD], walls, strict=True)]
        for name, walls in wall.items()
    }
    for place, name in enumerate(sorted(STRATEGIES, key=lambda name: -median(ratios_of[name])), 1):
        ratios = ratios_of[name]
        rate, spent = REQUESTS / median(wall[name]), median(cpu[name]) * 1e6
        about = f"{place}. {name} over {STANDARD}, c={CONCURRENCY}: {rate:,.0f} req/s, {spent:.0f} µs of CPU each"
        yield at_least(about, ratios, LIMIT) if name == HELD else ratio(about, ratios)
