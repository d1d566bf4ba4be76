"""Typical values of figures over rounds, and ratios between arms and between runs.

The round is the unit of replication: requests of one trial depend on each other, so
they are never pooled. The arms of a round met the same state of the machine, so their
ratios are paired by round. The rounds of two runs are not paired, and their intervals
do not cover differences between the runs as a whole.

Ratios are computed from logarithms. The typical value of fewer than eight rounds is
their median, and of more their mean without an eighth at each end: the plain mean would
rise by 12 % if one round in ten took three times as long. `scripts/bench truth` shows
how often each interval contains the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np

from clientlab.statistics.distributions import Floats, t_quantile

CONFIDENCE = 0.95

FEWEST_ROUNDS = 3
"""With fewer rounds, there is no interval."""

FEWEST_ROUNDS_OF_SPREAD = 6
"""The same for spreads: one outlying round of five spoils four of ten differences."""

_TRIMMED = 8
"""One value in eight is left out at each end."""

_RESERVE = 0.7
"""Share of the permitted error for rank intervals.

The rest is for outlying rounds in one run.
"""

_MOST_EXACT = 2500
"""Differences; more of them take too long to count."""

_Log = float | Floats
Series = Mapping[int, float]  # the figure of an arm by round: round → figure


@dataclass(frozen=True)
class Estimate:
    """A ratio or a difference, with its interval if there are enough rounds."""

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.low is None or self.high is None:
            return None
        return self.low, self.high

    def with_value(self, value: float) -> Self:
        """Return the positive estimate moved to `value`, together with its interval."""
        moved = replace(self, value=value)
        if self.interval is None:
            return moved
        factor = value / self.value
        low, high = self.interval
        return replace(moved, low=low * factor, high=high * factor)


@dataclass(frozen=True)
class Ratio(Estimate):
    """How many times as much one arm has as another, from the `rounds` that both have.

    `pooled`: the interval also uses the spread of other arms, so it has more degrees of
    freedom than its rounds.
    """

    rounds: int
    confidence: float = CONFIDENCE
    pooled: bool = False

    @classmethod
    def from_logs(
        cls,
        value: _Log,
        ends: tuple[_Log, _Log] | None,
        rounds: int,
        confidence: float,
        *,
        pooled: bool = False,
    ) -> Self:
        """Return the ratio from logarithms: its own, and those of its interval's ends.

        `ends`: None without an interval.
        """
        low = high = None
        if ends is not None:
            low, high = map(exponentiate, ends)
        return cls(exponentiate(value), low, high, rounds, confidence, pooled)


def divide_error(confidence: float, count: int) -> float:
    """Return the confidence of each of `count` intervals that hold together.

    The permitted error is divided among them (Bonferroni).
    """
    return 1 - (1 - confidence) / max(1, count)


def exponentiate(log: _Log) -> float:
    """Return e to the power of `log`, or infinity beyond the range of floats."""
    with np.errstate(over="ignore"):
        return float(np.exp(log))


class Trimmed(NamedTuple):
    """A trimmed mean, its variance per value, and the number of values kept.

    The variance divided by that number is the square of the mean's standard error, with
    one degree of freedom less than the number (Tukey and McLaughlin 1963, Less
    vulnerable confidence and significance procedures for location).
    """

    mean: Floats
    variance: Floats
    kept: int


def trimmed(values: Floats) -> Trimmed:
    """Return the trimmed mean over the last axis."""
    n = values.shape[-1]
    cut = n // _TRIMMED
    if not cut:
        mean = values.mean(axis=-1)
        variance = values.var(axis=-1, ddof=1)
        return Trimmed(mean, variance, n)
    ordered = np.sort(values, axis=-1)
    inner = ordered[..., cut : n - cut]
    lowest = inner[..., :1]
    highest = inner[..., -1:]
    winsorized = np.clip(values, lowest, highest)
    kept = n - 2 * cut
    variance = winsorized.var(axis=-1, ddof=1) * (n - 1) / (kept - 1)
    return Trimmed(inner.mean(axis=-1), variance, kept)


def typical(values: Floats) -> Floats:
    """Return the typical value over the last axis.

    This is the median of fewer than eight values, else the trimmed mean.
    """
    if values.shape[-1] >= _TRIMMED:
        return trimmed(values).mean
    median: Floats = np.median(values, axis=-1)
    return median


def typical_interval(values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return both ends of the interval of the typical value over the last axis.

    This is Student's interval of the trimmed mean of at least 2 values.
    """
    mean, variance, kept = trimmed(values)
    error = np.sqrt(variance / kept)
    reach = student(kept - 1, confidence) * error
    return mean - reach, mean + reach


@cache
def expected_width(n: int, confidence: float) -> float:
    """Return about half the expected width of the interval of n normal values.

    The unit is their standard deviation. The variance is that of winsorized values
    (Tukey and McLaughlin).
    """
    cut = n // _TRIMMED
    kept = n - 2 * cut
    share = cut / n
    normal = NormalDist()
    z = 0.0
    if cut:
        z = normal.inv_cdf(1 - share)
    of_inner = 1 - 2 * share - 2 * z * normal.pdf(z)
    of_ends = 2 * share * z * z
    variance = (of_inner + of_ends) * (n - 1) / (kept * (kept - 1))
    return student(kept - 1, confidence) * math.sqrt(variance)


@cache
def student(degrees: int, confidence: float) -> float:
    """Return half the width of Student's interval, in standard errors."""
    return float(t_quantile(degrees, (1 + confidence) / 2))


def _pair(these: Series, those: Series) -> list[tuple[float, float]]:
    """Return both figures of each common round."""
    common = sorted(these.keys() & those.keys())
    return [(these[number], those[number]) for number in common]


def paired_ratio(
    these: Series,
    those: Series,
    confidence: float = CONFIDENCE,
) -> Ratio | None:
    """Return the typical ratio of two figures, or None if they share no round."""
    pairs = _pair(these, those)
    ratios = [this / that for this, that in pairs if this > 0 and that > 0]
    if not ratios:
        return None
    logs = np.array([*map(math.log, ratios)])
    rounds = len(logs)
    ends = None
    if rounds >= FEWEST_ROUNDS:
        ends = typical_interval(logs, confidence)
    return Ratio.from_logs(typical(logs), ends, rounds, confidence)


def paired_difference(
    these: Series,
    those: Series,
    confidence: float,
    fewest: int = FEWEST_ROUNDS,
) -> Estimate | None:
    """Return the typical difference of two figures, or None if they share no round.

    `fewest`: rounds that an interval needs.
    """
    differences = [this - that for this, that in _pair(these, those)]
    if not differences:
        return None
    return _estimate(differences, confidence, fewest)


def typical_figure(figures: Series, confidence: float = CONFIDENCE) -> Ratio | None:
    """Return the typical value of a positive figure. Return None without a round."""
    ones = dict.fromkeys(figures, 1.0)
    return paired_ratio(figures, ones, confidence)


def typical_estimate(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the typical value of the figures of one round or more, which may be 0."""
    by_round = dict(enumerate(values))
    figure = typical_figure(by_round, confidence)
    if figure is not None and min(values) > 0:
        return figure
    return _estimate(values, confidence, FEWEST_ROUNDS)


def _estimate(values: Sequence[float], confidence: float, fewest: int) -> Estimate:
    """Return the typical value, with an interval if there are as many rounds."""
    numbers = np.array(values, np.float64)
    value = float(typical(numbers))
    if len(numbers) < fewest:
        return Estimate(value, None, None)
    low, high = typical_interval(numbers, confidence)
    return Estimate(value, float(low), float(high))


def spread(logs: Floats) -> Floats:
    """Return the median difference between two values (Shamos 1976)."""
    first, second = np.triu_indices(logs.shape[-1], 1)
    differences = logs[..., first] - logs[..., second]
    median: Floats = np.median(np.abs(differences), axis=-1)
    return median


def spread_ratio(
    these: Series,
    those: Series,
    confidence: float = CONFIDENCE,
) -> Ratio | None:
    """Return the ratio of the spreads of two positive figures over common rounds.

    Return None with fewer than two rounds, or if a figure does not vary. There is no
    interval if half of a figure's differences are 0.
    """
    pairs = _pair(these, those)
    count = len(pairs)
    if count < 2:
        return None
    logs = np.log(np.transpose(pairs))
    spreads = spread(logs)
    if not spreads.all():
        return None
    numerator, denominator = np.log(spreads)
    value = float(numerator - denominator)
    ends = None
    error = _spread_error(logs)
    if error is not None:
        reach = student(count - 1, confidence) * error
        ends = value - reach, value + reach
    return Ratio.from_logs(value, ends, count, confidence)


def _spread_error(logs: Floats) -> float | None:
    """Return the standard error of the logarithm of the ratio of two spreads.

    Return None with too few rounds, or if a spread without one of them is 0.
    """
    count = logs.shape[1]
    if count < FEWEST_ROUNDS_OF_SPREAD:
        return None
    without = [spread(np.delete(logs, place, axis=1)) for place in range(count)]
    if not np.all(without):
        return None
    these, those = np.transpose(without)
    return jackknife_error(np.log(these / those))


def jackknife_error(without: Floats) -> float:
    """Return the standard error of an estimate (Tukey 1958).

    `without`: the estimates without each of the values.
    """
    return math.sqrt((len(without) - 1) * without.var())


def unpaired_ratio(
    these: Sequence[float],
    those: Sequence[float],
    step: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Ratio | None:
    """Return the typical ratio of the rounds of two runs.

    It is the median of all ratios of a figure of `these` to one of `those` (Hodges and
    Lehmann 1963, Estimates of location based on rank tests). `step`: resolution of the
    figures, as a share of their value. Return None if a side is empty or a figure is
    not above 0.
    """
    if not these or not those or min(*these, *those) <= 0:
        return None
    these_logs = np.log(these)
    those_logs = np.log(those)
    differences = these_logs[:, None] - those_logs
    median = np.median(differences)
    rounds = min(len(these), len(those))
    ends = None
    if rounds >= FEWEST_ROUNDS:
        ends = shift_interval(these_logs, those_logs, step, confidence)
    return Ratio.from_logs(median, ends, rounds, confidence, pooled=True)


def predicted_ratio(
    figure: float,
    earlier: Sequence[float],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return the ratio of a run's figure to the mean of earlier runs. All are above 0.

    Its interval excludes 1 if the figure is outside of what the earlier runs predict
    for one more run (Student's prediction interval of the logarithms).
    """
    logs = np.log(earlier)
    count = len(earlier)
    difference = math.log(figure) - float(logs.mean())
    deviation = float(logs.std(ddof=1))
    reach = student(count - 1, confidence) * deviation
    reach *= math.sqrt(1 + 1 / count)
    low = exponentiate(difference - reach)
    high = exponentiate(difference + reach)
    return Estimate(exponentiate(difference), low, high)


def unpaired_difference(
    these: Sequence[float],
    those: Sequence[float],
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """Return the difference of the means of two runs' rounds with Welch's interval.

    Return None if a side is empty.
    """
    if not these or not those:
        return None
    first = np.array(these)
    second = np.array(those)
    value = float(first.mean() - second.mean())
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    reach = float(_welch_reach(first, second, 0.0, confidence))
    return Estimate(value, value - reach, value + reach)


def shift_interval(
    these: Floats,
    those: Floats,
    step: float = 0.0,
    confidence: float = CONFIDENCE,
) -> tuple[Floats, Floats]:
    """Return both ends of the interval of the median difference over the last axes.

    Each has at least 2 values. With enough values, it is the interval of the rank sum
    test (Mann and Whitney 1947), widened by the resolution. With fewer, it has the
    width of Welch's interval.
    """
    table = these[..., :, None] - those[..., None, :]
    differences = table.reshape(*table.shape[:-2], -1)
    fewer, more = sorted((these.shape[-1], those.shape[-1]))
    rank = _rank(fewer, more, confidence)
    if rank:
        differences.sort(axis=-1)
        low = differences[..., rank - 1]
        high = differences[..., -rank]
        return low - step, high + step
    middle = np.median(differences, axis=-1)
    reach = _welch_reach(these, those, step, confidence)
    return middle - reach, middle + reach


def _welch_reach(
    these: Floats,
    those: Floats,
    step: float,
    confidence: float,
) -> Floats:
    """Return half the width of the interval of the difference of the means.

    Variances may differ (Welch 1947; degrees of freedom by Satterthwaite 1946). Each is
    at least that of rounding to `step` (Sheppard 1898).
    """
    n = these.shape[-1]
    m = those.shape[-1]
    these_squared = _squared_error(these, step)
    those_squared = _squared_error(those, step)
    squared = these_squared + those_squared
    these_share = these_squared**2 / (n - 1)
    those_share = those_squared**2 / (m - 1)
    shares = these_share + those_share
    freedom = np.ones_like(squared)
    np.divide(squared**2, shares, out=freedom, where=shares > 0)
    fewer, more = sorted((n, m))
    if fewer < 6 and more > 2 * fewer:
        # Welch's degrees of freedom are too high here: 3 and 20 equal rounds would
        # differ in 7.5 % of simulations. Those of the smaller side alone are never too
        # high (Mickey and Brown 1966).
        freedom = np.full_like(squared, fewer - 1)
    quantile = t_quantile(freedom, (1 + confidence) / 2)
    reach: Floats = quantile * np.sqrt(squared)
    return reach


def _squared_error(values: Floats, step: float) -> Floats:
    """Return the square of the standard error of the mean over the last axis."""
    variance = values.var(axis=-1, ddof=1)
    of_rounding = step**2 / 12
    squared: Floats = np.maximum(variance, of_rounding) / values.shape[-1]
    return squared


@cache
def _rank(n: int, m: int, confidence: float) -> int:
    """Return the rank of the interval's ends among the n · m ordered differences.

    The rank sum test rejects with P(U < rank) on each side, which is close to normal
    with many values. Return 0 with too few values.
    """
    tail = _RESERVE * (1 - confidence) / 2
    count = n * m
    if count > _MOST_EXACT:
        variance = count * (n + m + 1) / 12
        normal = NormalDist(count / 2, math.sqrt(variance))
        return max(0, int(normal.inv_cdf(tail)))
    # The ways to reach a sum u with i and j values: the largest is one of the i, and
    # exceeds all j, or one of the j.
    ways = [np.eye(1, count + 1)[0] for _ in range(n + 1)]
    for j in range(1, m + 1):
        for i in range(1, n + 1):
            ways[i][j:] += ways[i - 1][: count + 1 - j]
    probabilities = ways[n] / ways[n].sum()
    cumulative = np.cumsum(probabilities)
    return int(np.searchsorted(cumulative, tail, side="right"))
