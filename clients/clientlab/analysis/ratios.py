"""Ratios between strategies, paired by round, with confidence intervals over the rounds.

The round is the unit of replication. Two strategies of one round met the same state of the machine. Requests of one
trial are not independent of each other, so requests are never pooled over rounds.

The ratio that the lab states is the typical one over the rounds of the ratio within a round (see `typical`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from clientlab.analysis.typical import Floats, typical, typical_interval

FEWEST_ROUNDS = 3
"""With fewer rounds, no interval is computed."""

CONFIDENCE = 0.95


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

    def with_value(self, value: float) -> Self:
        """Return the positive estimate at the value that is shown beside it. Its interval moves along."""
        if self.low is None or self.high is None:
            return replace(self, value=value)
        moved = value / self.value
        return replace(self, value=value, low=self.low * moved, high=self.high * moved)


@dataclass(frozen=True)
class Ratio(Estimate):
    """How many times as much one arm has as another, estimated from `rounds` that both have.

    `pooled`: its interval rests on the spread of other arms, too, and on more degrees of freedom than its rounds have.
    """

    rounds: int
    confidence: float = CONFIDENCE
    pooled: bool = False


def inverse(ratio: float) -> float:
    """The ratio the other way round. That of one below all numbers, which is 0, is infinite."""
    return 1 / ratio if ratio else math.inf


@np.errstate(over="ignore")  # an end beyond all numbers is infinite
def paired_ratio(
    these: Mapping[int, float], those: Mapping[int, float], confidence: float = CONFIDENCE
) -> Ratio | None:
    """Typical ratio of two positive figures by round (round → figure). None if no round has both figures.

    The value is the median of the ratios by round. The interval assumes that rounds are independent; with fewer than
    six rounds (at 95 %) also that the ratios' logarithms are close to normal (see `typical_interval`).
    """
    logs = paired_logs(these, those)
    if not len(logs):
        return None
    value = float(np.exp(typical(logs)))
    if len(logs) < FEWEST_ROUNDS:
        return Ratio(value, None, None, len(logs), confidence)
    low, high = (float(np.exp(end)) for end in typical_interval(logs, confidence))
    # Rounding must not move an end beyond the value.
    return Ratio(value, min(low, value), max(high, value), len(logs), confidence)


def typical_figure(figures: Mapping[int, float], confidence: float = CONFIDENCE) -> Ratio | None:
    """The median of a positive figure over its rounds (round → figure) and its interval. None without a figure."""
    return paired_ratio(figures, dict.fromkeys(figures, 1.0), confidence)


def typical_estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The median of one figure or more, one per round, and its interval. Figures may be 0."""
    if min(values) > 0:
        found = typical_figure(dict(enumerate(values)), confidence)
        if found is not None:
            return found
    numbers = np.asarray(values, np.float64)
    value = float(typical(numbers))
    if len(values) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    low, high = (float(end) for end in typical_interval(numbers, confidence))
    return Estimate(value, min(low, value), max(high, value))


def paired_logs(these: Mapping[int, float], those: Mapping[int, float]) -> Floats:
    """Logarithms of the ratios, one for each round in which both figures are above 0."""
    both = [number for number in sorted(set(these) & set(those)) if these[number] > 0 and those[number] > 0]
    return np.log([these[number] / those[number] for number in both], dtype=np.float64) if both else np.empty(0)
