"""The least figure of a sweep: whether it lies between the ends of the axis, and where the knee is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

KNEE = 1.05
"""The knee is the first point of the sweep whose mean is within 5 % of the least."""

Series = Mapping[int, float]
Value = int | float | str


@dataclass(frozen=True)
class TurningPoint:
    """The least (`best`) and the `knee` of a sweep, as indices. `means`: the geometric mean of each point."""

    best: int
    knee: int
    means: list[float]


@dataclass(frozen=True)
class Optimum:
    """The least and the knee of a sweep as indices, and whether the data decide where the least is.

    `ratio`: the better end over the least point between the ends. Its interval is widened, so that it keeps its
    confidence although the data choose that point. `inside`: the least is surely at neither end; `at_end`: it is
    surely at one. `open`: if neither is sure, the ratios whose intervals do not decide.
    """

    best: int
    knee: int
    ratio: Ratio | None
    inside: bool
    at_end: bool
    open: tuple[Ratio, ...]


def in_order(values: Iterable[Value]) -> list[Value]:
    """The values of an axis, each once: numbers by size, texts in the order of the experiment."""
    once = list(dict.fromkeys(values))
    return once if any(isinstance(value, str) for value in once) else sorted(once, key=float)


def turning_point(series: Sequence[Series]) -> TurningPoint:
    """The least and the knee of a sweep, by the geometric mean of each point's figures by round.

    Raises ValueError if a point has no figure.
    """
    if not all(series):
        raise ValueError("a point of the sweep has no figure")
    means = [float(np.exp(np.mean(np.log(list(figures.values()))))) for figures in series]
    best = int(np.argmin(means))
    return TurningPoint(best, next(place for place, mean in enumerate(means) if mean <= KNEE * means[best]), means)


def optimum(series: Sequence[Series], confidence: float = CONFIDENCE) -> Optimum:
    """The optimum of a sweep of at least three points, each with its figures by round."""
    found = turning_point(series)
    inner, last = range(1, len(series) - 1), len(series) - 1
    least = min(inner, key=found.means.__getitem__)
    better = 0 if found.means[0] <= found.means[last] else last
    # The data choose which inner point and which end are tested, so the error is divided among the candidates
    # (Bonferroni: level 1 - α/m for the best of m). "Less than both ends" needs no further division: both must hold.
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
