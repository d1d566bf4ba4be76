"""What a request costs in memory: peak of a trial with many requests less that of one with few."""

from __future__ import annotations

from benchmarks.figures import Row
from benchmarks.overhead import Site, lab_trial
from clientlab.sample import RECORD_SIZE

STRATEGY = "aiohttp@workers"
FEW, MANY = 20_000, 1_000_000
LIMIT = 40


def row(site: Site) -> Row:
    """Bytes a request, the log's own records included: they are mapped into the process."""
    (_, few), (seconds, many) = lab_trial(STRATEGY, site, FEW), lab_trial(STRATEGY, site, MANY)
    growth = (many - few) / (MANY - FEW)
    name = f"peak memory a request, {STRATEGY}, {FEW:,} to {MANY:,} requests ({seconds:.0f} s)"
    return Row(name, growth, growth, growth, f"{RECORD_SIZE} are the record", f"<= {LIMIT}", growth <= LIMIT, "B")
