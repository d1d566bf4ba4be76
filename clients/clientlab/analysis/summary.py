"""Figures of a trial from its samples, in seconds.

Quantiles are of all requests. A failed request was not answered, so it ranks after every successful one: an error,
fast or slow, must not make a strategy look fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from clientlab.analysis.histogram import Distribution
from clientlab.samples.log_reader import Records

Array = npt.NDArray[np.float64]

QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
FEWEST_REQUESTS = {"p999": 1000}
"""With fewer requests, the quantile is unknown: it would be the longest request under another name."""

SLICES = 60


def rank_of(percent: float, count: int) -> int:
    """The nearest rank, from 1: the least that at least `percent` of `count` values are not above.

    Hyndman and Fan (1996), type 1.
    """
    return min(max(math.ceil(percent / 100 * count - 1e-9), 1), count)


def latency_of(answered: Array, failed: Array) -> dict[str, Any] | None:
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
    count = len(recorded)
    found: dict[str, Any] = {"mean": float(recorded.mean())}
    at_least = ["mean"] if len(failed) else []
    for name, percent in QUANTILES.items():
        rank = rank_of(percent, count)
        known = rank <= len(ranked)
        found[name] = float((ranked if known else recorded)[rank - 1])
        if count < FEWEST_REQUESTS.get(name, 1):
            found[name] = None
        elif not known:
            at_least.append(name)
    found["max"] = float(recorded[-1])
    return {**found, "at_least": [*at_least, "max"] if len(failed) else []}


def latency_of_buckets(
    answered: Distribution, recorded: Distribution, total: float, longest: float
) -> dict[str, Any] | None:
    """As `latency_of`, from buckets: each quantile is the upper end of its bucket.

    `answered`: the successful requests; `recorded`: all of them; `total`: the sum of all their seconds, and `longest`
    the largest, both as they were before they went into buckets.
    """
    if not answered.total:
        return None
    count = recorded.total
    failed = count > answered.total
    found: dict[str, Any] = {"mean": total / count}
    at_least = ["mean"] if failed else []
    for name, percent in QUANTILES.items():
        rank = rank_of(percent, count)
        known = rank <= answered.total
        found[name] = min((answered if known else recorded).value_of(rank), longest)
        if count < FEWEST_REQUESTS.get(name, 1):
            found[name] = None
        elif not known:
            at_least.append(name)
    return {**found, "max": longest, "at_least": [*at_least, "max"] if failed else []}


def overhead_of(
    records: Records, numbers: npt.NDArray[np.int64], unavoidable: Callable[[int], float]
) -> dict[str, Any] | None:
    """As `latency_of`, of each request's time minus the seconds that no client can save.

    `numbers`: the request of each record. `unavoidable`: a function from it to those seconds.
    """
    if not len(records):
        return None
    shares = np.fromiter((unavoidable(number) for number in numbers.tolist()), np.float64, len(records))
    overhead = records["seconds"] - shares
    good = records["error"] == 0
    return latency_of(overhead[good], overhead[~good])


def over_time(records: Records, began: float, wall: float) -> list[dict[str, float]]:
    """The trial in at most 60 slices of equal length: the requests that ended in each, their median and p99.

    A quantile that falls on a failed request is unknown and left out.
    """
    ended = records["start"] + records["seconds"] - began
    length = max(wall / SLICES, 1e-9)
    slices = np.minimum((ended / length).astype(np.int64), SLICES - 1)
    rows = []
    for index in range(SLICES):
        part = records[slices == index]
        good = np.sort(part["seconds"][part["error"] == 0])
        row: dict[str, float] = {"at": index * length, "requests": len(part), "errors": len(part) - len(good)}
        ranks = {name: rank_of(QUANTILES[name], len(part)) for name in ("p50", "p99")} if len(part) else {}
        row |= {name: float(good[rank - 1]) for name, rank in ranks.items() if rank <= len(good)}
        rows.append(row)
    return rows
