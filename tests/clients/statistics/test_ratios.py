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
    logs = MODELS[model](np.random.default_rng(seed), (RUNS, 2, rounds))
    return logs[:, 1] - logs[:, 0]


@pytest.mark.parametrize("rounds", [3, 7, 20])
@pytest.mark.parametrize("model", MODELS)
def test_the_interval_contains_the_typical_ratio_in_93_of_100_runs(model, rounds):
    low, high = typical_interval(gaps(model, rounds, 101), 0.95)
    assert np.mean((low <= 0) & (high >= 0)) >= LEAST


@pytest.mark.parametrize("model", MODELS)
def test_runs_that_end_at_a_precision_contain_it_as_often(model):
    low, high = until_precise(gaps(model, 40, 103), 0.03)
    assert np.mean((low <= 0) & (high >= 0)) >= LEAST


@pytest.mark.parametrize("rounds", [3, 4])
def test_few_rounds_have_their_median_and_the_interval_of_a_paired_t_test(rounds):
    draw = np.random.default_rng(11)
    these = draw.lognormal(1, 0.2, rounds)
    those = draw.lognormal(0, 0.2, rounds)
    ratio = paired_ratio(by_round(these), by_round(those))
    logs = np.log(these / those)
    expected = stats.ttest_rel(np.log(these), np.log(those)).confidence_interval(0.95)
    assert ratio.value == pytest.approx(np.exp(np.median(logs)))
    assert ratio.interval == pytest.approx(
        tuple(np.exp([min(expected.low, *logs), max(expected.high, *logs)]))
    )
    assert ratio.rounds == rounds


@pytest.mark.parametrize(("rounds", "cut"), [(8, 1), (16, 2), (31, 3)])
def test_more_rounds_have_the_interval_of_their_trimmed_mean(rounds, cut):
    values = np.random.default_rng(3).normal(size=rounds)
    kept = np.sort(values)[cut:-cut]
    drawn_in = np.sort(values)
    drawn_in[:cut] = kept[0]
    drawn_in[-cut:] = kept[-1]
    error = drawn_in.std(ddof=1) / (1 - 2 * cut / rounds) / np.sqrt(rounds)
    low, high = typical_interval(values, 0.95)
    assert (
        (low + high) / 2
        == pytest.approx(kept.mean())
        == pytest.approx(float(typical(values)))
    )
    assert (high - low) / 2 == pytest.approx(
        stats.t.ppf(0.975, len(kept) - 1) * error, rel=0.12
    )


@pytest.mark.parametrize("rounds", [3, 8, 25])
def test_the_expected_width_is_that_of_normal_values(rounds):
    low, high = typical_interval(
        np.random.default_rng(5).normal(size=(RUNS, rounds)), 0.95
    )
    assert np.mean(high - low) / 2 == pytest.approx(
        expected_width(rounds, 0.95), rel=0.15
    )


def test_only_rounds_of_both_arms_are_paired():
    """Two rounds have no interval. The pace of a round cancels out."""
    ratio = paired_ratio({1: 2.0, 2: 100.0, 4: 8.0}, {1: 1.0, 3: 1.0, 4: 4.0})
    assert ratio.value == pytest.approx(2)
    assert ratio.low is None
    assert ratio.high is None
    assert ratio.rounds == 2
    assert paired_ratio({1: 2.0}, {2: 1.0}) is None
    pace = np.array([1.0, 3.0, 0.5, 2.0])
    ratio = paired_ratio(by_round(pace * 1.5), by_round(pace))
    assert (ratio.value, *ratio.interval) == pytest.approx((1.5, 1.5, 1.5))


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
    one, other = np.median(np.abs(many[:, :, 0] - many[:, :, 1]), axis=0)
    runs = np.exp(MODELS[model](np.random.default_rng(20), (600, 2, rounds)))
    found = [spread_ratio(by_round(run[1]), by_round(run[0])) for run in runs.tolist()]
    assert np.mean([ratio.low <= other / one <= ratio.high for ratio in found]) >= LEAST


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
    assert spread_ratio(by_round(np.arange(1.0, 7.0)), step).interval is None


@pytest.mark.parametrize("rounds", [(3, 3), (5, 3), (3, 6)])
def test_few_rounds_of_two_runs_have_the_interval_of_welchs_test(rounds):
    draw = np.random.default_rng(3)
    these = draw.lognormal(1, 0.2, rounds[0])
    those = draw.lognormal(0, 0.4, rounds[1])
    expected = stats.ttest_ind(
        np.log(these), np.log(those), equal_var=False
    ).confidence_interval(0.99)
    middle = float(np.median(np.log(these[:, None] / those)))
    half = (expected.high - expected.low) / 2
    found = unpaired_ratio(these.tolist(), those.tolist(), confidence=0.99)
    assert found.value == pytest.approx(math.exp(middle))
    assert found.interval == pytest.approx(
        (math.exp(middle - half), math.exp(middle + half))
    )


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
    draw = np.random.default_rng(7)
    these = draw.normal(size=rounds[0])
    those = draw.normal(size=rounds[1])
    low, high = shift_interval(these, those, confidence=level)
    error = 0.7 * (1 - level)
    for inside, end in ((1, low), (-1, high)):
        test = [
            stats.mannwhitneyu(
                these - end + side * inside * 1e-9, those, method="exact"
            )
            for side in (-1, 1)
        ]
        assert test[0].pvalue > error >= test[1].pvalue


@pytest.mark.parametrize("rounds", [(3, 51), (3, 2_000), (70, 3), (60, 70)])
def test_no_interval_is_turned_around(rounds):
    """However few rounds one run has, and however many intervals have to
    hold together.
    """
    draw = np.random.default_rng(7)
    these = draw.normal(size=rounds[0])
    those = draw.normal(size=rounds[1])
    for level in (0.95, 0.99, 0.995, 0.999, 0.9999):
        low, high = shift_interval(these, those, confidence=level)
        assert low <= np.median(these[:, None] - those) <= high


@pytest.mark.parametrize("rounds", [(5, 5), (4, 8), (20, 20)])
@pytest.mark.parametrize("often", [0.0, 0.1])
def test_the_interval_of_the_typical_ratio_of_two_runs_contains_it_in_93_of_100(
    rounds, often
):
    """Outlying rounds of one run take three times as long."""
    draw = np.random.default_rng(37)
    these, those = (draw.normal(0, 0.05, (RUNS, count)) for count in rounds)
    these += np.log(3) * (np.random.default_rng(38).random(these.shape) < often)
    low, high = shift_interval(these, those)
    assert np.mean((low <= 0) & (high >= 0)) >= LEAST


def test_equal_runs_are_where_earlier_ones_predict_in_95_of_100_cases():
    """However much runs differ as wholes."""
    runs = np.exp(np.random.default_rng(41).normal(0, 0.05, (RUNS, 6)))
    found = [predicted_ratio(last, earlier) for *earlier, last in runs.tolist()]
    assert np.mean([one.low < 1 < one.high for one in found]) == pytest.approx(
        0.95, abs=0.01
    )
    assert predicted_ratio(2.0, [1.0, 1.1, 0.9, 1.0, 1.05]).low > 1.5


def test_fewer_than_three_rounds_of_a_run_have_no_interval_and_zero_has_no_ratio():
    for rounds in ((1, 5), (5, 2)):
        found = unpaired_ratio([4.0] * rounds[0], [2.0] * rounds[1])
        assert found.value == pytest.approx(2)
        assert found.interval is None
        assert (
            unpaired_difference([4.0] * rounds[0], [2.0] * rounds[1]).interval is None
        )
    for these, those in (
        ([], [1.0]),
        ([1.0], []),
        ([0.0, 1.0], [1.0]),
        ([1.0], [-1.0]),
    ):
        assert unpaired_ratio(these, those) is None
    assert unpaired_difference([], [1.0]) is None


def test_the_interval_of_figures_without_spread_is_their_resolution():
    """Constant counts are exact; a median known to three digits is not."""
    counts = unpaired_ratio([130.0] * 3, [1.0] * 3)
    assert (counts.low, counts.value, counts.high) == pytest.approx((130, 130, 130))
    rounded = unpaired_ratio([1.001] * 3, [1.0] * 3, step=1e-3)
    # s = step / sqrt(12) on both sides, 4 degrees of freedom
    reach = 2.776 * 1e-3 / np.sqrt(12) * np.sqrt(2 / 3)
    assert np.log(rounded.high) - np.log(rounded.value) == pytest.approx(
        reach, rel=2e-4
    )


def test_a_difference_is_that_of_the_means():
    found = unpaired_difference([0.0, 0.1, 0.2], [0.0, 0.0, 0.0])
    half = 4.303 * 0.1 / math.sqrt(3)  # Student's quantile with 2 degrees of freedom
    assert (found.value, found.low, found.high) == pytest.approx(
        (0.1, 0.1 - half, 0.1 + half), rel=5e-4
    )
