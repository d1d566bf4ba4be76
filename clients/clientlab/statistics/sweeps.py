"""Sweeps: the least figure along an axis, and the knee where it is nearly reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.statistics.ratios import CONFIDENCE, Series, divide_error, paired_ratio
from clientlab.statistics.simultaneous import compare_arms

Value = int | float | str

KNEE = 1.05
"""The knee of a sweep is its first typical figure within 5 % of the least."""


@dataclass(frozen=True)
class TurningPoint:
    """The least figure and the knee of a sweep."""

    best: int
    """Index of the least figure."""

    knee: int
    """Index of the knee."""

    typical: list[float]
    """The typical figure of each point."""

    between: tuple[int, int] | None = None
    """The first and the last point that may be the knee.

    None with too few rounds for an interval.
    """


def sort_values(values: Iterable[Value]) -> list[Value]:
    """Return the distinct values of an axis: numbers by size, texts in their order."""
    distinct = list(dict.fromkeys(values))
    if any(isinstance(value, str) for value in distinct):
        return distinct
    return sorted(distinct, key=float)


def find_turning_point(
    series: Sequence[Series], confidence: float = CONFIDENCE
) -> TurningPoint:
    """Return the least figure and the knee of a sweep of one point or more."""
    named = {str(place): figures for place, figures in enumerate(series)}
    levels = compare_arms(named, confidence).levels
    figures = np.exp([*levels.values()])
    best = int(np.argmin(figures))
    is_near = figures <= KNEE * figures[best]
    knee = int(is_near.argmax())
    between = _knee_interval(series, confidence)
    # It rests on single pairs, and the levels on all pairs, so they can disagree by one
    # point.
    if between is not None:
        first, last = between
        between = min(first, knee), max(last, knee)
    return TurningPoint(best, knee, figures.tolist(), between)


def _knee_interval(
    series: Sequence[Series], confidence: float
) -> tuple[int, int] | None:
    """Return the first and the last point that may be the knee.

    A point that is surely more than 5 % above another one is not the knee. The first
    point that is surely within 5 % of every other one is the knee, or comes after it.
    Return None if a pair of points has no interval.
    """
    level = divide_error(confidence, math.comb(len(series), 2))
    possible = []
    sure = []
    for place, figures in enumerate(series):
        lows = []
        highs = []
        for other in series:
            ratio = paired_ratio(figures, other, level)
            if ratio is None or ratio.low is None or ratio.high is None:
                return None
            lows.append(ratio.low)
            highs.append(ratio.high)
        if max(lows) <= KNEE:
            possible.append(place)
        if max(highs) <= KNEE:
            sure.append(place)
    return possible[0], min([*sure, possible[-1]])
