"""One row of the table: a figure, its spread, and what it has to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from clientlab.analysis.ratios import paired_ratio

LEAST_COVERAGE, MOST_FALSE = 0.93, 0.05


@dataclass(frozen=True)
class BenchmarkRow:
    """`low` and `high` are the 95 % interval of `value` or its range, as `spread` says."""

    name: str
    value: float
    low: float
    high: float
    spread: str
    target: str
    met: bool
    unit: str = "x"


def ratio(name: str, ratios: Sequence[float], limit: float | None = None) -> BenchmarkRow:
    """Return the row of a ratio that was measured once per round. Its median must not exceed the limit, if any."""
    value, rounds = median(ratios), dict(enumerate(ratios))
    target, met = ("none", True) if limit is None else (f"<= {limit:g}", value <= limit)
    mean = paired_ratio(rounds, dict.fromkeys(rounds, 1.0))
    if mean is None or mean.low is None or mean.high is None:
        return BenchmarkRow(name, value, min(ratios), max(ratios), f"range of {len(ratios)}", target, met)
    return BenchmarkRow(name, value, mean.low, mean.high, f"95 % of {len(ratios)} rounds", target, met)


def covered(name: str, hits: npt.NDArray[np.bool_]) -> BenchmarkRow:
    """Return the share of simulated intervals that hold the truth."""
    return share(name, hits, f">= {100 * LEAST_COVERAGE:g} %", met=bool(hits.mean() >= LEAST_COVERAGE))


def false(name: str, hits: npt.NDArray[np.bool_]) -> BenchmarkRow:
    """Return the share of simulated runs that state something false."""
    return share(name, hits, f"<= {100 * MOST_FALSE:g} %", met=bool(hits.mean() <= MOST_FALSE))


def share(name: str, hits: npt.NDArray[np.bool_], target: str = "none", *, met: bool = True) -> BenchmarkRow:
    """Return a share with its interval (Wilson 1927, Probable inference), which also fits shares near 0 and 1."""
    n, found, z = len(hits), float(hits.mean()), 1.96
    middle, reach = found + z**2 / (2 * n), z * np.sqrt(found * (1 - found) / n + z**2 / (4 * n**2))
    low, high = (100 * float(middle + sign * reach) / (1 + z**2 / n) for sign in (-1, 1))
    return BenchmarkRow(name, 100 * found, low, high, f"95 % of {n:,} runs", target, met, "%")
