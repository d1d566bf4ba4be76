"""Ratios paired by round: the median over rounds, and the interval of few rounds against the t test's."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.ratios import paired_ratio

DRAW = np.random.default_rng(11)


def by_round(figures) -> dict[int, float]:
    """Figures of rounds 1, 2, ..."""
    return dict(enumerate(figures, start=1))


@pytest.mark.parametrize(("rounds", "quantile"), [(3, 4.303), (4, 3.182)])
def test_the_value_is_the_median_ratio_and_few_rounds_have_the_interval_of_a_paired_t_test(rounds, quantile):
    """The interval's ends lie around the mean difference of logarithms, at the tabulated quantile of t."""
    these, those = DRAW.lognormal(1, 0.2, rounds), DRAW.lognormal(0, 0.2, rounds)
    logs = np.log(these) - np.log(those)
    half = quantile * logs.std(ddof=1) / np.sqrt(rounds)
    ratio = paired_ratio(by_round(these), by_round(those))
    assert ratio.value == pytest.approx(np.exp(np.median(np.log(these / those))))
    assert (ratio.low, ratio.high) == pytest.approx(tuple(np.exp([logs.mean() - half, logs.mean() + half])), rel=2e-4)
    assert ratio.rounds == rounds


def test_one_outlying_round_hardly_moves_the_ratio():
    """The mean of these logarithms would be 26 % higher."""
    steady = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 10.0]
    ratio = paired_ratio(by_round(steady), by_round([1.0] * 10))
    assert ratio.value == pytest.approx(1.0, abs=0.01)
    assert ratio.high < 1.05


def test_only_rounds_that_both_have_are_paired():
    """A round in which one of the two failed tells nothing of their ratio. Two rounds have no interval."""
    ratio = paired_ratio({1: 2.0, 2: 100.0, 4: 8.0}, {1: 1.0, 3: 1.0, 4: 4.0})
    assert (ratio.value, ratio.low, ratio.high, ratio.rounds) == (pytest.approx(2), None, None, 2)
    assert paired_ratio({1: 2.0}, {2: 1.0}) is None
    assert paired_ratio({}, {}) is None


def test_what_a_round_does_to_both_cancels_out():
    """A machine that is three times as slow in one round widens nothing."""
    pace = np.array([1.0, 3.0, 0.5, 2.0])
    ratio = paired_ratio(by_round(pace * 1.5), by_round(pace))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.5, 1.5, 1.5))
