"""The least of a sweep: whether it lies between the ends, and from where on more brings nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

KNEE = 1.05
"""The knee is the first place of the sweep whose figure is within 5 % of the least."""

Series = Mapping[int, float]


@dataclass(frozen=True)
class Optimum:
    """`best` and `knee` are places in the sweep. `ratio`: the better end over the least between the ends.

    `inside`: the least is at neither end, surely; `at_end`: it is at one, surely.
    """

    best: int
    knee: int
    ratio: Ratio | None
    inside: bool
    at_end: bool


def optimum(series: Sequence[Series], confidence: float = CONFIDENCE) -> Optimum:
    """The optimum of a sweep of at least three places, each with its figures by round."""
    middles = [float(np.exp(np.mean(np.log(list(figures.values()))))) for figures in series]
    best = int(np.argmin(middles))
    knee = next(place for place, middle in enumerate(middles) if middle <= KNEE * middles[best])
    inner = range(1, len(series) - 1)
    least = min(inner, key=middles.__getitem__)
    last = len(series) - 1
    better = 0 if middles[0] <= middles[last] else last
    # Which of the inner places to test is chosen by the data, as is the end: the error is shared out among them
    # (Bonferroni: level 1 - α/m for the best of m). "Less than both ends" needs none besides: both must hold.
    level = 1 - (1 - confidence) / len(inner)
    over_least = [paired_ratio(series[end], series[least], level) for end in (0, last)]
    at_ends = 1 - (1 - confidence) / 2
    over_end = [paired_ratio(series[place], series[better], at_ends) for place in inner]
    ratio = paired_ratio(series[better], series[least], level)
    return Optimum(best, knee, ratio, all(map(_above, over_least)), all(map(_above, over_end)))


def _above(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.low is not None and ratio.low > 1
