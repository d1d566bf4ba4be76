"""How long it takes to check every listed strategy, one after the other, and whether all keep to the checks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from benchmarks.figures import Row
from clientlab.conformance import conform, drills_of
from clientlab.strategies import STRATEGIES, unavailable

LIMIT = 240.0


def rows() -> Iterator[Row]:
    """Seconds in all, and how many checks are broken. Those without drills are said."""
    drilled = [strategy for strategy in STRATEGIES.values() if drills_of(strategy) and not unavailable(strategy)]
    if left := ", ".join(sorted(STRATEGIES.keys() - {strategy.name for strategy in drilled})):
        print(f"conformance: without drills here: {left}", file=sys.stderr)
    took: dict[str, float] = {}
    broken = 0
    for strategy in drilled:
        began = time.perf_counter()
        for result in conform(strategy):
            if not result.passed:
                broken += 1
                print(f"conformance: {strategy.name}, {result.check}: {result.broken}", file=sys.stderr)
        took[strategy.name] = time.perf_counter() - began
    about = f"{len(drilled)} of {len(STRATEGIES)} strategies"
    whole, spread = sum(took.values()), "range of one strategy"
    yield Row(f"all drills of {about}", whole, min(took.values()), max(took.values()), spread, f"<= {LIMIT:g}",
              whole <= LIMIT, "s")  # fmt: skip
    yield Row(f"checks broken by {about}", broken, broken, broken, "one pass", "<= 0", not broken, "")
