"""Ratios paired by round: against scipy's t test, and how often the interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from clientlab.analysis.ratios import half_width, paired_ratio

DRAW = np.random.default_rng(11)


def by_round(figures) -> dict[int, float]:
    """Figures of rounds 1, 2, ..."""
    return dict(enumerate(figures, start=1))


@pytest.mark.parametrize("rounds", [3, 5, 12])
def test_value_and_interval_are_those_of_a_paired_t_test_of_logarithms(rounds):
    """As scipy's own test of the difference has them, computed from both columns."""
    these, those = DRAW.lognormal(1, 0.2, rounds), DRAW.lognormal(0, 0.2, rounds)
    interval = scipy.stats.ttest_rel(np.log(these), np.log(those)).confidence_interval(0.95)
    ratio = paired_ratio(by_round(these), by_round(those))
    assert ratio.value == pytest.approx(scipy.stats.gmean(these) / scipy.stats.gmean(those))
    assert (ratio.low, ratio.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))
    assert ratio.rounds == rounds


@pytest.mark.parametrize("rounds", [1, 2])
def test_fewer_than_three_rounds_have_no_interval(rounds):
    """The ratio is told, and nothing about how sure it is."""
    ratio = paired_ratio(by_round([4.0] * rounds), by_round([2.0] * rounds))
    assert (ratio.value, ratio.low, ratio.high, ratio.rounds) == (pytest.approx(2), None, None, rounds)


def test_only_rounds_that_both_have_are_paired():
    """A round in which one of the two failed tells nothing of their ratio."""
    ratio = paired_ratio({1: 2.0, 2: 100.0, 4: 8.0}, {1: 1.0, 3: 1.0, 4: 4.0})
    assert (ratio.value, ratio.rounds) == (pytest.approx(2), 2)
    assert paired_ratio({1: 2.0}, {2: 1.0}) is None
    assert paired_ratio({}, {}) is None


def test_the_ratio_of_a_strategy_to_itself_is_one():
    """With an interval of no width."""
    figures = by_round([1.0, 2.0, 3.0])
    ratio = paired_ratio(figures, figures)
    assert (ratio.value, ratio.low, ratio.high) == (1, 1, 1)


def test_the_other_way_round_is_the_inverse():
    """Who is named first makes no difference to what is known."""
    these, those = by_round(DRAW.lognormal(0, 0.3, 5)), by_round(DRAW.lognormal(0, 0.3, 5))
    one, other = paired_ratio(these, those), paired_ratio(those, these)
    assert (1 / other.value, 1 / other.high, 1 / other.low) == pytest.approx((one.value, one.low, one.high))


def test_what_a_round_does_to_both_cancels_out():
    """A machine that is three times as slow in one round widens nothing."""
    pace = np.array([1.0, 3.0, 0.5, 2.0])
    ratio = paired_ratio(by_round(pace * 1.5), by_round(pace))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_the_interval_holds_the_true_ratio_in_95_of_100_experiments(rounds):
    """2,000 simulated runs whose rounds each have a pace of their own; 93 to 97 %: four sampling errors."""
    truth, draw = 1.3, np.random.default_rng(31)
    pace, mine, its = draw.normal(0, 0.4, (3, 2000, rounds)) * np.array([1, 0.1, 0.1]).reshape(3, 1, 1)
    logs = (np.log(truth) + pace + mine) - (pace + its)
    held = np.abs(logs.mean(axis=1) - np.log(truth)) <= half_width(logs)
    assert 0.93 <= held.mean() <= 0.97


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_equal_arms_are_called_different_in_5_of_100_experiments(rounds):
    """2,000 simulated runs of two arms that are the same, give or take three sampling errors (1.5 %)."""
    logs = np.random.default_rng(37).normal(0, 0.05, (2000, rounds))
    assert np.mean(np.abs(logs.mean(axis=1)) > half_width(logs)) == pytest.approx(0.05, abs=0.015)
