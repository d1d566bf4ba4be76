"""The latencies of all requests of an arm, failed ones included, from histograms: for charts, never for intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.bounded import BoundedValue
from clientlab.analysis.histogram import Distribution, Floats
from clientlab.analysis.summary import rank_of

_NO_TIME = 0.0
"""Seconds of a failed request whose time is not known: it took at least that long."""


@dataclass(frozen=True)
class Latencies:
    """`answered`: successful requests. `recorded`: these and the failed ones, by the time until they failed."""

    answered: Distribution
    recorded: Distribution

    @property
    def failed_share(self) -> float:
        """Failed requests among all."""
        return 1 - self.answered.total / self.recorded.total

    def quantile(self, share: float) -> BoundedValue:
        """The quantile of that share (0 to 1) of all requests.

        A failed request ranks after every successful one (see `analysis.summary.latency_of`). A quantile that falls on
        a failed request is a lower bound.
        """
        rank = rank_of(100 * share, self.recorded.total)
        known = rank <= self.answered.total
        return BoundedValue(_at(self.answered if known else self.recorded, rank), not known)

    def known(self, shares: Floats) -> list[float | None]:
        """The quantile of each share; None where it is only a lower bound."""
        found = map(self.quantile, shares.tolist())
        return [None if one.at_least else one.value for one in found]


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


def _at(distribution: Distribution, rank: int) -> float:
    return float(distribution.seconds[np.searchsorted(distribution.counts.cumsum(), rank)])
