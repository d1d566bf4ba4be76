"""Ratios of each two of several arms over the same rounds, with intervals that all hold together.

A few rounds tell little about how much two arms vary against each other, and three of them allow for a spread that is
four times as large. But all pairs of a group were measured on one machine, in the same rounds. So the variance of each
pair is drawn towards what all pairs have in common, the more the less they differ by more than chance: moderated
variances (Smyth, "Linear models and empirical Bayes methods for assessing differential expression", Stat. Appl. Genet.
Mol. Biol. 3(1), 2004). A pair that varies more than others keeps its own variance.

The intervals hold together for all pairs by the distribution of the studentised range (Tukey 1953, "The problem of
multiple comparisons"), so the ratios to the arm that looks fastest hold, whichever that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from clientlab.analysis.ratios import FEWEST_ROUNDS, Ratio, paired_logs
from clientlab.analysis.typical import Floats, t_quantile, trimmed, typical

_SMALLEST = 1e-24
"""A variance of logarithms that differ by rounding only."""
_RESERVE, _RESERVE_OF_FEW = 0.8, 0.5
"""Share of the permitted error for which the intervals are computed, and the share with few rounds.

The moderated variance of a pair is an estimate, too. Without a reserve, 4 to 7 of 100 runs of equal arms call one
slower by mistake, and 10 with three rounds where one arm varies five times as much as the others.
"""
_MEDIAN_LOSS = np.array([1.0, 1.0, 1.0, 1.346, 1.192, 1.434, 1.288, 1.473])
"""Variance of the median of so many normal values over that of their mean (Hojo 1931, Biometrika 23, table I).

The typical value of few rounds is their median (`typical`), so its error is larger than that of their mean. Least
squares over all pairs of K rows (`standings.typical_levels`) take most of that back: about 2/K of the excess is left.
In 3,000 simulated runs it was 0.96 with 2 rows, 0.66 with 3, 0.53 with 4 and 0.37 with 8.
"""
_FEW_ROUNDS = 5

_NODES = 64
_BISECTIONS = 40
_FARTHEST = 8.0
"""Standard deviations, beyond which a normal value never lies."""
_SURE = 1e4
"""Degrees of freedom beyond which a variance counts as known."""


@dataclass(frozen=True)
class Pairs:
    """Of each two rows: the standard error of the typical difference, and the rounds that both have.

    `degrees`: of freedom of the errors; `pooled`: more than the rounds of a pair give. Arrays are square; NaN where two
    rows have less than two rounds in common.
    """

    error: Floats
    rounds: Floats
    degrees: Floats
    pooled: bool

    def reach(self, row: int, other: int, confidence: float) -> float:
        """Half the width of the interval of the difference of two rows. All pairs of rows hold together."""
        reserve = _reserve(float(self.rounds[row, other]), pooled=self.pooled)
        level, degrees = 1 - (1 - confidence) * reserve, round(float(self.degrees[row, other]), 1)
        half = range_quantile(len(self.error), degrees, level) / math.sqrt(2)
        return half * float(self.error[row, other])


def pairs_of(logs: Floats) -> Pairs:
    """Each two rows of logarithms, over the columns that both have; NaN where a row lacks a column."""
    count = len(logs)
    variance, kept, rounds = (np.full((count, count), np.nan) for _ in range(3))
    for place, row in enumerate(logs):
        gaps = row - logs
        known = ~np.isnan(gaps)
        rounds[place] = known.sum(axis=1)
        if known.all() and len(row) > 1:
            _, variance[place], kept[place] = trimmed(gaps)
        else:
            for other in np.flatnonzero(rounds[place] > 1):
                _, variance[place, other], kept[place, other] = trimmed(gaps[other, known[other]])
    upper = np.triu_indices(count, 1)
    # All that independent variances of the rows would have, less that of a pair.
    prior, common = _in_common(variance[upper], kept[upper] - 1, count - 2)
    error = _errors(variance, kept, _median_loss(rounds, 2 / max(2, count)), prior, common)
    return Pairs(error, rounds, kept - 1 + prior, prior > 0)


@dataclass(frozen=True)
class RowInterval:
    """Typical value of a row, and half the width of its interval; `pooled`: rests on the other rows as well."""

    typical: float
    reach: float
    pooled: bool


def apart(rows: Sequence[Floats], confidence: float) -> list[RowInterval | None]:
    """The typical values of rows that have nothing to do with each other, with intervals that hold together.

    Such as differences of pairs of arms, which no two pairs share. None of a row with less than two values. The error
    is divided among the rows (Bonferroni), and their variances are moderated.
    """
    long = [trimmed(row)[1:] if len(row) > 1 else (math.nan, math.nan) for row in rows]
    variance, kept = np.array(long, np.float64).reshape(-1, 2).T
    prior, common = _in_common(variance, kept - 1, len(rows) - 1)
    loss = _median_loss(np.array([len(row) for row in rows], np.float64), 1.0)
    errors = _errors(variance, kept, loss, prior, common)
    found: list[RowInterval | None] = []
    for index, row in enumerate(rows):
        if len(row) < 2:
            found.append(None)
            continue
        level = 1 - (1 - confidence) * _reserve(len(row), pooled=prior > 0) / len(rows)
        quantile = float(t_quantile(float(kept[index]) - 1 + prior, (1 + level) / 2))
        found.append(RowInterval(float(typical(row)), quantile * float(errors[index]), prior > 0))
    return found


def paired_ratios(
    pairs: Sequence[tuple[Mapping[int, float], Mapping[int, float]]], confidence: float
) -> list[Ratio | None]:
    """Typical ratios of pairs of figures by round, with intervals that hold together. None where no round has both."""
    logs = [paired_logs(*pair) for pair in pairs]
    return [
        _ratio(one, half, confidence) if len(one) else None
        for one, half in zip(logs, apart(logs, confidence), strict=True)
    ]


def _ratio(logs: Floats, half: RowInterval | None, confidence: float) -> Ratio:
    value = float(np.exp(typical(logs)))
    if half is None or len(logs) < FEWEST_ROUNDS:
        return Ratio(value, None, None, len(logs), confidence)
    low, high = (float(np.exp(half.typical + side * half.reach)) for side in (-1, 1))
    return Ratio(value, low, high, len(logs), confidence, half.pooled)


def _reserve(rounds: float, *, pooled: bool) -> float:
    if not pooled:
        return 1.0
    return _RESERVE_OF_FEW if rounds < _FEW_ROUNDS else _RESERVE


def _median_loss(rounds: Floats, share: float) -> Floats:
    """Return the variance of typical values over that of means, of which a share of the excess is left."""
    few = rounds < len(_MEDIAN_LOSS)
    found: Floats = 1 + share * (np.where(few, _MEDIAN_LOSS[np.where(few, rounds, 0).astype(np.int64)], 1.0) - 1)
    return found


def _errors(variance: Floats, kept: Floats, loss: Floats, prior: float, common: float) -> Floats:
    """Standard errors of the typical values, from moderated variances."""
    drawn = (prior * common + (kept - 1) * variance) / (prior + kept - 1)
    found: Floats = np.sqrt(np.maximum(drawn, variance) * loss / kept)
    return found


def _in_common(variances: Floats, degrees: Floats, independent: int) -> tuple[float, float]:
    """What these variances have in common, and how many degrees of freedom it is worth; 0 for nothing.

    It is worth no more than `independent` ones of them.
    """
    own, freedom = np.maximum(variances, _SMALLEST), degrees
    known = freedom > 0  # False of NaN
    own, freedom = own[known], freedom[known]
    if len(own) < 2:
        return 0.0, 0.0
    # The logarithm of a variance with f degrees of freedom has the mean ψ(f/2) - log(f/2) and the variance ψ'(f/2).
    logs = np.log(own) - _digamma(freedom / 2) + np.log(freedom / 2)
    beyond_chance = float(logs.var(ddof=1) - _trigamma(freedom / 2).mean())
    most = independent * float(freedom.min())
    prior = min(2 * _trigamma_inverse(beyond_chance), most) if beyond_chance > 0 else most
    common = math.exp(float(logs.mean()) + float(_digamma(np.array(prior / 2))) - math.log(prior / 2))
    return prior, common


def _digamma(x: Floats) -> Floats:
    """ψ(x) for x > 0: the recurrence up to 12 and the asymptotic series (Abramowitz and Stegun 1964, 6.3.18)."""
    found = np.zeros_like(x)
    for _ in range(12):
        found, x = found - 1 / x, x + 1
    return found + np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def _trigamma(x: Floats) -> Floats:
    """ψ'(x) for x > 0, likewise (6.4.12)."""
    found = np.zeros_like(x)
    for _ in range(12):
        found, x = found + 1 / x**2, x + 1
    return found + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5)


def _trigamma_inverse(value: float) -> float:
    """The x whose ψ'(x) is this; it falls as x grows."""
    low, high = 1e-4, _SURE
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(_trigamma(np.array(middle))) > value else (low, middle)
    return math.sqrt(low * high)


@cache
def range_quantile(count: int, degrees: float, confidence: float) -> float:
    """The studentised range of `count` normal values that is not exceeded with this probability.

    The range is divided by a standard deviation with so many degrees of freedom. The relative error is below 1e-4.
    """
    low, high = 0.0, 1.0
    while _range_probability(high, count, degrees) < confidence:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _range_probability(middle, count, degrees) < confidence else (low, middle)
    return (low + high) / 2


def _range_probability(studentised: float, count: int, degrees: float) -> float:
    """The probability that the range of `count` normal values is at most so many of their estimated deviations."""
    deviations, weights = _deviations(degrees)
    values, densities = _normal()
    below = _normal_below(values)
    inside = below - _normal_below(values - studentised * deviations[:, None])
    return float(weights @ (count * (inside ** (count - 1)) @ densities))


@cache
def _deviations(degrees: float) -> tuple[Floats, Floats]:
    """Estimates of a standard deviation of 1 with so many degrees of freedom, and their weights."""
    most = 1 + 10 / math.sqrt(2 * degrees)
    least = max(0.0, 1 - 8 / math.sqrt(2 * degrees))
    nodes, weights = _gauss(math.sqrt(least), math.sqrt(most))
    found = nodes**2  # closer to each other near 0, where few degrees of freedom put the tail of the range
    logs = (degrees - 1) * np.log(found) - degrees * (found**2 - 1) / 2
    density = weights * 2 * nodes * np.exp(logs - logs.max())
    return found, density / density.sum()


@cache
def _normal() -> tuple[Floats, Floats]:
    """Values of the normal distribution and their weights."""
    values, weights = _gauss(-_FARTHEST, _FARTHEST)
    return values, weights * np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)


def _gauss(low: float, high: float) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return low + (nodes + 1) / 2 * (high - low), weights * (high - low) / 2


def _normal_below(values: Floats) -> Floats:
    """Φ, from a table whose error is below 1e-7."""
    grid, below = _table()
    found: Floats = np.interp(values, grid, below)
    return found


@cache
def _table() -> tuple[Floats, Floats]:
    grid = np.linspace(-_FARTHEST, _FARTHEST, 16_001)
    return grid, np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in grid.tolist()])
