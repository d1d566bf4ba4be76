"""The ratio of the spreads of two arms over the rounds, paired by round.

The spread of an arm is the median difference between two of its rounds (of logarithms; Shamos 1976). One outlying
round in ten hardly moves it. With the mean distance from the median, which such rounds do move, the interval held the
truth in 63 to 84 of 100 simulations with outliers; this one holds it in 94 or more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, Ratio
from clientlab.analysis.typical import Floats, t_quantile

FEWEST_ROUNDS = 6
"""With fewer rounds, no interval is computed: one outlying round of five spoils four of ten differences."""


def spread_ratio(
    these: Mapping[int, float], those: Mapping[int, float], confidence: float = CONFIDENCE
) -> Ratio | None:
    """Spread of the first over that of the second (round → positive figure), of their logarithms.

    None if fewer than two rounds have both figures, or if one side does not vary at all. Without an interval if half
    of the differences of a side are 0.
    """
    both = sorted(set(these) & set(those))
    if len(both) < 2:
        return None
    x, y = (np.log([figures[number] for number in both], dtype=np.float64) for figures in (these, those))
    (one, one_without), (other, other_without) = spreads(x), spreads(y)
    if not (one and other):
        return None
    if len(both) < FEWEST_ROUNDS or min(one_without.min(), other_without.min()) <= 0:
        return Ratio(float(one / other), None, None, len(both), confidence)
    value, low, high = (float(found) for found in _interval(one, one_without, other, other_without, confidence))
    return Ratio(value, low, high, len(both), confidence)


def spread_interval(x: Floats, y: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats, Floats]:
    """Ratio of spreads, and both ends of its interval, over the last axis of paired values.

    The standard error of the ratio's logarithm is the jackknife's (Tukey 1958): from the ratios without one round
    each. Leaving out both values of a round accounts for what a round does to both arms.
    """
    return _interval(*spreads(x), *spreads(y), confidence)


@np.errstate(over="ignore")  # an end beyond all numbers is infinite
def _interval(
    one: Floats, one_without: Floats, other: Floats, other_without: Floats, confidence: float
) -> tuple[Floats, Floats, Floats]:
    n = one_without.shape[-1]
    ratios = np.log(one_without / other_without)
    error = np.sqrt((n - 1) * ratios.var(axis=-1))
    half = t_quantile(n - 1, (1 + confidence) / 2) * error
    value = one / other
    return value, value * np.exp(-half), value * np.exp(half)


def spreads(x: Floats) -> tuple[Floats, Floats]:
    """Median difference between two of at least 2 values, over the last axis, and that without each of the values."""
    n = x.shape[-1]
    one, other = np.triu_indices(n, 1)
    gaps = np.abs(x[..., one] - x[..., other])
    if n < FEWEST_ROUNDS:
        return np.median(gaps, axis=-1), np.full(x.shape, np.nan)
    without = [np.median(gaps[..., (one != left_out) & (other != left_out)], axis=-1) for left_out in range(n)]
    return np.median(gaps, axis=-1), np.stack(without, axis=-1)
