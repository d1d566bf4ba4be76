"""Which quantiles a trial has, and the rank of each among its requests."""

from __future__ import annotations

import math
from typing import Literal

QuantileName = Literal["p50", "p90", "p95", "p99", "p999"]
QUANTILES: dict[str, float] = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
FEWEST_REQUESTS: dict[str, int] = {"p999": 1000}
"""With fewer requests, the quantile is unknown: it would be the longest request under another name."""

SLICES = 60
"""Of a trial's time, in each of which requests are counted."""


def rank_of(percent: float, count: int) -> int:
    """The nearest rank, from 1: the least that at least `percent` of `count` values are not above.

    Hyndman and Fan (1996), type 1.
    """
    return min(max(math.ceil(percent / 100 * count - 1e-9), 1), count)
