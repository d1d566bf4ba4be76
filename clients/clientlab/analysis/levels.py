"""Typical figures of several arms over the same rounds, on one scale: the base of rankings and of sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from clientlab.analysis.typical import Floats


def typical_levels(series: Sequence[Mapping[int, float]]) -> Floats:
    """Logarithms of the arms' typical figures (each: round → positive figure). Their differences are typical ratios.

    Medians of ratios contradict each other a little: a over b times b over c is not quite a over c, and of three equal
    arms each may seem faster than the next. Least squares over all pairs reconcile them (Lehmann 1964, Asymptotically
    nonparametric inference in some linear models with one observation per cell, Ann. Math. Statist. 35(2)). Of two
    arms, the difference is the median itself. Arms without a round in common are compared by their medians.
    """
    rounds = sorted({number for figures in series for number in figures})
    logs = np.log([[figures.get(number, np.nan) for number in rounds] for figures in series], dtype=np.float64)
    alone = np.nanmedian(logs, axis=1)
    gaps = _typical_gaps(logs) - (alone[:, None] - alone)
    known = ~np.isnan(gaps)
    # The normal equations of "level i - level j = gap ij", each relative to the arm's own median.
    sums = np.where(known, gaps, 0.0).sum(axis=1)
    if known.all():
        corrections = sums / len(series)  # the solution whose sum is 0
    else:
        weights = np.diag(known.sum(axis=1)) - known.astype(np.float64)
        # One equation more for each set of connected arms: its corrections have a sum of 0.
        corrections = np.linalg.solve(weights + _connected(known), sums)
    found: Floats = alone + corrections
    return found


def _connected(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which two arms are compared, directly or by way of others."""
    found = np.eye(len(known), dtype=np.bool_)
    left = np.ones(len(known), dtype=np.bool_)
    while left.any():
        reached = np.zeros(len(known), dtype=np.bool_)
        reached[np.argmax(left)] = True
        fresh = reached
        while fresh.any():
            fresh = known[fresh].any(axis=0) & ~reached
            reached = reached | fresh
        found[np.ix_(reached, reached)] = True
        left &= ~reached
    return found


def _typical_gaps(logs: Floats) -> Floats:
    """Medians of the differences of each two rows over the columns that both have; NaN where there is none."""
    found = np.full((len(logs), len(logs)), np.nan)
    whole = not np.isnan(logs).any()
    for place, row in enumerate(logs):
        if whole:
            found[place] = np.median(row - logs, axis=1)
        else:
            own = ~np.isnan(row)
            differences = row[own] - logs[:, own]
            some = ~np.isnan(differences).all(axis=1)
            found[place, some] = np.nanmedian(differences[some], axis=1)
    return found
