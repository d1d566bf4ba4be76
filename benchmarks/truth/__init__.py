"""Simulations with known truth: how often what the lab states is true. One module per group of rows.

Each module has a function ``rows() -> Iterator[BenchmarkRow]``; a new group is a module and an entry of `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import BenchmarkRow
from benchmarks.truth import comparisons, coverage, headlines, knees, limits, spreads

GROUPS = (coverage, spreads, headlines, comparisons, limits, knees)


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """All rows. `seed`: of all simulations."""
    for group in GROUPS:
        yield from group.rows(seed)
