"""Histograms of latencies. analysis/request_figures.py computes a trial's percentiles.

Histograms have HdrHistogram's format (hdrhistogram.org), V2, compressed, base64.
Buckets are in nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from clientlab.statistics.distributions import Floats as Floats

QUANTILES = {
    "p50": 50.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p999": 99.9,
}
FEWEST_REQUESTS = {"p999": 1000}
"""With fewer requests, the quantile would be the maximum by another name."""

SLICES = 60
"""Number of equal parts of a trial's time in which requests are counted."""

_NANOSECONDS = 1e9

_LONGEST = 3600 * 10**9
"""Longer times are counted as this one."""

_SETTINGS = (1, _LONGEST, 3)
"""Lowest and highest value in nanoseconds, and significant digits."""


def rank_of(percent: float, count: int) -> int:
    """Return the nearest rank, from 1, of a percentile of `count` values.

    This is type 1 of Hyndman and Fan (1996).
    """
    rank = math.ceil(percent / 100 * count - 1e-9)
    return min(max(rank, 1), count)


@dataclass(frozen=True)
class Distribution:
    """The non-empty buckets of a histogram."""

    seconds: Floats
    """Upper ends of the buckets, ascending."""

    counts: npt.NDArray[np.int64]
    """Number of latencies in each bucket."""

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def quantiles(self, shares: Floats) -> Floats:
        """Return the least seconds that each share of the latencies does not exceed.

        `shares`: from 0 to 1. This is the nearest rank.
        """
        quantiles: Floats = np.quantile(
            self.seconds, shares, weights=self.counts, method="inverted_cdf"
        )
        return quantiles

    def shares(self, edges: Floats) -> Floats:
        """Return the share of latencies between each two neighbouring edges.

        `edges`: seconds, ascending.
        """
        counts, _ = np.histogram(self.seconds, edges, weights=self.counts)
        shares: Floats = counts / self.total
        return shares


def make_histogram(seconds: Floats) -> HdrHistogram:
    """Return the histogram of latencies, with three significant digits."""
    histogram = HdrHistogram(*_SETTINGS)
    nanoseconds = np.rint(seconds * _NANOSECONDS)
    whole = np.clip(nanoseconds, 1, _LONGEST).astype(np.int64)
    # Round to the digits that the histogram keeps, so that equal values are recorded in
    # one go.
    digits = np.floor(np.log2(whole)).astype(np.int64)
    shift = np.maximum(digits - 11, 0)
    rounded = (whole >> shift) << shift
    values, counts = np.unique(rounded, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return histogram


def decode_histogram(encoded: str, unit: float) -> Distribution:
    """Return the buckets of an encoded histogram.

    `unit`: the seconds that a value of 1 stands for.
    """
    histogram = HdrHistogram.decode(encoded)
    counts = np.ctypeslib.as_array(histogram.counts)
    places = np.flatnonzero(counts)
    ends = _find_bucket_ends(
        histogram.lowest_trackable_value,
        histogram.highest_trackable_value,
        histogram.significant_figures,
    )
    seconds = ends[places] * unit
    return Distribution(seconds, counts[places].astype(np.int64))


def merge_distributions(parts: Sequence[Distribution]) -> Distribution:
    """Return the sum of one distribution or more.

    Counts are added up; quantiles are never averaged.
    """
    every_end = np.concatenate([part.seconds for part in parts])
    every_count = np.concatenate([part.counts for part in parts])
    seconds, places = np.unique(every_end, return_inverse=True)
    counts = np.bincount(places, every_count, len(seconds))
    return Distribution(seconds, counts.astype(np.int64))


def check_histogram(encoded: str) -> str:
    """Return the text if it is an encoded histogram. Raise ValueError otherwise."""
    try:
        HdrHistogram.decode(encoded)
    except Exception as error:  # the codec has several of its own
        raise ValueError(f"not a histogram: {error or type(error).__name__}") from error
    return encoded


@cache
def _find_bucket_ends(lowest: int, highest: int, digits: int) -> Floats:
    """Return the highest value of each bucket of such a histogram."""
    empty = HdrHistogram(lowest, highest, digits)
    lows = map(empty.get_value_from_index, range(empty.counts_len))
    ends = [empty.get_highest_equivalent_value(low) for low in lows]
    return np.array(ends, np.float64)
