"""The quantiles of a trial's latencies, and values that are only lower bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True)
class BoundedValue:
    """A value. `at_least`: it is only a lower bound of the true value."""

    value: float
    at_least: bool = False


def median_of(values: Sequence[BoundedValue]) -> BoundedValue:
    """Return the median of one or more values. It is a lower bound if it would be larger with larger bounds."""
    least = median(one.value for one in values)
    most = median(math.inf if one.at_least else one.value for one in values)
    return BoundedValue(least, least != most)


QuantileName = Literal["p50", "p90", "p95", "p99", "p999"]
QUANTILES: dict[str, float] = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
FEWEST_REQUESTS: dict[str, int] = {"p999": 1000}
"""With fewer requests, the quantile is unknown: it would be the longest request under another name."""

SLICES = 60
"""Of a trial's time, in each of which requests are counted."""


def rank_of(percent: float, count: int) -> int:
    """Return the nearest rank, from 1, of a percentile of `count` values (Hyndman and Fan 1996, type 1)."""
    return min(max(math.ceil(percent / 100 * count - 1e-9), 1), count)
