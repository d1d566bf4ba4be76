"""The least figure of a sweep: whether it lies between the ends of the axis, and between which values the knee is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, Ratio, inverse, paired_ratio
from clientlab.analysis.standings import typical_levels

KNEE = 1.05
"""The knee is the first point of the sweep whose typical figure is within 5 % of the least."""

Series = Mapping[int, float]
Value = int | float | str


@dataclass(frozen=True)
class TurningPoint:
    """The least (`best`) and the `knee` of a sweep, as indices. `typical`: the typical figure of each point.

    `between`: the first and the last point that the knee may be at; None with too few rounds for an interval.
    """

    best: int
    knee: int
    typical: list[float]
    between: tuple[int, int] | None = None


@dataclass(frozen=True)
class Optimum:
    """The least and the knee of a sweep as indices, and whether the data decide where the least is.

    `ratio`: the better end over the least point between the ends. Its interval is widened, so that it keeps its
    confidence although the data choose that point. `between`: the interval of the knee, as of a turning point.
    `inside`: the least is surely at neither end; `at_end`: it is
    surely at one. `open`: if neither is sure, the ratios whose intervals do not decide.
    """

    best: int
    knee: int
    between: tuple[int, int] | None
    ratio: Ratio | None
    inside: bool
    at_end: bool
    open: tuple[Ratio, ...]


def in_order(values: Iterable[Value]) -> list[Value]:
    """The values of an axis, each once: numbers by size, texts in the order of the experiment."""
    once = list(dict.fromkeys(values))
    return once if any(isinstance(value, str) for value in once) else sorted(once, key=float)


def turning_point(series: Sequence[Series], confidence: float = CONFIDENCE) -> TurningPoint:
    """The least and the knee of a sweep, by the typical figure of each point (round → positive figure).

    Raises ValueError if a point has no figure.
    """
    if not all(series):
        raise ValueError("a point of the sweep has no figure")
    found = np.exp(typical_levels(series))
    best = int(np.argmin(found))
    knee = int(np.argmax(found <= KNEE * found[best]))
    between = _knee_interval(series, confidence)
    if between is not None:  # the reconciled figures may name a point next to those that single ratios leave
        between = (min(between[0], knee), max(between[1], knee))
    return TurningPoint(best, knee, found.tolist(), between)


def _knee_interval(series: Sequence[Series], confidence: float) -> tuple[int, int] | None:
    """The first and the last point that the knee may be at, from simultaneous intervals of all pairs of points.

    A point that is surely more than 5 % above another one is not the knee. The first point that is surely within 5 %
    of every other one is the knee, or lies behind it. None if a pair of points has no interval.
    """
    points = range(len(series))
    level = 1 - (1 - confidence) / max(1, len(series) * (len(series) - 1) // 2)
    ends: dict[tuple[int, int], tuple[float, float]] = {}
    for one, other in itertools.combinations_with_replacement(points, 2):
        ratio = paired_ratio(series[one], series[other], level)
        if ratio is None or ratio.interval is None:
            return None
        low, high = ends[one, other] = ratio.interval
        ends[other, one] = inverse(high), inverse(low)
    possible = [one for one in points if all(ends[one, other][0] <= KNEE for other in points)]
    sure = [one for one in points if all(ends[one, other][1] <= KNEE for other in points)]
    return possible[0], min([*sure, possible[-1]])


def optimum(series: Sequence[Series], confidence: float = CONFIDENCE) -> Optimum:
    """The optimum of a sweep of at least three points, each with its figures by round."""
    found = turning_point(series, confidence)
    inner, last = range(1, len(series) - 1), len(series) - 1
    least = min(inner, key=found.typical.__getitem__)
    better = 0 if found.typical[0] <= found.typical[last] else last
    # The data choose which inner point and which end are tested, so the error is divided among the candidates
    # (Bonferroni: level 1 - α/m for the best of m). "Less than both ends" needs no further division: both must hold.
    level = 1 - (1 - confidence) / len(inner)
    over_least = {end: paired_ratio(series[end], series[least], level) for end in (0, last)}
    at_ends = 1 - (1 - confidence) / 2
    over_end = [paired_ratio(series[place], series[better], at_ends) for place in inner]
    inside, at_end = all(map(_above, over_least.values())), all(map(_above, over_end))
    tested = over_least.values() if found.best in inner else over_end
    unsure = () if inside or at_end else tuple(ratio for ratio in tested if ratio and not _above(ratio))
    return Optimum(found.best, found.knee, found.between, over_least[better], inside, at_end, unsure)


def _above(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.low is not None and ratio.low > 1
