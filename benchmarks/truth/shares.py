"""Rows for a share of simulations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.figures import BenchmarkRow

LEAST_COVERAGE = 0.93
MOST_FALSE = 0.05


def covered(name: str, hits: npt.NDArray[np.bool_]) -> BenchmarkRow:
    """How many intervals hold the truth."""
    return _row(name, hits, f">= {100 * LEAST_COVERAGE:g} %", met=bool(hits.mean() >= LEAST_COVERAGE))


def false(name: str, hits: npt.NDArray[np.bool_]) -> BenchmarkRow:
    """How many runs or tables make a false statement."""
    return _row(name, hits, f"<= {100 * MOST_FALSE:g} %", met=bool(hits.mean() <= MOST_FALSE))


def without_target(name: str, hits: npt.NDArray[np.bool_]) -> BenchmarkRow:
    """A share with nothing to reach, such as a power."""
    return _row(name, hits, "none", met=True)


def _row(name: str, hits: npt.NDArray[np.bool_], target: str, *, met: bool) -> BenchmarkRow:
    n, share = len(hits), float(hits.mean())
    # Wilson (1927), Probable inference, J. Am. Stat. Assoc. 22: the interval of a share, also near 0 and 1.
    z = 1.96
    middle, reach = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((middle + sign * reach) / (1 + z**2 / n) for sign in (-1, 1))
    return BenchmarkRow(
        name, 100 * share, 100 * float(low), 100 * float(high), f"95 % of {n:,} runs", target, met=met, unit="%"
    )
