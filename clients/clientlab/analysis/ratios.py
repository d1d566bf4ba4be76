"""Ratios between strategies, paired by round, with intervals from the rounds.

The round is the unit of replication: two strategies of one round met the same machine, and requests of
one trial are not independent of each other, so nothing is ever pooled over rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # the quantile of t alone: scipy.stats takes a second to import

FEWEST_ROUNDS = 3
"""With fewer rounds there is no interval."""

CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """How many times as much, with the interval of that confidence where there are enough rounds."""

    value: float
    low: float | None
    high: float | None
    rounds: int
    confidence: float = CONFIDENCE

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or None where there are too few rounds."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def paired_ratio(
    these: Mapping[int, float], those: Mapping[int, float], confidence: float = CONFIDENCE
) -> Ratio | None:
    """Ratio of two positive figures by round (round → figure); None without a round that has both.

    The geometric mean of the ratios by round, and Student's t interval for the mean of their
    logarithms: it assumes that these are close to normal, and that rounds are independent.
    """
    logs = paired_logs(these, those)
    if not len(logs):
        return None
    middle = float(np.exp(logs.mean()))
    if len(logs) < FEWEST_ROUNDS:
        return Ratio(middle, None, None, len(logs), confidence)
    half = float(reach(logs, confidence))
    return Ratio(middle, middle * float(np.exp(-half)), middle * float(np.exp(half)), len(logs), confidence)


def paired_logs(these: Mapping[int, float], those: Mapping[int, float]) -> Floats:
    """Logarithms of the ratios, for each round that has both figures and both above 0."""
    both = [number for number in sorted(set(these) & set(those)) if these[number] > 0 and those[number] > 0]
    return np.log([these[number] / those[number] for number in both], dtype=np.float64) if both else np.empty(0)


def reach(logs: Floats, confidence: float = CONFIDENCE) -> Floats:
    """How far Student's interval of the mean reaches to each side; over the last axis, of `n` values, at least 2."""
    n = logs.shape[-1]
    # Student (1908): mean ± t(n-1) · s / sqrt(n)
    half: Floats = stdtrit(n - 1, (1 + confidence) / 2) * logs.std(axis=-1, ddof=1) / np.sqrt(n)
    return half
