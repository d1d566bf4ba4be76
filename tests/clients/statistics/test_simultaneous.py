"""Comparisons of several arms: reconciled levels, and moderated variances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.statistics.distributions import range_quantile, t_quantile
from clientlab.statistics.simultaneous import compare_arms, paired_ratios


def by_name(logs) -> dict[str, dict[int, float]]:
    """Return arm → round → figure from logarithms with a row per arm."""
    return {
        f"arm {arm}": dict(enumerate(figures))
        for arm, figures in enumerate(np.exp(logs).tolist())
    }


def beside_1(figures: dict[int, float]):
    """Return a pair of figures by round: these, and 1 in each round."""
    return figures, dict.fromkeys(figures, 1.0)


def test_an_equal_arm_is_called_slower_than_the_fastest_in_at_most_5_of_100_runs():
    draw = np.random.default_rng([8, 5])
    wrong = 0
    for logs in draw.normal(0, 0.03, (1000, 8, 5)):
        found = compare_arms(by_name(logs), 0.95)
        fastest = min(found.levels, key=found.levels.get)
        ratios = [found.ratio(name, fastest) for name in found.levels]
        wrong += any(ratio.low > 1 for ratio in ratios)
    assert wrong / 1000 <= 0.05


def test_ratios_of_arms_never_contradict_each_other():
    draw = np.random.default_rng(5)
    for logs in draw.standard_t(2, (100, 6, 3)):
        found = compare_arms(by_name(0.1 * logs), 0.95)
        order = sorted(found.levels, key=found.levels.get)
        ratios = [found.ratio(name, order[0]) for name in order]
        values = [ratio.value for ratio in ratios]
        assert values[0] == 1
        assert values == sorted(values)
        for ratio in ratios:
            assert ratio.low <= ratio.value <= ratio.high


def test_arms_are_compared_by_the_rounds_they_share():
    first = {0: 1, 1: 1, 2: 10, 3: 1}
    second = {0: 1.2, 1: 1.2, 3: 1.2}
    found = compare_arms({"a": first, "b": second}, 0.95)
    ratio = found.ratio("b", "a")
    assert ratio.value == pytest.approx(1.2)
    assert ratio.rounds == 3


def test_arms_that_share_no_round_are_compared_by_their_medians():
    series = {
        "a": {1: 1.0, 2: 1.0},
        "b": {1: 2.0, 2: 2.0},
        "c": {3: 8.0},
        "d": {3: 16.0, 4: 16.0},
    }
    found = compare_arms(series, 0.95)
    levels = np.exp(list(found.levels.values()))
    assert levels == pytest.approx([1.0, 2.0, 8.0, 16.0])
    assert found.ratio("a", "c") is None
    assert found.ratio("a", "b").interval is None
    assert found.ratio("a", "b").rounds == 2


def reach(ratio) -> float:
    """Return half the width of the interval, in logarithms."""
    return math.log(ratio.high / ratio.value)


def test_pairs_with_similar_variances_share_degrees_of_freedom():
    logs = np.random.default_rng(1).normal(0, 0.03, (8, 4))
    together = compare_arms(by_name(logs), 0.95)
    alone = compare_arms(by_name(logs[:2]), 0.95).ratio("arm 1", "arm 0")
    ratios = [together.ratio(f"arm {arm}", "arm 0") for arm in range(1, 8)]
    assert (ratios[0].pooled, alone.pooled) == (True, False)
    error = 0.03 * math.sqrt(2 / 4)
    without_sharing = range_quantile(8, 3, 0.95) / math.sqrt(2) * error
    assert np.median([reach(ratio) for ratio in ratios]) < 0.75 * without_sharing


def test_an_arm_that_varies_more_keeps_its_own_variance():
    logs = np.random.default_rng(2).normal(0, 0.01, (6, 8))
    logs[5] *= 10
    compared = compare_arms(by_name(logs), 0.95)
    varying, steady = (compared.ratio(name, "arm 0") for name in ("arm 5", "arm 1"))
    own_error = np.sort(logs[5] - logs[0])[1:-1].std(ddof=1) / math.sqrt(6)
    assert reach(varying) >= 0.9 * range_quantile(6, 1000, 0.95) / math.sqrt(2) * (
        own_error
    )
    assert reach(varying) > 3 * reach(steady)


def test_unrelated_pairs_also_share_degrees_of_freedom():
    """A single pair has Student's interval, for the error of a median of four."""
    rows = np.random.default_rng(2).normal(0, 0.04, (8, 4))
    pairs = [
        (figures, dict.fromkeys(figures, 1.0)) for figures in by_name(rows).values()
    ]
    together, (alone,) = paired_ratios(pairs, 0.95), paired_ratios(pairs[:1], 0.95)
    assert (alone.pooled, {one.pooled for one in together}) == (False, {True})
    students = (
        float(t_quantile(3, 0.975)) * float(rows[0].std(ddof=1)) / 2 * math.sqrt(1.192)
    )
    assert reach(alone) == pytest.approx(students)
    of_eight = float(t_quantile(3, 1 - 0.05 / 16)) * 0.04 / 2
    assert np.median([reach(ratio) for ratio in together]) < 0.7 * of_eight


@pytest.mark.parametrize("pairs", [2, 8])
def test_the_intervals_of_unrelated_pairs_hold_together(pairs):
    """One pair varies five times as much as the others."""
    draw = np.random.default_rng(3)
    spread = np.full((pairs, 1), 0.03)
    spread[0] *= 5
    missed = 0
    for _ in range(600):
        logs = draw.normal(0, spread, (pairs, 5))
        of_pairs = [beside_1(figures) for figures in by_name(logs).values()]
        ratios = paired_ratios(of_pairs, 0.95)
        missed += not all(ratio.low <= 1 <= ratio.high for ratio in ratios)
    assert missed / 600 < 0.08


def test_a_pair_with_too_few_rounds_has_no_interval():
    apart = ({1: 1.0}, {2: 1.0})
    one_round = ({1: 3.0}, {1: 1.0})
    three_rounds = ({1: 1.0, 2: 1.1, 3: 1.2},) * 2
    pairs = [apart, one_round, three_rounds]
    none, short, whole = paired_ratios(pairs, 0.95)
    assert none is None
    assert short.value == pytest.approx(3)
    assert short.interval is None
    assert whole.interval == pytest.approx((1, 1))
