"""What a request costs in memory: peak of a trial with many requests less that of one with few."""

from __future__ import annotations

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, outcome_of
from clientlab.samples.log import RECORD_SIZE
from clientlab.workload.workload import Workload

STRATEGY = "aiohttp@workers"
FEW, MANY = 20_000, 1_000_000
LIMIT = 40


def row(site: Site) -> BenchmarkRow:
    """Bytes a request, the log's own records included: they are mapped into the process."""
    few, many = (outcome_of(STRATEGY, site, Workload(requests=count)) for count in (FEW, MANY))
    growth = (many.peak_rss_bytes - few.peak_rss_bytes) / (MANY - FEW)
    name = f"peak memory a request, {STRATEGY}, {FEW:,} to {MANY:,} requests ({many.wall_seconds:.0f} s)"
    return BenchmarkRow(
        name, growth, growth, growth, f"{RECORD_SIZE} are the record", f"<= {LIMIT}", growth <= LIMIT, "B"
    )
