"""Latencies: the quantiles of a trial, values that are only lower bounds, and all requests of an arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
import numpy.typing as npt

from clientlab.analysis.histogram import Distribution, Floats


@dataclass(frozen=True)
class BoundedValue:
    """A value. `at_least`: it is only a lower bound of the true value."""

    value: float
    at_least: bool = False


def median_of(values: Sequence[BoundedValue]) -> BoundedValue:
    """The median of one or more values. It is a lower bound if it would be larger with larger bounds."""
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
    """The nearest rank, from 1: the least that at least `percent` of `count` values are not above.

    Hyndman and Fan (1996), type 1.
    """
    return min(max(math.ceil(percent / 100 * count - 1e-9), 1), count)


_NO_TIME = 0.0
"""Seconds of a failed request whose time is not known: it took at least that long."""


@dataclass(frozen=True)
class Latencies:
    """`answered`: successful requests. `recorded`: these and the failed ones, by the time until they failed."""

    answered: Distribution
    recorded: Distribution

    def quantiles(self, shares: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The quantile of each share (0 to 1) of all requests, and whether it is only a lower bound.

        A failed request ranks after every successful one (see `analysis.summary.latency_of`). A quantile that falls on
        a failed request is a lower bound.
        """
        ranks = np.clip(np.ceil(shares * self.recorded.total - 1e-9), 1, self.recorded.total)
        bound = ranks > self.answered.total
        known = self.answered.quantiles(np.minimum(ranks / self.answered.total, 1.0))
        return np.where(bound, self.recorded.quantiles(shares), known), bound


def medians_of(rounds: Sequence[Latencies], shares: Floats) -> list[BoundedValue]:
    """The median of the rounds at each share: what a table says of a quantile. See `median_of`."""
    found = [one.quantiles(shares) for one in rounds]
    least = np.median([seconds for seconds, _ in found], axis=0)
    most = np.median([np.where(bound, np.inf, seconds) for seconds, bound in found], axis=0)
    return [BoundedValue(*one) for one in zip(least.tolist(), (least != most).tolist(), strict=True)]


def latencies_of(answered: Distribution, failed: Iterable[Distribution], failures: int) -> Latencies:
    """All requests. `failures`: how many failed; of those that `failed` lacks, no time is known."""
    parts = list(failed)
    unknown = failures - sum(part.total for part in parts)
    if unknown > 0:
        parts.append(Distribution(np.array([_NO_TIME]), np.array([unknown], np.int64)))
    seconds = np.concatenate([answered.seconds, *(part.seconds for part in parts)])
    counts = np.concatenate([answered.counts, *(part.counts for part in parts)])
    order = np.argsort(seconds, kind="stable")
    return Latencies(answered, Distribution(seconds[order], counts[order]))
