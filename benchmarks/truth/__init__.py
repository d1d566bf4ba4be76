"""What the lab states, checked where the truth is known: simulations, and real trials with a known bottleneck.

Each group of rows is a module with a function ``rows``; a group of simulations is also an entry of `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import BenchmarkRow
from benchmarks.truth import (
    comparisons,
    coverage,
    draws,
    gates,
    headlines,
    limits,
    spreads,
    tails,
    verdict,
)

GROUPS = (tails, coverage, draws, spreads, headlines, comparisons, gates, limits)


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """All rows. `seed`: of all simulations."""
    yield from verdict.rows()
    for group in GROUPS:
        yield from group.rows(seed)
