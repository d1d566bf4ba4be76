"""Quantiles of the times of requests, and their histogram as the run document holds it.

A failed request was not answered, so it ranks after every successful one: a fast error must not make a strategy look
fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clientlab.analysis.histogram import Floats, histogram_of
from clientlab.analysis.latencies import FEWEST_REQUESTS, QUANTILES, rank_of
from clientlab.results.trial import Histogram, Quantiles
from clientlab.samples.log_reader import Records

_NONE = np.empty(0)


def times_by_success(records: Records) -> tuple[Floats, Floats]:
    """Return the seconds of the successful and of the failed requests."""
    good = records["error"] == 0
    return records["seconds"][good], records["seconds"][~good]


def quantiles_of(answered: Floats, failed: Floats = _NONE) -> Quantiles | None:
    """Return the quantiles over all requests, in seconds, or None if none succeeded.

    The quantile of rank r is exact if at least r requests succeeded. Otherwise it is only known to be at least the
    value of rank r among all recorded times, and `at_least` has its name. Mean and maximum are lower bounds if any
    request failed. This is how right-censored data are ranked (Klein and Moeschberger 2003, 3.2).
    """
    if not len(answered):
        return None
    ranked, recorded = np.sort(answered), np.sort(np.concatenate([answered, failed]))
    found: dict[str, Any] = {"mean": float(recorded.mean()), "max": float(recorded[-1])}
    bounds = []
    for name, percent in QUANTILES.items():
        if len(recorded) >= FEWEST_REQUESTS.get(name, 1):
            rank = rank_of(percent, len(recorded))
            is_bound = rank > len(ranked)
            found[name] = float((recorded if is_bound else ranked)[rank - 1])
            bounds += [name] * is_bound
    found["at_least"] = ["mean", *bounds, "max"] if len(failed) else []
    return Quantiles(**found)


def histogram_part(seconds: Floats) -> Histogram:
    """Return the histogram of these latencies."""
    return Histogram(encoded=histogram_of(seconds).encode().decode())


def seconds_of(function: Callable[[int], float], numbers: Sequence[int]) -> Floats:
    """Return the seconds of each request with one of these numbers, such as its delay."""
    return np.fromiter(map(function, numbers), np.float64, len(numbers))
