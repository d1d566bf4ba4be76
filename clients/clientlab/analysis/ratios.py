"""Ratios between strategies, paired by round, with confidence intervals over the rounds.

The round is the unit of replication. Two strategies of one round met the same state of the machine. Requests of one
trial are not independent of each other, so requests are never pooled over rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clientlab.analysis.student_t import t_quantile

FEWEST_ROUNDS = 3
"""With fewer rounds, no interval is computed."""

CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A ratio or a difference, with its confidence interval where there are enough rounds."""

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends; None with too few rounds."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Ratio(Estimate):
    """How many times as much one arm has as another, estimated from `rounds` that both have."""

    rounds: int
    confidence: float = CONFIDENCE


def paired_ratio(
    these: Mapping[int, float], those: Mapping[int, float], confidence: float = CONFIDENCE
) -> Ratio | None:
    """Ratio of two positive figures by round (round → figure). None if no round has both figures.

    The value is the geometric mean of the ratios by round. The interval is Student's t interval for the mean of their
    logarithms. It assumes that the logarithms are close to normal, and that rounds are independent.
    """
    logs = paired_logs(these, those)
    if not len(logs):
        return None
    mean = float(np.exp(logs.mean()))
    if len(logs) < FEWEST_ROUNDS:
        return Ratio(mean, None, None, len(logs), confidence)
    half = float(half_width(logs, confidence))
    return Ratio(mean, mean * float(np.exp(-half)), mean * float(np.exp(half)), len(logs), confidence)


def paired_logs(these: Mapping[int, float], those: Mapping[int, float]) -> Floats:
    """Logarithms of the ratios, one for each round in which both figures are above 0."""
    both = [number for number in sorted(set(these) & set(those)) if these[number] > 0 and those[number] > 0]
    return np.log([these[number] / those[number] for number in both], dtype=np.float64) if both else np.empty(0)


def half_width(logs: Floats, confidence: float = CONFIDENCE) -> Floats:
    """Half the width of Student's interval for the mean over the last axis, of at least 2 values."""
    n = logs.shape[-1]
    # Student (1908): mean ± t(n-1) · s / sqrt(n)
    half: Floats = t_quantile(n - 1, (1 + confidence) / 2) * logs.std(axis=-1, ddof=1) / np.sqrt(n)
    return half
