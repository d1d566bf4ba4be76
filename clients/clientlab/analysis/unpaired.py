"""Figures of two runs: their rounds are not paired, for no round of one met the machine as a round of the other did.

What differs between two runs as a whole (another day, another neighbour on the machine) is in no round's
spread, and so in no interval here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # as in ratios

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS

Array = npt.NDArray[np.float64]

_FEW = 6


@dataclass(frozen=True)
class Estimate:
    """A ratio or a difference, with the 95 % interval where both sides have enough rounds."""

    value: float
    low: float | None
    high: float | None


def unpaired_ratio(these: Sequence[float], those: Sequence[float], step: float = 0.0) -> Estimate | None:
    """Geometric mean of `these` over that of `those`; None where a side is empty or a figure is not above 0.

    The interval is that of the difference of the means of the logarithms, which it takes to be close to
    normal. `step`: the figures' own resolution as a share of them.
    """
    if not these or not those or min(*these, *those) <= 0:
        return None
    found = _estimate(np.log(these), np.log(those), step)
    low, high = (None if end is None else float(np.exp(end)) for end in (found.low, found.high))
    return Estimate(float(np.exp(found.value)), low, high)


def unpaired_difference(these: Sequence[float], those: Sequence[float]) -> Estimate | None:
    """Mean of `these` less that of `those`; None where a side is empty."""
    return _estimate(np.asarray(these), np.asarray(those), 0.0) if these and those else None


def welch(these: Array, those: Array, step: float = 0.0) -> tuple[Array, Array]:
    """Difference of the means along the last axis, and how far its 95 % interval reaches to either side.

    `these` (..., n) and `those` (..., m), n and m at least 2. Variances may differ. Where every figure of both
    sides is the same the interval has no width, unless they are known to a `step` only.
    """
    n, m = these.shape[-1], those.shape[-1]
    # A value rounded to a step is off by step² / 12 in the mean square (Sheppard 1898): no spread is less than that.
    least = step**2 / 12
    one = np.maximum(these.var(axis=-1, ddof=1), least) / n
    other = np.maximum(those.var(axis=-1, ddof=1), least) / m
    total = one + other
    # Welch (1947), degrees of freedom after Satterthwaite (1946):
    # (a + b)² / (a² / (n - 1) + b² / (m - 1)), a and b the squared standard errors
    shares = one**2 / (n - 1) + other**2 / (m - 1)
    freedom = np.divide(total**2, shares, out=np.ones_like(total), where=shares > 0)
    if min(n, m) < _FEW and max(n, m) > 2 * min(n, m):
        # Where few rounds are beside many, Welch's are too many: simulated, 3 and 20 equal rounds differ in 7.5 % of
        # cases. Those of the smaller side alone are never too many (Mickey and Brown 1966).
        freedom = np.full_like(total, min(n, m) - 1)
    reach = stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(total)
    return these.mean(axis=-1) - those.mean(axis=-1), reach


def _estimate(these: Array, those: Array, step: float) -> Estimate:
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(float(these.mean() - those.mean()), None, None)
    value, reach = (float(part) for part in welch(these, those, step))
    return Estimate(value, value - reach, value + reach)
