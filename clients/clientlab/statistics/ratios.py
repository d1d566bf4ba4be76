"""Typical values of figures over rounds, and their ratios between arms and between
runs, with confidence intervals.

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
from typing import Self

import numpy as np

from clientlab.statistics.distributions import Floats, t_quantile

CONFIDENCE = 0.95
FEWEST_ROUNDS = 3  # with fewer rounds, there is no interval
FEWEST_ROUNDS_OF_SPREAD = (
    6  # the same for spreads: one outlying round of five spoils four of ten differences
)

_TRIMMED = 8  # one value in eight is left out at each end
# Share of the permitted error for rank intervals; the rest is for outlying rounds in
# one run.
_RESERVE = 0.7
_MOST_EXACT = 2500  # differences; more of them take too long to count
_Log = float | Floats
Series = Mapping[int, float]  # the figure of an arm by round: round → figure


@dataclass(frozen=True)
class Estimate:
    """A ratio or a difference, with its confidence interval if there are
    enough rounds.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def with_value(self, value: float) -> Self:
        """Return the positive estimate moved to `value`, together with its interval."""
        if self.low is None or self.high is None:
            return replace(self, value=value)
        moved = value / self.value
        return replace(self, value=value, low=self.low * moved, high=self.high * moved)


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
        """Return the ratio from its logarithm and, if it has an interval, those of the
        interval's ends.
        """
        low, high = (None, None) if ends is None else map(exponentiate, ends)
        return cls(exponentiate(value), low, high, rounds, confidence, pooled)


def exponentiate(log: _Log) -> float:
    """Return e to the power of `log`, or infinity beyond the range of floats."""
    with np.errstate(over="ignore"):
        return float(np.exp(log))


def typical(values: Floats) -> Floats:
    """Return the typical value over the last axis: the median of fewer than eight
    values, else the trimmed mean.
    """
    n = values.shape[-1]
    cut = n // _TRIMMED
    found: Floats = (
        np.sort(values, axis=-1)[..., cut : n - cut].mean(axis=-1)
        if cut
        else np.median(values, axis=-1)
    )
    return found


def trimmed(values: Floats) -> tuple[Floats, Floats, int]:
    """Return the trimmed mean over the last axis, its variance per value, and the
    number of values kept.

    The variance divided by that number is the square of the mean's standard error, with
    one degree of freedom less than the number (Tukey and McLaughlin 1963, Less
    vulnerable confidence and significance procedures for location).
    """
    n = values.shape[-1]
    cut = n // _TRIMMED
    kept = n - 2 * cut
    if not cut:
        return values.mean(axis=-1), values.var(axis=-1, ddof=1), n
    ordered = np.sort(values, axis=-1)
    drawn_in = np.clip(values, ordered[..., cut, None], ordered[..., n - cut - 1, None])
    return (
        ordered[..., cut : n - cut].mean(axis=-1),
        drawn_in.var(axis=-1, ddof=1) * (n - 1) / (kept - 1),
        kept,
    )


def typical_interval(values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return both ends of the confidence interval of the typical value over the last
    axis, of at least 2 values.

    This is Student's interval of the trimmed mean.
    """
    middle, variance, kept = trimmed(values)
    half = student(kept - 1, confidence) * np.sqrt(variance / kept)
    return middle - half, middle + half


@cache
def expected_width(n: int, confidence: float) -> float:
    """Return about half the expected width of the interval of n normal values, in
    standard deviations.
    """
    cut = n // _TRIMMED
    kept, normal, share = n - 2 * cut, NormalDist(), cut / n
    z = normal.inv_cdf(1 - share) if cut else 0.0
    # The variance of normal values whose outermost share at each end is moved in to z
    # (Tukey and McLaughlin).
    drawn_in = 1 - 2 * share - 2 * z * normal.pdf(z) + 2 * share * z * z
    return student(kept - 1, confidence) * math.sqrt(
        drawn_in * (n - 1) / (kept * (kept - 1))
    )


@cache
def student(degrees: int, confidence: float) -> float:
    """Return half the width of Student's interval, in standard errors."""
    return float(t_quantile(degrees, (1 + confidence) / 2))


def paired_logs(these: Series, those: Series) -> Floats:
    """Return the logarithms of the ratios of two figures, for rounds where both are
    above 0.
    """
    both = [
        number
        for number in sorted(these.keys() & those.keys())
        if these[number] > 0 and those[number] > 0
    ]
    return np.array(
        [math.log(these[number] / those[number]) for number in both], np.float64
    )


def paired_ratio(
    these: Series, those: Series, confidence: float = CONFIDENCE
) -> Ratio | None:
    """Return the typical ratio of two figures (see `typical_interval`), or None if they
    share no round.
    """
    logs = paired_logs(these, those)
    if not len(logs):
        return None
    ends = typical_interval(logs, confidence) if len(logs) >= FEWEST_ROUNDS else None
    return Ratio.from_logs(typical(logs), ends, len(logs), confidence)


def paired_difference(
    these: Series, those: Series, confidence: float, fewest: int = FEWEST_ROUNDS
) -> Estimate | None:
    """Return the typical difference of two figures, in their unit, or None if they
    share no round.

    `fewest`: rounds that an interval needs.
    """
    gaps = np.array(
        [
            these[number] - those[number]
            for number in sorted(these.keys() & those.keys())
        ],
        np.float64,
    )
    if not len(gaps):
        return None
    low, high = (
        typical_interval(gaps, confidence) if len(gaps) >= fewest else (None, None)
    )
    return Estimate(
        float(typical(gaps)),
        None if low is None else float(low),
        None if high is None else float(high),
    )


def typical_figure(figures: Series, confidence: float = CONFIDENCE) -> Ratio | None:
    """Return the typical value of a positive figure. Return None without a round."""
    return paired_ratio(figures, dict.fromkeys(figures, 1.0), confidence)


def typical_estimate(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the typical value of the figures of one round or more, which may be 0."""
    if (
        min(values) > 0
        and (found := typical_figure(dict(enumerate(values)), confidence)) is not None
    ):
        return found
    numbers = np.asarray(values, np.float64)
    if len(values) < FEWEST_ROUNDS:
        return Estimate(float(typical(numbers)), None, None)
    low, high = typical_interval(numbers, confidence)
    return Estimate(float(typical(numbers)), float(low), float(high))


def spread_ratio(
    these: Series, those: Series, confidence: float = CONFIDENCE
) -> Ratio | None:
    """Return the ratio of the spreads of two positive figures over their common rounds.

    The spread is the median difference between two rounds (Shamos 1976). The standard
    error of the ratio's logarithm is the jackknife's (Tukey 1958). Return None with
    fewer than two rounds, or if a figure does not vary. There is no interval if half of
    a figure's differences are 0.
    """
    both = sorted(these.keys() & those.keys())
    logs = np.log(
        [[figures[number] for number in both] for figures in (these, those)],
        dtype=np.float64,
    )
    if len(both) < 2 or not _spreads(logs).all():
        return None
    value = float(np.log(_spreads(logs)) @ [1, -1])
    if len(both) >= FEWEST_ROUNDS_OF_SPREAD:
        without = np.array(
            [_spreads(np.delete(logs, place, axis=1)) for place in range(len(both))]
        )
        if without.all():
            error = math.sqrt(
                (len(both) - 1) * np.log(without[:, 0] / without[:, 1]).var()
            )
            reach = student(len(both) - 1, confidence) * error
            return Ratio.from_logs(
                value, (value - reach, value + reach), len(both), confidence
            )
    return Ratio.from_logs(value, None, len(both), confidence)


def _spreads(logs: Floats) -> Floats:
    one, other = np.triu_indices(logs.shape[-1], 1)
    found: Floats = np.median(np.abs(logs[:, one] - logs[:, other]), axis=-1)
    return found


def unpaired_ratio(
    these: Sequence[float],
    those: Sequence[float],
    step: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """Return the typical ratio of the rounds of two runs.

    It is the median of all ratios of a figure of `these` to one of `those` (Hodges and
    Lehmann 1963, Estimates of location based on rank tests). `step`: resolution of the
    figures, as a share of their value. Return None if a side is empty or a figure is
    not above 0.
    """
    if not these or not those or min(*these, *those) <= 0:
        return None
    one, other = np.log(these), np.log(those)
    value = exponentiate(np.median(one[:, None] - other))
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    low, high = shift_interval(one, other, step, confidence)
    return Estimate(value, exponentiate(low), exponentiate(high))


def predicted_ratio(
    figure: float, earlier: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the ratio of a run's figure to the mean of earlier runs. All are above 0.

    Its interval excludes 1 if the figure is outside of what the earlier runs predict
    for one more run (Student's prediction interval of the logarithms).
    """
    logs, count = np.log(earlier), len(earlier)
    value = math.log(figure) - float(logs.mean())
    reach = (
        student(count - 1, confidence)
        * float(logs.std(ddof=1))
        * math.sqrt(1 + 1 / count)
    )
    return Estimate(
        exponentiate(value), exponentiate(value - reach), exponentiate(value + reach)
    )


def unpaired_difference(
    these: Sequence[float], those: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Return the difference of the means of two runs' rounds with Welch's interval, or
    None if a side is empty.
    """
    if not these or not those:
        return None
    value = float(np.mean(these) - np.mean(those))
    if min(len(these), len(those)) < FEWEST_ROUNDS:
        return Estimate(value, None, None)
    error, freedom = welch_error(
        np.array(these, np.float64), np.array(those, np.float64)
    )
    reach = float(t_quantile(freedom, (1 + confidence) / 2) * error)
    return Estimate(value, value - reach, value + reach)


def shift_interval(
    these: Floats, those: Floats, step: float = 0.0, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Return both ends of the interval of the median difference, over the last axes, of
    at least 2 values each.

    With enough values, it is the interval of the rank sum test (Mann and Whitney 1947),
    widened by the resolution. With fewer, it has the width of Welch's interval.
    """
    gaps = these[..., :, None] - those[..., None, :]
    differences = np.sort(gaps.reshape(*gaps.shape[:-2], -1), axis=-1)
    if rank := _rank(*sorted((these.shape[-1], those.shape[-1])), confidence):
        return differences[..., rank - 1] - step, differences[..., -rank] + step
    error, freedom = welch_error(these, those, step)
    middle, reach = (
        np.median(differences, axis=-1),
        t_quantile(freedom, (1 + confidence) / 2) * error,
    )
    return middle - reach, middle + reach


def welch_error(
    these: Floats, those: Floats, step: float = 0.0
) -> tuple[Floats, Floats]:
    """Return the standard error of the difference of the means over the last axes, and
    its degrees of freedom.

    Variances may differ (Welch 1947; degrees of freedom by Satterthwaite 1946). Each is
    at least that of rounding to `step` (Sheppard 1898).
    """
    n, m = these.shape[-1], those.shape[-1]
    one, other = (
        np.maximum(side.var(axis=-1, ddof=1), step**2 / 12) / side.shape[-1]
        for side in (these, those)
    )
    total, shares = one + other, one**2 / (n - 1) + other**2 / (m - 1)
    freedom = np.divide(total**2, shares, out=np.ones_like(total), where=shares > 0)
    if min(n, m) < 6 and max(n, m) > 2 * min(n, m):
        # Welch's degrees of freedom are too high here: 3 and 20 equal rounds would
        # differ in 7.5 % of simulations. Those of the smaller side alone are never too
        # high (Mickey and Brown 1966).
        freedom = np.full_like(total, min(n, m) - 1)
    return np.sqrt(total), freedom


@cache
def _rank(n: int, m: int, confidence: float) -> int:
    """Return the rank of the interval's ends among the n · m ordered differences, or 0
    with too few values.

    The rank sum test rejects with P(U < rank) on each side, which is close to normal
    with many values.
    """
    tail = _RESERVE * (1 - confidence) / 2
    if n * m > _MOST_EXACT:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, int(n * m / 2 + NormalDist().inv_cdf(tail) * deviation))
    # The ways to reach a sum u with i and j values: the largest is one of the i, and
    # exceeds all j, or one of the j.
    column = [np.eye(1, n * m + 1)[0] for _ in range(n + 1)]
    for j in range(1, m + 1):
        for i in range(1, n + 1):
            column[i][j:] += column[i - 1][: n * m + 1 - j]
    return int(
        np.searchsorted(np.cumsum(column[n] / column[n].sum()), tail, side="right")
    )
