"""Figures of a trial from its samples, in seconds.

Quantiles are of successful requests only: a fast error must not make a strategy look fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from clientlab.analysis.histogram import NANOSECONDS
from clientlab.samples.log_reader import Records

Array = npt.NDArray[np.float64]

QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_SLICES = 60


def succeeded(records: Records) -> Records:
    """The records without an error."""
    good: Records = records[records["error"] == 0]
    return good


def latency_of(seconds: Array, histogram: HdrHistogram) -> dict[str, float] | None:
    """Exact mean and maximum, quantiles from the histogram. None without a successful request."""
    if not len(seconds):
        return None
    largest = float(seconds.max())
    # The histogram returns the upper end of a bucket, which may lie beyond the largest value in the bucket.
    values = histogram.get_percentile_to_value_dict(QUANTILES.values())
    quantiles = {name: min(values[percent] / NANOSECONDS, largest) for name, percent in QUANTILES.items()}
    return {"mean": float(seconds.mean()), **quantiles, "max": largest}


def overhead_of(
    records: Records, numbers: npt.NDArray[np.int64], delay: Callable[[int], float]
) -> dict[str, float] | None:
    """Latency minus the requested delay of the upstream, for each request; exact quantiles."""
    if not len(records):
        return None
    delays = np.fromiter((delay(number) for number in numbers.tolist()), np.float64, len(records))
    overhead = np.sort(records["seconds"] - delays)
    # At the ranks of the latencies' histogram: with a constant delay, both quantiles are of the same request.
    quantiles = {
        name: float(overhead[max(int(len(overhead) * percent / 100 + 0.5), 1) - 1])
        for name, percent in QUANTILES.items()
    }
    return {"mean": float(overhead.mean()), **quantiles, "max": float(overhead[-1])}


def over_time(records: Records, began: float, wall: float) -> list[dict[str, float]]:
    """The trial in at most 60 slices of equal length: the requests that ended in each, their median and p99."""
    ended = records["start"] + records["seconds"] - began
    length = max(wall / _SLICES, 1e-9)
    slices = np.minimum((ended / length).astype(np.int64), _SLICES - 1)
    rows = []
    for index in range(_SLICES):
        part = records[slices == index]
        good = succeeded(part)["seconds"]
        row: dict[str, float] = {"at": index * length, "requests": len(part), "errors": len(part) - len(good)}
        if len(good):
            row |= {"p50": float(np.median(good)), "p99": float(np.quantile(good, 0.99))}
        rows.append(row)
    return rows
