"""What a request costs in memory: peak of a trial with many requests less that of one with few."""

from __future__ import annotations

import math

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, outcome_of
from clientlab.samples.log import RECORD_SIZE
from clientlab.workload.workload import Workload

STRATEGY = "aiohttp@workers"
FEW, MANY = 20_000, 1_000_000
LIMIT = 8


def row(site: Site) -> BenchmarkRow:
    """Bytes a request. The log's own records are mapped into the process, and do not count."""
    few, many = (outcome_of(STRATEGY, site, Workload(requests=count)) for count in (FEW, MANY))
    growth = ((many.peak_pss_bytes or math.nan) - (few.peak_pss_bytes or math.nan)) / (MANY - FEW)
    name = f"peak memory a request, {STRATEGY}, {FEW:,} to {MANY:,} requests ({many.wall_seconds:.0f} s)"
    return BenchmarkRow(
        name, growth, growth, growth, f"beside the record's {RECORD_SIZE}", f"<= {LIMIT}", growth <= LIMIT, "B"
    )
