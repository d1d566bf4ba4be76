"""The ratio of the spreads of two arms over the rounds, paired by round.

The spread of an arm is the median difference between two of its rounds (of logarithms; Shamos 1976). One outlying
round in ten hardly moves it. With the mean distance from the median, which such rounds do move, the interval held the
truth in 63 to 84 of 100 simulations with outliers; this one holds it in 94 or more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clientlab.analysis.pair_differences import medians
from clientlab.analysis.ratios import CONFIDENCE, Ratio
from clientlab.analysis.typical import Floats, t_quantile

FEWEST_ROUNDS = 6
"""With fewer rounds, no interval is computed: one outlying round of five spoils four of ten differences."""

_FEW = 24
"""Of so few values of thousands of simulations at once, all differences are put in order without each value."""


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
    """Median difference between two values, over the last axis, and that without each of the values."""
    n = x.shape[-1]
    if n < FEWEST_ROUNDS or (n <= _FEW and x.ndim > 1):
        return _spread(x), np.stack([_spread(np.delete(x, index, axis=-1)) for index in range(n)], axis=-1)
    found = [medians(row) for row in x.reshape(-1, n)]
    whole, without = (np.array(part) for part in zip(*found, strict=True))
    return whole.reshape(x.shape[:-1]), without.reshape(x.shape)


def _spread(x: Floats) -> Floats:
    """NaN for a single value."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    one, other = np.triu_indices(x.shape[-1], 1)
    found: Floats = np.median(np.abs(x[..., one] - x[..., other]), axis=-1)
    return found
