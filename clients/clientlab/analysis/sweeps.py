"""The least of a sweep: whether it lies between the ends, and from where on more brings nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

KNEE = 1.05
"""The knee is the first place of the sweep whose figure is within 5 % of the least."""

Series = Mapping[int, float]
Value = int | float | str


@dataclass(frozen=True)
class Turn:
    """Where a sweep has its least, `best`, and its `knee`, as places; `middles`: what each place is judged by."""

    best: int
    knee: int
    middles: list[float]


@dataclass(frozen=True)
class Optimum:
    """The places of a sweep's least and knee, and what is sure of them.

    `ratio`: the better end over the least between the ends. Its interval is widened, so that it is of at
    least the confidence asked for, whichever place comes out as that least. `inside`: the least is at neither end,
    surely; `at_end`: it is at one, surely. `open`: where neither is sure, the ratios whose intervals leave it open.
    """

    best: int
    knee: int
    ratio: Ratio | None
    inside: bool
    at_end: bool
    open: tuple[Ratio, ...]


def in_order(values: Iterable[Value]) -> list[Value]:
    """The values of a sweep's axis, each once: numbers by size, words as the experiment has them."""
    once = list(dict.fromkeys(values))
    return once if any(isinstance(value, str) for value in once) else sorted(once, key=float)


def turn(series: Sequence[Series]) -> Turn:
    """The least and the knee of a sweep's figures by round, by the geometric mean of each place.

    Raises ValueError where a place has no figure.
    """
    if not all(series):
        raise ValueError("a place of the sweep has no figure")
    middles = [float(np.exp(np.mean(np.log(list(figures.values()))))) for figures in series]
    best = int(np.argmin(middles))
    return Turn(best, next(place for place, middle in enumerate(middles) if middle <= KNEE * middles[best]), middles)


def optimum(series: Sequence[Series], confidence: float = CONFIDENCE) -> Optimum:
    """The optimum of a sweep of at least three places, each with its figures by round."""
    found = turn(series)
    inner, last = range(1, len(series) - 1), len(series) - 1
    least = min(inner, key=found.middles.__getitem__)
    better = 0 if found.middles[0] <= found.middles[last] else last
    # Which of the inner places to test is chosen by the data, as is the end: the error is shared out among them
    # (Bonferroni: level 1 - α/m for the best of m). "Less than both ends" needs none besides: both must hold.
    level = 1 - (1 - confidence) / len(inner)
    over_least = {end: paired_ratio(series[end], series[least], level) for end in (0, last)}
    at_ends = 1 - (1 - confidence) / 2
    over_end = [paired_ratio(series[place], series[better], at_ends) for place in inner]
    inside, at_end = all(map(_above, over_least.values())), all(map(_above, over_end))
    tested = over_least.values() if found.best in inner else over_end
    unsure = () if inside or at_end else tuple(ratio for ratio in tested if ratio and not _above(ratio))
    return Optimum(found.best, found.knee, over_least[better], inside, at_end, unsure)


def _above(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.low is not None and ratio.low > 1
