"""From a trial's samples to its figures, in seconds.

Quantiles are over successful requests only: an error that comes fast must not make a strategy look fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from clientlab.analysis.samples import Records

Array = npt.NDArray[np.float64]

QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
NANOSECONDS = 1e9
_LONGEST = 3600 * 10**9
_DIGITS = 3
_SLICES = 60


def succeeded(records: Records) -> Records:
    """The records without an error."""
    good: Records = records[records["error"] == 0]
    return good


def histogram_of(seconds: Array) -> HdrHistogram:
    """HDR histogram of latencies, in nanoseconds, three significant digits (hdrhistogram.org)."""
    histogram = HdrHistogram(1, _LONGEST, _DIGITS)
    whole = np.minimum(np.maximum(np.rint(seconds * NANOSECONDS), 1), _LONGEST).astype(np.int64)
    # Rounded first to the digits that the histogram keeps, so that equal values are recorded in one go.
    shift = np.maximum(np.floor(np.log2(whole)).astype(np.int64) - 11, 0)
    values, counts = np.unique((whole >> shift) << shift, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return histogram


def latency_of(seconds: Array, histogram: HdrHistogram) -> dict[str, float] | None:
    """Mean and maximum exact, the quantiles from the histogram; None without a successful request."""
    if not len(seconds):
        return None
    largest = float(seconds.max())
    # The histogram answers with the upper end of a bucket, which may lie beyond the largest value in it.
    quantiles = {
        name: min(histogram.get_value_at_percentile(percent) / NANOSECONDS, largest)
        for name, percent in QUANTILES.items()
    }
    return {"mean": float(seconds.mean()), **quantiles, "max": largest}


def overhead_of(
    records: Records, numbers: npt.NDArray[np.int64], delay: Callable[[int], float]
) -> dict[str, float] | None:
    """Latency minus the delay that the upstream was asked for, by request; exact quantiles."""
    if not len(records):
        return None
    asked = np.fromiter((delay(number) for number in numbers.tolist()), np.float64, len(records))
    overhead = np.sort(records["seconds"] - asked)
    # At the ranks that the latencies' histogram takes: under one delay a quantile of either is of the same request.
    quantiles = {
        name: float(overhead[max(int(len(overhead) * percent / 100 + 0.5), 1) - 1])
        for name, percent in QUANTILES.items()
    }
    return {"mean": float(overhead.mean()), **quantiles, "max": float(overhead[-1])}


def over_time(records: Records, began: float, wall: float) -> list[dict[str, float]]:
    """The trial in at most 60 slices of equal length: requests that ended in each, with their median and p99."""
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
