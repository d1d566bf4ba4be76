"""Ratios and differences of figures of two runs, whose rounds are not paired.

No round of one run met the machine in the same state as a round of the other. A difference between the runs as a
whole (another day, another tenant of the machine) does not appear in the spread of the rounds, so these intervals do
not include it.

The ratio that is stated is the typical one: the median of the ratios of each round of one run to each round of the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

import numpy as np

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Estimate
from clientlab.analysis.typical import Floats, t_quantile

POWER = 0.8
"""A change counts as one that a comparison could have seen if it would have seen it in so many cases."""

_FEW = 6
_MOST_EXACT = 50
"""With more rounds on a side, the ranks' distribution is close to normal."""


@np.errstate(over="ignore")  # an end beyond all numbers is infinite
def unpaired_ratio(
    these: Sequence[float], those: Sequence[float], step: float = 0.0, confidence: float = CONFIDENCE
) -> Estimate | None:
    """Typical ratio of `these` to `those`. None if a side is empty or a figure is not above 0.

    `step`: the resolution of the figures, as a share of their value. The interval is that of the shift between the
    logarithms (see `shift_interval`).
    """
    if not these or not those or min(*these, *those) <= 0:
        return None
    logs = np.log(these), np.log(those)
    value = float(np.exp(shift(*logs)))
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    low, high = (float(np.exp(end)) for end in shift_interval(*logs, step, confidence))
    return Estimate(value, low, high)


def unpaired_difference(
    these: Sequence[float], those: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Mean of `these` less that of `those`, with Welch's interval. None if a side is empty."""
    if not these or not those:
        return None
    one, other = np.asarray(these, np.float64), np.asarray(those, np.float64)
    value = float(one.mean() - other.mean())
    if min(len(one), len(other)) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    half = float(welch(one, other, confidence=confidence)[1])
    return Estimate(value, value - half, value + half)


@np.errstate(over="ignore")  # an end beyond all numbers is infinite
def detectable(
    these: Sequence[float], those: Sequence[float], step: float = 0.0, confidence: float = CONFIDENCE
) -> float | None:
    """The smallest ratio above 1 that a comparison at this noise shows in 80 of 100 cases.

    None with too few rounds, or if a figure is not above 0.
    """
    if min(len(these), len(those)) < FEWEST_ROUNDS or min(*these, *those) <= 0:
        return None
    logs = np.log(these), np.log(those)
    low, high = shift_interval(*logs, step, confidence)
    error, freedom = _error(*logs, step)
    return float(np.exp((high - low) / 2 + t_quantile(freedom, POWER) * error))


def shift(these: Floats, those: Floats) -> Floats:
    """The median of all differences between a value of `these` and one of `those`, over their last axes.

    Hodges and Lehmann (1963), Estimates of location based on rank tests, Ann. Math. Statist. 34(2).
    """
    found: Floats = np.median(_differences(these, those), axis=-1)
    return found


def shift_interval(
    these: Floats, those: Floats, step: float = 0.0, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Both ends of the confidence interval of the shift, over the last axes, of at least 2 values each.

    With enough values, it is the interval of the rank sum test (Mann and Whitney 1947), widened by the resolution.
    With fewer it has the width of Welch's, which assumes values close to normal, and the shift in its middle. Outliers
    among so few only make it wider.
    """
    n, m = these.shape[-1], those.shape[-1]
    rank = rank_of(*sorted((n, m)), confidence)
    if not rank:
        middle, half = shift(these, those), welch(these, those, step, confidence)[1]
        return middle - half, middle + half
    ordered = np.sort(_differences(these, those), axis=-1)
    return ordered[..., rank - 1] - step, ordered[..., -rank] + step


def welch(these: Floats, those: Floats, step: float = 0.0, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Difference of the means along the last axis, and half the width of its confidence interval.

    Shapes: `these` (..., n), `those` (..., m), with n and m at least 2. Variances may differ. If all figures of both
    sides are equal, the interval has no width, unless `step` gives their resolution.
    """
    error, freedom = _error(these, those, step)
    half = t_quantile(freedom, (1 + confidence) / 2) * error
    return these.mean(axis=-1) - those.mean(axis=-1), half


def _error(these: Floats, those: Floats, step: float) -> tuple[Floats, Floats]:
    """Standard error of the difference of the means, and its degrees of freedom."""
    n, m = these.shape[-1], those.shape[-1]
    # Rounding to a step adds an error of variance step² / 12 (Sheppard 1898). No variance is taken as less than that.
    least = step**2 / 12
    one = np.maximum(these.var(axis=-1, ddof=1), least) / n
    other = np.maximum(those.var(axis=-1, ddof=1), least) / m
    total = one + other
    # Welch (1947), degrees of freedom after Satterthwaite (1946):
    # (a + b)² / (a² / (n - 1) + b² / (m - 1)), a and b the squared standard errors
    shares = one**2 / (n - 1) + other**2 / (m - 1)
    freedom = np.divide(total**2, shares, out=np.ones_like(total), where=shares > 0)
    if min(n, m) < _FEW and max(n, m) > 2 * min(n, m):
        # With few rounds on one side and many on the other, Welch's degrees of freedom are too many: in simulations,
        # 3 and 20 equal rounds differ in 7.5 % of cases. Those of the smaller side alone are never too many (Mickey
        # and Brown 1966).
        freedom = np.full_like(total, min(n, m) - 1)
    return np.sqrt(total), freedom


RESERVE = 0.7
"""The interval is computed for so much of the permitted error: the rest is for outlying rounds of one run alone.

If one round in ten of one run is outlying, the typical difference lies above that of undisturbed rounds.
"""


@cache
def rank_of(n: int, m: int, confidence: float) -> int:
    """The rank of the interval's ends among the n · m ordered differences; 0 if none reaches the confidence.

    The rank sum test of two equal distributions rejects with P(U < rank) on each side (Mann and Whitney 1947).
    """
    tail = RESERVE * (1 - confidence) / 2
    if n > _MOST_EXACT or m > _MOST_EXACT:
        return int(n * m / 2 + NormalDist().inv_cdf(tail) * np.sqrt(n * m * (n + m + 1) / 12))
    # Ways to a sum u among i and j values: the largest of all is one of the i, and exceeds all j, or one of the j.
    column = [np.zeros(n * m + 1) for _ in range(n + 1)]
    for ways in column:
        ways[0] = 1.0
    for j in range(1, m + 1):
        for i in range(1, n + 1):
            column[i][j:] += column[i - 1][: n * m + 1 - j]
    ways = column[n]
    return int(np.searchsorted(np.cumsum(ways / ways.sum()), tail, side="right"))


def _differences(these: Floats, those: Floats) -> Floats:
    """All differences between a value of `these` and one of `those`, over their last axes."""
    gaps = these[..., :, None] - those[..., None, :]
    return gaps.reshape(*gaps.shape[:-2], -1)
