"""How long it takes to check every listed strategy, as the tests do it, and whether all keep to the checks.

Hostile servers are left out: `scripts/bench hostile` meets them with every client.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks import hostile
from benchmarks.figures import BenchmarkRow
from clientlab.conformance import scenarios_of
from clientlab.strategies import STRATEGIES, unavailable

LIMIT = 240.0
AT_ONCE = 5
"""Scenarios at once: half of a scenario's time is spent waiting."""


def rows() -> Iterator[BenchmarkRow]:
    """Seconds in all, and how many checks are broken. Strategies without scenarios are named on stderr."""
    measured = [strategy for strategy in STRATEGIES.values() if scenarios_of(strategy) and not unavailable(strategy)]
    if left := ", ".join(sorted(STRATEGIES.keys() - {strategy.name for strategy in measured})):
        print(f"conformance: without scenarios here: {left}", file=sys.stderr)
    began, checks, broken = time.perf_counter(), 0, 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pending = [
            (strategy, pool.submit(scenario.judge, strategy))
            for strategy in measured
            for scenario in scenarios_of(strategy)
            if scenario.name not in hostile.SCENARIOS
        ]
        for strategy, judged in pending:
            for result in judged.result():
                checks += 1
                if not result.passed:
                    broken += 1
                    print(f"conformance: {strategy.name}, {result.check}: {result.broken}", file=sys.stderr)
    whole = time.perf_counter() - began
    about = f"{len(measured)} of {len(STRATEGIES)} strategies"
    name, met = f"{checks:,} checks of {about}, {AT_ONCE} scenarios at once", whole <= LIMIT
    yield BenchmarkRow(name, whole, whole, whole, "one pass", f"<= {LIMIT:g}", met, "s")
    yield BenchmarkRow(f"checks broken by {about}", broken, broken, broken, "one pass", "<= 0", not broken, "")
