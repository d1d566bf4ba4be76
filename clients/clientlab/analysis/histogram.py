"""Histograms of latencies: made from a trial's samples, checked when a run file is read, and merged for charts.

The format is HdrHistogram's (hdrhistogram.org), V2, compressed, base64. Buckets are in nanoseconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from clientlab.analysis.distributions import Floats as Floats

_NANOSECONDS = 1e9
_LONGEST = 3600 * 10**9
"""A longer time is counted as this one."""
_SETTINGS = (1, _LONGEST, 3)
"""Lowest and highest value in nanoseconds, and significant digits, of every histogram of the lab."""


@dataclass(frozen=True)
class Distribution:
    """`seconds`: the upper ends of the buckets that are not empty, ascending; `counts`: latencies in each bucket."""

    seconds: Floats
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many latencies there are."""
        return int(self.counts.sum())

    def quantiles(self, shares: Floats) -> Floats:
        """Return the least seconds that each share (0 to 1) of the latencies does not exceed, to a bucket's width.

        This is the nearest rank (Hyndman and Fan 1996, type 1).
        """
        running = self.counts.cumsum()
        ranks = np.clip(np.ceil(shares * running[-1] - 1e-9), 1, running[-1])
        found: Floats = self.seconds[np.searchsorted(running, ranks)]
        return found

    def shares(self, edges: Floats) -> Floats:
        """Return the share of latencies between each two neighbours of `edges` (seconds, ascending)."""
        counts, _ = np.histogram(self.seconds, edges, weights=self.counts)
        found: Floats = counts / self.total
        return found


def histogram_of(seconds: Floats) -> HdrHistogram:
    """Return the histogram of latencies, with three significant digits."""
    histogram = HdrHistogram(*_SETTINGS)
    whole = np.clip(np.rint(seconds * _NANOSECONDS), 1, _LONGEST).astype(np.int64)
    # Rounded first to the digits that the histogram keeps, so that equal values are recorded in one go.
    shift = np.maximum(np.floor(np.log2(whole)).astype(np.int64) - 11, 0)
    values, counts = np.unique((whole >> shift) << shift, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return histogram


def decoded(encoded: str, unit: float) -> Distribution:
    """Return the buckets of an encoded histogram, whose values have that unit in seconds."""
    histogram = HdrHistogram.decode(encoded)
    counts = np.ctypeslib.as_array(histogram.counts)
    places = np.flatnonzero(counts)
    tops = _tops(histogram.lowest_trackable_value, histogram.highest_trackable_value, histogram.significant_figures)
    return Distribution(tops[places] * unit, counts[places].astype(np.int64))


def merged(parts: Sequence[Distribution]) -> Distribution:
    """Return the sum of one distribution or more. Counts are added up; quantiles are never averaged."""
    seconds, places = np.unique(np.concatenate([part.seconds for part in parts]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([part.counts for part in parts]), len(seconds))
    return Distribution(seconds, counts.astype(np.int64))


def checked_histogram(encoded: str) -> str:
    """Return the text if it is an encoded histogram. Raise ValueError otherwise."""
    try:
        HdrHistogram.decode(encoded)
    except (
        ValueError, TypeError, IndexError, OverflowError, zlib.error,
        HdrCookieException, HdrHistogramSettingsException, HdrLengthException,
    ) as error:  # fmt: skip
        raise ValueError(f"no histogram: {error or type(error).__name__}") from error
    return encoded


@cache
def _tops(lowest: int, highest: int, digits: int) -> Floats:
    """Return the highest value of each bucket of a histogram of that range and precision."""
    empty = HdrHistogram(lowest, highest, digits)
    lows = [empty.get_value_from_index(index) for index in range(empty.counts_len)]
    return np.array([empty.get_highest_equivalent_value(low) for low in lows], np.float64)
