"""Ratios and differences of figures of two runs, whose rounds are not paired.

No round of one run met the machine in the same state as a round of the other. A difference between the runs as a
whole (another day, another tenant of the machine) does not appear in the spread of the rounds, so these intervals do
not include it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Estimate
from clientlab.analysis.student_t import t_quantile

Array = npt.NDArray[np.float64]

_FEW = 6


def unpaired_ratio(these: Sequence[float], those: Sequence[float], step: float = 0.0) -> Estimate | None:
    """Geometric mean of `these` over that of `those`. None if a side is empty or a figure is not above 0.

    The interval is that of the difference of the means of the logarithms, which are assumed to be close to normal.
    `step`: the resolution of the figures, as a share of their value.
    """
    if not these or not those or min(*these, *those) <= 0:
        return None
    found = _estimate(np.log(these), np.log(those), step)
    low, high = (None if end is None else float(np.exp(end)) for end in (found.low, found.high))
    return Estimate(float(np.exp(found.value)), low, high)


def unpaired_difference(these: Sequence[float], those: Sequence[float]) -> Estimate | None:
    """Mean of `these` less that of `those`. None if a side is empty."""
    return _estimate(np.asarray(these), np.asarray(those), 0.0) if these and those else None


def welch(these: Array, those: Array, step: float = 0.0) -> tuple[Array, Array]:
    """Difference of the means along the last axis, and half the width of its 95 % confidence interval.

    Shapes: `these` (..., n), `those` (..., m), with n and m at least 2. Variances may differ. If all figures of both
    sides are equal, the interval has no width, unless `step` gives their resolution.
    """
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
    half = t_quantile(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(total)
    return these.mean(axis=-1) - those.mean(axis=-1), half


def _estimate(these: Array, those: Array, step: float) -> Estimate:
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(float(these.mean() - those.mean()), None, None)
    value, half = (float(part) for part in welch(these, those, step))
    return Estimate(value, value - half, value + half)
