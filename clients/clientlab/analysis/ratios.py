"""Ratios between strategies, paired by round, with intervals from the rounds.

The round is the unit of replication: two strategies of one round met the same machine, and requests of
one trial are not independent of each other, so nothing is ever pooled over rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit  # the quantile of t alone: scipy.stats takes a second to import

FEWEST_ROUNDS = 3
"""With fewer rounds there is no interval."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """How many times as much, with the 95 % interval where there are enough rounds."""

    value: float
    low: float | None
    high: float | None
    rounds: int


def paired_ratio(these: Mapping[int, float], those: Mapping[int, float]) -> Ratio | None:
    """Ratio of two positive figures by round (round → figure); None without a round that has both.

    The geometric mean of the ratios by round, and Student's t interval for the mean of their
    logarithms: it assumes that these are close to normal, and that rounds are independent.
    """
    rounds = sorted(set(these) & set(those))
    if not rounds:
        return None
    logs = np.log([these[number] / those[number] for number in rounds])
    middle = float(np.exp(logs.mean()))
    if len(rounds) < FEWEST_ROUNDS:
        return Ratio(middle, None, None, len(rounds))
    # Student (1908): mean ± t(n-1) · s / sqrt(n)
    error = logs.std(ddof=1) / np.sqrt(len(rounds))
    reach = float(stdtrit(len(rounds) - 1, (1 + CONFIDENCE) / 2) * error)
    return Ratio(middle, middle * float(np.exp(-reach)), middle * float(np.exp(reach)), len(rounds))
