"""Where the figure of a sweep is least, and between which of its values the knee is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, paired_ratio
from clientlab.analysis.simultaneous import compare_arms

KNEE = 1.05
"""The knee is the first point of the sweep whose typical figure is within 5 % of the least."""

Series = Mapping[int, float]
Value = int | float | str


@dataclass(frozen=True)
class TurningPoint:
    """The least figure (`best`) and the `knee` of a sweep, as indices. `typical`: the typical figure of each point.

    `between`: the first and the last point that may be the knee; None with too few rounds for an interval.
    """

    best: int
    knee: int
    typical: list[float]
    between: tuple[int, int] | None = None


def in_order(values: Iterable[Value]) -> list[Value]:
    """Return the values of an axis, each once: numbers by size, texts in the order of the experiment."""
    once = list(dict.fromkeys(values))
    return once if any(isinstance(value, str) for value in once) else sorted(once, key=float)


def turning_point(series: Sequence[Series], confidence: float = CONFIDENCE) -> TurningPoint:
    """Return the least and the knee of a sweep from the figures of each point (round → positive figure).

    Raise ValueError if a point has no figure.
    """
    if not all(series):
        raise ValueError("a point of the sweep has no figure")
    named = {str(place): figures for place, figures in enumerate(series)}
    found = np.exp(list(compare_arms(named, confidence).levels.values()))
    best = int(np.argmin(found))
    knee = int(np.argmax(found <= KNEE * found[best]))
    between = _knee_interval(series, confidence)
    if (
        between is not None
    ):  # the levels, which all pairs decide, may name a point next to those that single pairs leave
        between = (min(between[0], knee), max(between[1], knee))
    return TurningPoint(best, knee, found.tolist(), between)


def _knee_interval(series: Sequence[Series], confidence: float) -> tuple[int, int] | None:
    """Return the first and the last point that may be the knee, or None if a pair of points has no interval.

    A point that is surely more than 5 % above another one is not the knee. The first point that is surely within 5 %
    of every other one is the knee, or lies behind it. The permitted error is divided among the pairs (Bonferroni).
    """
    level = 1 - (1 - confidence) / max(1, len(series) * (len(series) - 1) // 2)
    ratios = [[paired_ratio(one, other, level) for other in series] for one in series]
    ends = [[ratio.interval for ratio in row if ratio is not None and ratio.interval is not None] for row in ratios]
    if any(len(row) < len(series) for row in ends):
        return None
    possible = [place for place, row in enumerate(ends) if all(low <= KNEE for low, _ in row)]
    sure = [place for place, row in enumerate(ends) if all(high <= KNEE for _, high in row)]
    return possible[0], min([*sure, possible[-1]])
