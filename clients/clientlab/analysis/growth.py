"""How much a client grows with each request: its memory, and its open files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clientlab.results.explanation import Growth
from clientlab.statistics.ratios import typical, typical_interval

_FEWEST_PARTS = 4
_CONFIDENCE = 0.95
_PER = 1000


def find_growth(finished: Sequence[int], held: Sequence[float]) -> Growth | None:
    """Return how much `held` grows, from readings over a trial; None from too few.

    `finished`: requests until each reading.
    """
    requests = np.diff(finished)
    if not len(requests):
        return None
    # The last part may have few requests, so that a page more would look like a leak.
    fewest = max(1.0, np.median(requests) / 2)
    is_whole = requests >= fewest
    if np.count_nonzero(is_whole) < _FEWEST_PARTS:
        return None
    grown = np.diff(held)[is_whole]
    growths = _PER * grown / requests[is_whole]
    low, high = typical_interval(growths, _CONFIDENCE)
    return Growth(mean=float(typical(growths)), low=float(low), high=float(high))
