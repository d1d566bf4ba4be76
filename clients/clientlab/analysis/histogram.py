"""Histograms of latencies: made from a trial's samples, checked when a run file is read, and merged for charts.

The format is HdrHistogram's (hdrhistogram.org), V2, compressed, base64. Buckets are in nanoseconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

Floats = npt.NDArray[np.float64]

NANOSECONDS = 1e9
LONGEST_SECONDS = 3600.0
"""A longer time is counted as this one."""

_LONGEST = 3600 * 10**9
_DIGITS = 3
_SETTINGS = (1, _LONGEST, _DIGITS)
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
        """Seconds below or at which each share (0 to 1) of the latencies lies, to a bucket's width.

        The nearest rank: the least value that at least that share of all is not above (Hyndman and Fan 1996, type 1).
        """
        running = self.counts.cumsum()
        ranks = np.clip(np.ceil(shares * running[-1] - 1e-9), 1, running[-1])
        found: Floats = self.seconds[np.searchsorted(running, ranks)]
        return found

    def value_of(self, rank: int) -> float:
        """Seconds at a rank, from 1, to a bucket's width."""
        return float(self.seconds[np.searchsorted(self.counts.cumsum(), rank)])

    def shares(self, edges: Floats) -> Floats:
        """The share of latencies between each two neighbours of `edges` (seconds, ascending)."""
        counts, _ = np.histogram(self.seconds, edges, weights=self.counts)
        found: Floats = counts / self.total
        return found


def histogram_of(seconds: Floats) -> HdrHistogram:
    """The histogram of latencies, with three significant digits."""
    histogram = HdrHistogram(*_SETTINGS)
    whole = np.minimum(np.maximum(np.rint(seconds * NANOSECONDS), 1), _LONGEST).astype(np.int64)
    # Rounded first to the digits that the histogram keeps, so that equal values are recorded in one go.
    shift = np.maximum(np.floor(np.log2(whole)).astype(np.int64) - 11, 0)
    values, counts = np.unique((whole >> shift) << shift, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return histogram


def added(encoded: Iterable[str]) -> HdrHistogram:
    """The sum of checked histograms: their counts add up."""
    total: HdrHistogram | None = None
    for one in encoded:
        if total is None:
            total = HdrHistogram.decode(one)
        else:
            total.decode_and_add(one)
    return HdrHistogram(*_SETTINGS) if total is None else total


def distribution_of(histogram: HdrHistogram) -> Distribution:
    """The buckets of a histogram of the lab, in seconds."""
    counts = np.ctypeslib.as_array(histogram.counts)
    places = np.flatnonzero(counts)
    return Distribution(_tops(*_SETTINGS)[places] / NANOSECONDS, counts[places].astype(np.int64))


def decoded(encoded: str, unit: float) -> Distribution:
    """The buckets of an encoded histogram, whose values have that unit in seconds."""
    found = HdrHistogram.decode(encoded)
    counts = np.ctypeslib.as_array(found.counts)
    places = np.flatnonzero(counts)
    kept = (found.lowest_trackable_value, found.highest_trackable_value, found.significant_figures)
    return Distribution(_tops(*kept)[places] * unit, counts[places].astype(np.int64))


def merged(parts: Sequence[Distribution]) -> Distribution:
    """The sum of one distribution or more: counts are added up. Their quantiles are never averaged."""
    seconds, places = np.unique(np.concatenate([part.seconds for part in parts]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([part.counts for part in parts]), len(seconds))
    return Distribution(seconds, counts.astype(np.int64))


def checked_histogram(encoded: str) -> str:
    """The text, which must be an encoded histogram. Raises ValueError."""
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
    """The highest value of each bucket of a histogram of that range and precision."""
    empty = HdrHistogram(lowest, highest, digits)
    lows = [empty.get_value_from_index(index) for index in range(empty.counts_len)]
    return np.array([empty.get_highest_equivalent_value(low) for low in lows], np.float64)
