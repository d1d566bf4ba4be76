"""Typical values, their ratios and spreads: the formulas of their intervals, and how
often these contain the truth.

The sampling error of a share near 95 % is 0.5 % in 2,000 simulations. `scripts/bench
truth` draws ten times as many.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.simulated_runs import MODELS, until_precise
from scipy import stats

from clientlab.statistics.ratios import (
    expected_width,
    paired_ratio,
    predicted_ratio,
    shift_interval,
    spread_ratio,
    typical,
    typical_estimate,
    typical_interval,
    unpaired_difference,
    unpaired_ratio,
)

RUNS = 2000
LEAST = 0.93


def by_round(figures) -> dict[int, float]:
    """Return figures of rounds 1, 2, ..."""
    return dict(enumerate(figures, start=1))


def gaps(model: str, rounds: int, seed: int):
    """Return logarithms of the ratio of two arms that are typically equal, with the
    shape (runs, rounds).
    """
    draw = np.random.default_rng(seed)
    logs = MODELS[model](draw, (RUNS, 2, rounds))
    return logs[:, 1] - logs[:, 0]


def coverage(lows, highs, truth: float = 0.0) -> float:
    """Return the share of intervals that contain the truth."""
    is_above_low = np.asarray(lows) <= truth
    is_below_high = np.asarray(highs) >= truth
    return np.mean(is_above_low & is_below_high)


def two_runs(draw, rounds: tuple[int, int]):
    """Return normal figures of two runs with so many rounds."""
    these = draw.normal(size=rounds[0])
    those = draw.normal(size=rounds[1])
    return these, those


@pytest.mark.parametrize("rounds", [3, 7, 20])
@pytest.mark.parametrize("model", MODELS)
def test_the_interval_contains_the_typical_ratio_in_93_of_100_runs(model, rounds):
    low, high = typical_interval(gaps(model, rounds, 101), 0.95)
    assert coverage(low, high) >= LEAST


@pytest.mark.parametrize("model", MODELS)
def test_runs_that_end_at_a_precision_contain_it_as_often(model):
    low, high = until_precise(gaps(model, 40, 103), 0.03)
    assert coverage(low, high) >= LEAST


@pytest.mark.parametrize("rounds", [3, 4])
def test_few_rounds_have_their_median_and_the_interval_of_a_paired_t_test(rounds):
    draw = np.random.default_rng(11)
    these = draw.lognormal(1, 0.2, rounds)
    those = draw.lognormal(0, 0.2, rounds)
    ratio = paired_ratio(by_round(these), by_round(those))
    logs = np.log(these / those)
    test = stats.ttest_rel(np.log(these), np.log(those))
    expected = test.confidence_interval(0.95)
    low = min(expected.low, *logs)
    high = max(expected.high, *logs)
    assert np.log(ratio.value) == pytest.approx(np.median(logs))
    assert np.log(ratio.low) == pytest.approx(low)
    assert np.log(ratio.high) == pytest.approx(high)
    assert ratio.rounds == rounds


@pytest.mark.parametrize(("rounds", "cut"), [(8, 1), (16, 2), (31, 3)])
def test_more_rounds_have_the_interval_of_their_trimmed_mean(rounds, cut):
    values = np.random.default_rng(3).normal(size=rounds)
    kept = np.sort(values)[cut:-cut]
    winsorized = np.clip(values, kept[0], kept[-1])
    kept_share = 1 - 2 * cut / rounds
    error = winsorized.std(ddof=1) / kept_share / np.sqrt(rounds)
    half = stats.t.ppf(0.975, len(kept) - 1) * error
    low, high = typical_interval(values, 0.95)
    assert float(typical(values)) == pytest.approx(kept.mean())
    assert (low + high) / 2 == pytest.approx(kept.mean())
    assert (high - low) / 2 == pytest.approx(half, rel=0.12)


@pytest.mark.parametrize("rounds", [3, 8, 25])
def test_the_expected_width_is_that_of_normal_values(rounds):
    values = np.random.default_rng(5).normal(size=(RUNS, rounds))
    low, high = typical_interval(values, 0.95)
    expected = expected_width(rounds, 0.95)
    assert np.mean(high - low) / 2 == pytest.approx(expected, rel=0.15)


def test_only_rounds_of_both_arms_are_paired():
    """Two rounds have no interval. The pace of a round cancels out."""
    ratio = paired_ratio({1: 2.0, 2: 100.0, 4: 8.0}, {1: 1.0, 3: 1.0, 4: 4.0})
    assert ratio.value == pytest.approx(2)
    assert ratio.interval is None
    assert ratio.rounds == 2
    assert paired_ratio({1: 2.0}, {2: 1.0}) is None
    pace = np.array([1.0, 3.0, 0.5, 2.0])
    ratio = paired_ratio(by_round(pace * 1.5), by_round(pace))
    assert ratio.value == pytest.approx(1.5)
    assert ratio.interval == pytest.approx((1.5, 1.5))


def test_a_typical_figure_may_be_zero():
    found = typical_estimate([0.0, 0.0, 0.3])
    assert found.low < found.value == 0.0
    assert found.high >= 0.3
    assert typical_estimate([1.0, 2.0, 4.0]).value == pytest.approx(2.0)


@pytest.mark.parametrize("rounds", [6, 12])
@pytest.mark.parametrize(
    "model", ["clean", "heavy tails", "outliers in one arm", "outliers in all arms"]
)
def test_the_interval_of_a_ratio_of_spreads_contains_it_in_93_of_100_runs(
    model, rounds
):
    many = MODELS[model](np.random.default_rng(0), (200_000, 2, 2))
    changes = np.abs(many[:, :, 0] - many[:, :, 1])
    first, second = np.median(changes, axis=0)
    logs = MODELS[model](np.random.default_rng(20), (600, 2, rounds))
    ratios = []
    for these, those in np.exp(logs).tolist():
        ratios.append(spread_ratio(by_round(those), by_round(these)))
    lows = [ratio.low for ratio in ratios]
    highs = [ratio.high for ratio in ratios]
    assert coverage(lows, highs, second / first) >= LEAST


def test_a_spread_needs_two_rounds_that_differ_and_its_interval_six():
    these = {1: 1.0, 2: 2.0, 3: 4.0}
    those = {1: 1.0, 2: 1.5, 3: 2.25}
    ratio = spread_ratio(these, those)
    assert ratio.value == pytest.approx(np.log(2) / np.log(1.5))
    assert ratio.interval is None
    assert ratio.rounds == 3
    assert spread_ratio({1: 1.0}, {1: 2.0}) is None
    assert spread_ratio(these, dict.fromkeys(these, 1.0)) is None
    step = by_round([1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    rising = by_round(np.arange(1.0, 7.0))
    assert spread_ratio(rising, step).interval is None


@pytest.mark.parametrize("rounds", [(3, 3), (5, 3), (3, 6)])
def test_few_rounds_of_two_runs_have_the_interval_of_welchs_test(rounds):
    draw = np.random.default_rng(3)
    these = draw.lognormal(1, 0.2, rounds[0])
    those = draw.lognormal(0, 0.4, rounds[1])
    test = stats.ttest_ind(np.log(these), np.log(those), equal_var=False)
    expected = test.confidence_interval(0.99)
    half = (expected.high - expected.low) / 2
    middle = np.median(np.log(these[:, None] / those))
    found = unpaired_ratio(these.tolist(), those.tolist(), confidence=0.99)
    assert math.log(found.value) == pytest.approx(middle)
    assert math.log(found.low) == pytest.approx(middle - half)
    assert math.log(found.high) == pytest.approx(middle + half)


@pytest.mark.parametrize(
    ("rounds", "level"),
    [
        ((4, 4), 0.95),
        ((8, 8), 0.999),
        ((6, 11), 0.95),
        ((20, 20), 0.99),
        ((3, 51), 0.995),
        ((120, 4), 0.999),
    ],
)
def test_more_rounds_of_two_runs_have_the_interval_of_the_rank_sum_test(rounds, level):
    """A shift is inside if the exact test, at 0.7 of the permitted error, does not
    reject it.
    """
    these, those = two_runs(np.random.default_rng(7), rounds)
    low, high = shift_interval(these, those, confidence=level)
    error = 0.7 * (1 - level)

    def p_value(shift: float) -> float:
        test = stats.mannwhitneyu(these - shift, those, method="exact")
        return test.pvalue

    assert p_value(low + 1e-9) > error
    assert p_value(low - 1e-9) <= error
    assert p_value(high - 1e-9) > error
    assert p_value(high + 1e-9) <= error


@pytest.mark.parametrize("rounds", [(3, 51), (3, 2_000), (70, 3), (60, 70)])
def test_no_interval_is_turned_around(rounds):
    """However few rounds one run has, and however many intervals have to
    hold together.
    """
    these, those = two_runs(np.random.default_rng(7), rounds)
    shift = np.median(these[:, None] - those)
    for level in (0.95, 0.99, 0.995, 0.999, 0.9999):
        low, high = shift_interval(these, those, confidence=level)
        assert low <= shift <= high


@pytest.mark.parametrize("rounds", [(5, 5), (4, 8), (20, 20)])
@pytest.mark.parametrize("often", [0.0, 0.1])
def test_the_interval_of_the_typical_ratio_of_two_runs_contains_it_in_93_of_100(
    rounds, often
):
    """Outlying rounds of one run take three times as long."""
    draw = np.random.default_rng(37)
    these = draw.normal(0, 0.05, (RUNS, rounds[0]))
    those = draw.normal(0, 0.05, (RUNS, rounds[1]))
    is_outlier = np.random.default_rng(38).random(these.shape) < often
    these[is_outlier] += np.log(3)
    low, high = shift_interval(these, those)
    assert coverage(low, high) >= LEAST


def test_equal_runs_are_where_earlier_ones_predict_in_95_of_100_cases():
    """However much runs differ as wholes."""
    logs = np.random.default_rng(41).normal(0, 0.05, (RUNS, 6))
    ratios = [
        predicted_ratio(last, earlier) for *earlier, last in np.exp(logs).tolist()
    ]
    lows = [ratio.low for ratio in ratios]
    highs = [ratio.high for ratio in ratios]
    assert coverage(lows, highs, 1.0) == pytest.approx(0.95, abs=0.01)
    slower = predicted_ratio(2.0, [1.0, 1.1, 0.9, 1.0, 1.05])
    assert slower.low > 1.5


@pytest.mark.parametrize("rounds", [(1, 5), (5, 2)])
def test_fewer_than_three_rounds_of_a_run_have_no_interval(rounds):
    these = [4.0] * rounds[0]
    those = [2.0] * rounds[1]
    ratio = unpaired_ratio(these, those)
    assert ratio.value == pytest.approx(2)
    assert ratio.interval is None
    assert unpaired_difference(these, those).interval is None


def test_runs_without_rounds_and_figures_of_zero_have_no_ratio():
    assert unpaired_ratio([], [1.0]) is None
    assert unpaired_ratio([1.0], []) is None
    assert unpaired_ratio([0.0, 1.0], [1.0]) is None
    assert unpaired_ratio([1.0], [-1.0]) is None
    assert unpaired_difference([], [1.0]) is None


def test_the_interval_of_figures_without_spread_is_their_resolution():
    """Constant counts are exact; a median known to three digits is not."""
    counts = unpaired_ratio([130.0] * 3, [1.0] * 3)
    assert counts.value == pytest.approx(130)
    assert counts.interval == pytest.approx((130, 130))
    rounded = unpaired_ratio([1.001] * 3, [1.0] * 3, step=1e-3)
    deviation = 1e-3 / np.sqrt(12)  # of both sides, with 4 degrees of freedom
    half = 2.776 * deviation * np.sqrt(2 / 3)
    assert np.log(rounded.high / rounded.value) == pytest.approx(half, rel=2e-4)


def test_a_difference_is_that_of_the_means():
    found = unpaired_difference([0.0, 0.1, 0.2], [0.0, 0.0, 0.0])
    half = 4.303 * 0.1 / math.sqrt(3)  # Student's quantile with 2 degrees of freedom
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1 - half, rel=5e-4)
    assert found.high == pytest.approx(0.1 + half, rel=5e-4)
