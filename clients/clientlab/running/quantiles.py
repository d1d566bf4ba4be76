"""Quantiles of the times of requests, in seconds, from samples or from histograms that are added up.

They are of all requests. A failed request was not answered, so it ranks after every successful one: an error, fast or
slow, must not make a strategy look fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import get_args

import numpy as np

from clientlab.analysis.histogram import Floats, added, distribution_of, histogram_of
from clientlab.analysis.latencies import FEWEST_REQUESTS, QUANTILES, QuantileName, rank_of
from clientlab.results.shard import ShardTimes
from clientlab.results.times import Histogram, Quantiles
from clientlab.samples.log_reader import Records

_NAMES: tuple[QuantileName, ...] = get_args(QuantileName)
_NONE = np.empty(0)


def times_by_success(records: Records) -> tuple[Floats, Floats]:
    """Seconds of the successful and of the failed requests, shape (n,) each."""
    good = records["error"] == 0
    return records["seconds"][good], records["seconds"][~good]


def quantiles_of(answered: Floats, failed: Floats = _NONE) -> Quantiles | None:
    """Mean, quantiles and maximum over all requests, and the names of those that are lower bounds (`at_least`).

    `answered`, `failed`: shape (n,), seconds of the successful and of the failed requests. None if none succeeded.

    A failed request ranks after every successful one. The quantile of rank r is exact while at least r requests
    succeeded. Beyond, the true quantile is only known to be at least the value of rank r among all recorded times,
    which is the quantile if each failed request had been answered in the moment in which it failed. Any failed
    request makes mean and maximum lower bounds. So right-censored data are ranked (Klein and Moeschberger 2003, 3.2),
    with no assumption about the time that a failed request would have taken.
    """
    if not len(answered):
        return None
    ranked = np.sort(answered)
    recorded = np.sort(np.concatenate([answered, failed])) if len(failed) else ranked

    def value_of(rank: int) -> float:
        return float((ranked if rank <= len(ranked) else recorded)[rank - 1])

    return _quantiles(len(ranked), len(recorded), value_of, float(recorded.mean()), float(recorded[-1]))


def quantiles_of_histograms(times: Iterable[ShardTimes]) -> Quantiles | None:
    """The same from histograms that are added up: quantiles are never averaged.

    Each quantile is the upper end of its bucket; mean and maximum are exact.
    """
    times = list(times)
    answered = recorded = added(one.answered.encoded for one in times)
    if failed := [one.failed.encoded for one in times if one.failed is not None]:
        recorded = added(failed)
        recorded.add(answered)
    ranked = every = distribution_of(answered)
    if recorded is not answered:
        every = distribution_of(recorded)
    if not ranked.total:
        return None
    longest = max(one.longest_seconds for one in times)

    def value_of(rank: int) -> float:
        return min((ranked if rank <= ranked.total else every).value_of(rank), longest)

    mean = sum(one.sum_seconds for one in times) / every.total
    return _quantiles(ranked.total, every.total, value_of, mean, longest)


def _quantiles(answered: int, count: int, value_of: Callable[[int], float], mean: float, longest: float) -> Quantiles:
    """The quantiles of `count` requests, of which so many succeeded. `value_of`: seconds at a rank, from 1."""
    bounds: list[QuantileName] = [
        name for name in _NAMES if rank_of(QUANTILES[name], count) > answered and count >= FEWEST_REQUESTS.get(name, 1)
    ]

    def at(name: QuantileName) -> float:
        return value_of(rank_of(QUANTILES[name], count))

    return Quantiles(
        mean=mean,
        p50=at("p50"),
        p90=at("p90"),
        p95=at("p95"),
        p99=at("p99"),
        p999=at("p999") if count >= FEWEST_REQUESTS["p999"] else None,
        max=longest,
        at_least=["mean", *bounds, "max"] if answered < count else [],
    )


def times_of(answered: Floats, failed: Floats) -> ShardTimes:
    """The times of some requests as a shard reports them. Shapes: (n,) and (m,), seconds."""
    both = np.concatenate([answered, failed])
    return ShardTimes(
        answered=histogram_part(answered),
        failed=histogram_part(failed) if len(failed) else None,
        sum_seconds=float(both.sum()),
        longest_seconds=float(both.max(initial=0.0)),
    )


def histogram_part(seconds: Floats) -> Histogram:
    """The latencies as the run document holds them. `seconds`: shape (n,)."""
    return Histogram(encoded=histogram_of(seconds).encode().decode())


def added_part(histograms: Sequence[Histogram]) -> Histogram:
    """The sum of histograms."""
    return Histogram(encoded=added(one.encoded for one in histograms).encode().decode())
