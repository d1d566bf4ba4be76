"""Intervals that hold together: the studentised range, and variances that are drawn towards each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.analysis.simultaneous import apart, pairs_of, range_quantile
from clientlab.analysis.typical import t_quantile


@pytest.mark.parametrize("degrees", [1, 3, 20, 1e4])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_of_two_values_the_range_is_that_of_students_t(degrees, confidence):
    """Divided by the root of 2."""
    students = float(t_quantile(degrees, (1 + confidence) / 2))
    assert range_quantile(2, degrees, confidence) / math.sqrt(2) == pytest.approx(students, rel=1e-6)


@pytest.mark.parametrize(
    ("count", "degrees", "printed"), [(3, 10, 3.88), (5, 2, 10.88), (8, 7, 5.82), (10, 20, 5.01), (20, 60, 5.24)]
)
def test_more_values_have_the_range_of_the_printed_tables(count, degrees, printed):
    """Upper 5 % points of the studentised range (Pearson and Hartley, Biometrika Tables for Statisticians, 1966)."""
    assert range_quantile(count, degrees, 0.95) == pytest.approx(printed, abs=0.006)


def test_pairs_that_vary_alike_lend_each_other_degrees_of_freedom():
    """Eight arms of four rounds, and their intervals are much narrower than those of each pair alone."""
    logs = np.random.default_rng(1).normal(0, 0.03, (8, 4))
    together, alone = pairs_of(logs), pairs_of(logs[:2])
    assert (together.pooled, alone.pooled) == (True, False)
    assert together.degrees[1, 0] > 3 * alone.degrees[1, 0]
    assert np.nanmedian(together.error[1:, 0]) == pytest.approx(0.03 * math.sqrt(2 / 4), rel=0.4)


def test_an_arm_that_varies_more_keeps_its_own_variance():
    """Its intervals are not those of the others."""
    logs = np.random.default_rng(2).normal(0, 0.01, (6, 8))
    logs[5] *= 10
    pairs = pairs_of(logs)
    gaps = np.sort(logs[5] - logs[0])
    assert pairs.error[5, 0] >= 0.9 * gaps[1:-1].std(ddof=1) / math.sqrt(6)
    assert pairs.error[5, 0] > 3 * pairs.error[1, 0]


def test_rows_without_two_columns_in_common_have_no_error():
    """Each of the others has."""
    logs = np.array([[0.0, 0.1, np.nan, np.nan], [0.1, 0.0, np.nan, 0.3], [np.nan, np.nan, 0.2, 0.1]])
    pairs = pairs_of(logs)
    assert pairs.rounds.tolist() == [[2, 2, 0], [2, 3, 1], [0, 1, 2]]
    assert np.isnan(pairs.error[0, 2])
    assert np.isnan(pairs.error[1, 2])
    assert pairs.error[0, 1] > 0


def test_pairs_that_share_no_arm_lend_each_other_degrees_of_freedom_too():
    """Of eight differences over four rounds; one alone has Student's interval, for the error of a median of four."""
    rows = list(np.random.default_rng(2).normal(0, 0.04, (8, 4)))
    together, (alone,) = apart(rows, 0.95), apart(rows[:1], 0.95)
    assert all(one.pooled for one in together)
    students = float(t_quantile(3, 0.975)) * float(rows[0].std(ddof=1)) / 2 * math.sqrt(1.192)
    assert (alone.pooled, alone.reach) == (False, pytest.approx(students))
    of_eight = float(t_quantile(3, 1 - 0.05 / 16)) * 0.04 / 2
    assert np.median([one.reach for one in together]) < 0.7 * of_eight


@pytest.mark.parametrize("pairs", [2, 8])
def test_their_intervals_hold_together(pairs):
    """Where one varies five times as much as the others: the truth is outside any of them in about 5 of 100 cases."""
    random = np.random.default_rng(3)
    spread = np.array([5.0] + [1.0] * (pairs - 1))[:, None] * 0.03
    missed = sum(
        any(abs(one.typical) > one.reach for one in apart(list(random.normal(0, spread, (pairs, 5))), 0.95))
        for _ in range(600)
    )
    assert missed / 600 < 0.08


def test_a_row_of_one_value_has_no_interval():
    """The others have theirs."""
    first, second = apart([np.array([0.1]), np.array([0.1, 0.2, 0.15])], 0.95)
    assert first is None
    assert second.typical == pytest.approx(0.15)
