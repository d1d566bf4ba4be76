"""Comparisons of several arms: reconciled levels, and moderated variances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.statistics.distributions import t_quantile
from clientlab.statistics.simultaneous import compare_arms, paired_ratios


def by_name(logs) -> dict[str, dict[int, float]]:
    """Return arm → round → figure from logarithms with a row per arm; NaN is a missing
    round.
    """
    return {
        f"arm {arm}": {
            number: math.exp(log)
            for number, log in enumerate(row)
            if not math.isnan(log)
        }
        for arm, row in enumerate(np.asarray(logs).tolist())
    }


def test_an_equal_arm_is_called_slower_than_the_fastest_in_at_most_5_of_100_runs():
    wrong = 0
    for logs in np.random.default_rng([8, 5]).normal(0, 0.03, (1000, 8, 5)):
        found = compare_arms(by_name(logs), 0.95)
        fastest = min(found.levels, key=found.levels.__getitem__)
        wrong += any(found.ratio(name, fastest).low > 1 for name in found.levels)
    assert wrong / 1000 <= 0.05


def test_ratios_of_arms_never_contradict_each_other():
    for logs in np.random.default_rng(5).standard_t(2, (100, 6, 3)):
        found = compare_arms(by_name(0.1 * logs), 0.95)
        order = sorted(found.levels, key=found.levels.__getitem__)
        ratios = [found.ratio(name, order[0]) for name in order]
        assert ratios[0].value == 1
        assert [one.value for one in ratios] == sorted(one.value for one in ratios)
        assert all(one.low <= one.value <= one.high for one in ratios)


def test_arms_are_compared_by_the_rounds_they_share():
    found = compare_arms(
        {"a": dict(enumerate([1, 1, 10, 1])), "b": {0: 1.2, 1: 1.2, 3: 1.2}}, 0.95
    )
    assert found.ratio("b", "a").value == pytest.approx(1.2)
    assert found.ratio("b", "a").rounds == 3


def test_arms_that_share_no_round_are_compared_by_their_medians():
    series = [{1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, {3: 8.0}, {3: 16.0, 4: 16.0}]
    found = compare_arms(
        {str(place): figures for place, figures in enumerate(series)}, 0.95
    )
    assert list(found.levels.values()) == pytest.approx(
        [0.0, 0.693, 2.079, 2.773], abs=1e-3
    )
    assert found.ratio("0", "2") is None
    assert found.ratio("0", "1").interval is None
    assert found.ratio("0", "1").rounds == 2


def test_pairs_with_similar_variances_share_degrees_of_freedom():
    logs = np.random.default_rng(1).normal(0, 0.03, (8, 4))
    together = compare_arms(by_name(logs), 0.95)
    alone = compare_arms(by_name(logs[:2]), 0.95)
    assert together.pooled
    assert alone.pooled is False
    assert together.degrees[1, 0] > 3 * alone.degrees[1, 0]
    assert np.nanmedian(together.errors[1:, 0]) == pytest.approx(
        0.03 * math.sqrt(2 / 4), rel=0.4
    )


def test_an_arm_that_varies_more_keeps_its_own_variance():
    logs = np.random.default_rng(2).normal(0, 0.01, (6, 8))
    logs[5] *= 10
    errors = compare_arms(by_name(logs), 0.95).errors
    gaps = np.sort(logs[5] - logs[0])
    assert errors[5, 0] >= 0.9 * gaps[1:-1].std(ddof=1) / math.sqrt(6)
    assert errors[5, 0] > 3 * errors[1, 0]


def test_unrelated_pairs_also_share_degrees_of_freedom():
    """A single pair has Student's interval, for the error of a median of four."""
    rows = np.random.default_rng(2).normal(0, 0.04, (8, 4))
    pairs = [
        (figures, dict.fromkeys(figures, 1.0)) for figures in by_name(rows).values()
    ]
    together = paired_ratios(pairs, 0.95)
    (alone,) = paired_ratios(pairs[:1], 0.95)
    assert alone.pooled is False
    assert {one.pooled for one in together} == {True}
    students = (
        float(t_quantile(3, 0.975)) * float(rows[0].std(ddof=1)) / 2 * math.sqrt(1.192)
    )
    assert math.log(alone.high / alone.value) == pytest.approx(students)
    of_eight = float(t_quantile(3, 1 - 0.05 / 16)) * 0.04 / 2
    assert (
        np.median([math.log(one.high / one.value) for one in together]) < 0.7 * of_eight
    )


@pytest.mark.parametrize("pairs", [2, 8])
def test_the_intervals_of_unrelated_pairs_hold_together(pairs):
    """One pair varies five times as much as the others."""
    draw = np.random.default_rng(3)
    spread = np.array([5.0] + [1.0] * (pairs - 1))[:, None] * 0.03
    missed = 0
    for _ in range(600):
        rows = by_name(draw.normal(0, spread, (pairs, 5)))
        found = paired_ratios(
            [(figures, dict.fromkeys(figures, 1.0)) for figures in rows.values()], 0.95
        )
        missed += any(not one.low <= 1 <= one.high for one in found)
    assert missed / 600 < 0.08


def test_a_pair_with_too_few_rounds_has_no_interval():
    one = {1: 1.0, 2: 1.1, 3: 1.2}
    none, short, whole = paired_ratios(
        [({1: 1.0}, {2: 1.0}), ({1: 3.0}, {1: 1.0}), (one, one)], 0.95
    )
    assert none is None
    assert short.value == pytest.approx(3)
    assert short.interval is None
    assert whole.interval == pytest.approx((1, 1))
