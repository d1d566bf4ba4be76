"""What a request costs in memory, and a request in flight: peak of a large trial less that of a small one."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Iterator

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, outcome_of
from clientlab.samples.log import RECORD_SIZE
from clientlab.workload.workload import Workload

STRATEGY = "aiohttp@workers"
FEW, MANY = 20_000, 1_000_000
LIMIT = 8
NARROW, WIDE = 16, 16_000
_OTHER_FILES = 200


def rows(site: Site) -> Iterator[BenchmarkRow]:
    """Of many requests, and of many in flight, if the limit of open files permits them."""
    yield row(site)
    there = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if there < WIDE + _OTHER_FILES:
        wanted = WIDE + _OTHER_FILES
        print(
            f"memory: {WIDE:,} in flight are left out: {there:,} of {wanted:,} open files; ulimit -n", file=sys.stderr
        )
        return
    yield in_flight(site)


def row(site: Site) -> BenchmarkRow:
    """Bytes a request. The log's own records are mapped into the process, and do not count."""
    few, many = (outcome_of(STRATEGY, site, Workload(requests=count)) for count in (FEW, MANY))
    growth = ((many.peak_pss_bytes or math.nan) - (few.peak_pss_bytes or math.nan)) / (MANY - FEW)
    name = f"peak memory a request, {STRATEGY}, {FEW:,} to {MANY:,} requests ({many.wall_seconds:.0f} s)"
    return BenchmarkRow(
        name, growth, growth, growth, f"beside the record's {RECORD_SIZE}", f"<= {LIMIT}", growth <= LIMIT, "B"
    )


def in_flight(site: Site) -> BenchmarkRow:
    """KiB a request in flight, each on a connection of its own, of which each is used twice."""
    narrow, wide = (
        outcome_of(
            STRATEGY, site, Workload(requests=2 * WIDE, concurrency=places, connections="warm", timeout=120.0)
        )
        for places in (NARROW, WIDE)
    )  # fmt: skip
    growth = ((wide.peak_pss_bytes or math.nan) - (narrow.peak_pss_bytes or math.nan)) / (WIDE - NARROW) / 1024
    name = f"peak memory a request in flight, {STRATEGY}, {NARROW:,} to {WIDE:,} of them ({wide.wall_seconds:.0f} s)"
    return BenchmarkRow(name, growth, growth, growth, "one trial each", "none", True, "KiB")
