"""Stored histograms of one arm's trials as one distribution: counts are added up, quantiles never averaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """`seconds`: the upper ends of the buckets that hold something, ascending; `counts`: how many each holds."""

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

    def shares(self, edges: Floats) -> Floats:
        """The share of latencies between each two neighbours of `edges` (seconds, ascending)."""
        counts, _ = np.histogram(self.seconds, edges, weights=self.counts)
        found: Floats = counts / self.total
        return found


def merged(histograms: Iterable[tuple[str, float]]) -> Distribution | None:
    """The sum of HDR histograms (V2, compressed, base64), each with its unit in seconds; None where all are empty."""
    sums: dict[float, int] = {}
    for encoded, unit in histograms:
        decoded = HdrHistogram.decode(encoded)
        counts = np.ctypeslib.as_array(decoded.counts)
        places = np.flatnonzero(counts)
        kept = (decoded.lowest_trackable_value, decoded.highest_trackable_value, decoded.significant_figures)
        tops = _tops(*kept)[places] * unit
        for top, count in zip(tops.tolist(), counts[places].tolist(), strict=True):
            sums[top] = sums.get(top, 0) + count
    if not sums:
        return None
    order = sorted(sums)
    return Distribution(np.array(order), np.array([sums[top] for top in order], np.int64))


@cache
def _tops(lowest: int, highest: int, digits: int) -> Floats:
    """The highest value of each bucket of a histogram of that range and precision."""
    empty = HdrHistogram(lowest, highest, digits)
    lows = [empty.get_value_from_index(place) for place in range(empty.counts_len)]
    return np.array([empty.get_highest_equivalent_value(low) for low in lows], np.float64)
