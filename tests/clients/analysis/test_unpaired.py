"""Ratios of figures that are not paired: against the formulas of the tests, and what 2,000 simulated runs say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.analysis.typical import t_quantile
from clientlab.analysis.unpaired import (
    RESERVE,
    detectable,
    rank_of,
    shift_interval,
    unpaired_difference,
    unpaired_ratio,
    welch,
)

SIMULATIONS = 2000


def drawn(seed: int, rounds: tuple[int, int], spreads: tuple[float, float], truth: float = 1.0):
    """Logarithms of the figures of so many pairs of runs, and those of the true ratio's."""
    draw = np.random.default_rng(seed)
    return (
        draw.normal(np.log(truth), spreads[0], (SIMULATIONS, rounds[0])),
        draw.normal(0.0, spreads[1], (SIMULATIONS, rounds[1])),
    )


@pytest.mark.parametrize("rounds", [(3, 3), (5, 3), (3, 6)])
def test_few_rounds_have_the_interval_of_welchs_test_of_logarithms(rounds):
    """The half width is the quantile of t times the standard error, with Satterthwaite's degrees of freedom.

    The typical ratio is in the middle.
    """
    draw = np.random.default_rng(3)
    these, those = draw.lognormal(1, 0.2, rounds[0]), draw.lognormal(0, 0.4, rounds[1])
    one, other = (np.log(side).var(ddof=1) / len(side) for side in (these, those))
    freedom = (one + other) ** 2 / (one**2 / (rounds[0] - 1) + other**2 / (rounds[1] - 1))
    half = float(t_quantile(freedom, 0.995)) * math.sqrt(one + other)
    middle = float(np.median(np.log(these[:, None] / those)))
    found = unpaired_ratio(these.tolist(), those.tolist(), confidence=0.99)
    assert found.value == pytest.approx(math.exp(middle))
    assert (found.low, found.high) == pytest.approx((math.exp(middle - half), math.exp(middle + half)))


@pytest.mark.parametrize(("rounds", "level"), [((4, 4), 0.95), ((8, 8), 0.999), ((6, 11), 0.95), ((20, 20), 0.99)])
def test_the_rank_is_that_of_the_rank_sum_test(rounds, level):
    """The last at which the exact test still calls the runs different."""
    rank = rank_of(*rounds, level)
    error = RESERVE * (1 - level) / 2
    assert _tail(*rounds, rank - 1) <= error < _tail(*rounds, rank)


def _tail(n: int, m: int, statistic: int) -> float:
    """The probability of a statistic of at most that, of two equal distributions."""
    # Their numbers are the coefficients of Gauss's binomial: the product over i of (1 - q^(n + i)) / (1 - q^i).
    ways = [1] + [0] * statistic
    for i in range(1, m + 1):
        for u in range(statistic, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, statistic + 1):
            ways[u] += ways[u - i]
    return sum(ways) / math.comb(n + m, n)


@pytest.mark.parametrize("spreads", [(0.05, 0.05), (0.02, 0.1)])
@pytest.mark.parametrize("rounds", [(5, 5), (6, 15)])
def test_the_interval_holds_the_truth_in_95_of_100_runs(rounds, spreads):
    """Between 93 and 97 %, for equal and unequal spreads and numbers of rounds; the sampling error is 0.5 %."""
    value, reach = welch(*drawn(17, rounds, spreads, truth=1.3))
    held = np.abs(value - np.log(1.3)) <= reach
    assert 0.93 <= held.mean() <= 0.97


@pytest.mark.parametrize("rounds", [(5, 5), (4, 8), (20, 20)])
@pytest.mark.parametrize("often", [0.0, 0.1])
def test_the_interval_of_the_typical_ratio_holds_it_in_93_of_100_runs(rounds, often):
    """Also where one round in ten of one run takes three times as long."""
    these, those = drawn(37, rounds, (0.05, 0.05), truth=1.3)
    these += np.log(3) * (np.random.default_rng(38).random(these.shape) < often)
    low, high = shift_interval(these, those)
    assert np.mean((low <= np.log(1.3)) & (high >= np.log(1.3))) >= 0.93


def test_the_smallest_detectable_change_is_seen_in_80_of_100_comparisons():
    """Of runs with the noise that it was computed from."""
    these, those = drawn(41, (6, 6), (0.1, 0.1))
    limits = [np.log(detectable(np.exp(a).tolist(), np.exp(b).tolist())) for a, b in zip(these, those, strict=True)]
    low, _ = shift_interval(these + np.median(limits), those)
    assert np.mean(low > 0) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("rounds", [(1, 5), (5, 2)])
def test_fewer_than_three_rounds_on_a_side_have_no_interval(rounds):
    """The ratio is told, and nothing about how sure it is."""
    found = unpaired_ratio([4.0] * rounds[0], [2.0] * rounds[1])
    assert (found.value, found.low, found.high) == (pytest.approx(2), None, None)
    assert unpaired_difference([4.0] * rounds[0], [2.0] * rounds[1]).low is None


@pytest.mark.parametrize(("these", "those"), [([], [1.0]), ([1.0], []), ([0.0, 1.0], [1.0]), ([1.0], [-1.0])])
def test_what_is_not_above_zero_has_no_ratio(these, those):
    """Nor has what is not there."""
    assert unpaired_ratio(these, those) is None


def test_figures_without_spread_are_as_sure_as_their_resolution():
    """Counts that are always the same are exact; a median known to three digits is not."""
    counts = unpaired_ratio([130.0] * 3, [1.0] * 3)
    assert (counts.low, counts.value, counts.high) == pytest.approx((130, 130, 130))
    rounded = unpaired_ratio([1.001] * 3, [1.0] * 3, step=1e-3)
    assert rounded.low < 1.001 < rounded.high
    # s = step / sqrt(12) on both sides, 4 degrees of freedom
    reach = 2.776 * 1e-3 / np.sqrt(12) * np.sqrt(2 / 3)
    assert np.log(rounded.high) - np.log(rounded.value) == pytest.approx(reach, rel=2e-4)


def test_differences_are_those_of_the_means():
    """Of shares, which may be 0."""
    found = unpaired_difference([0.0, 0.1, 0.2], [0.0, 0.0, 0.0])
    half = 4.303 * 0.1 / math.sqrt(3)  # Student's quantile with 2 degrees of freedom
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1 - half, 0.1 + half), rel=5e-4)
    assert unpaired_difference([], [1.0]) is None
