"""Standings: who is compared with whom, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.standings import GroupKey, TrialCost, standings, typical_levels

GROUP = GroupKey("workload", "aiohttp", "direct")


def rounds(strategy: str, *seconds: float, errors: int = 0, group=GROUP, first: int = 1) -> list[TrialCost]:
    """A strategy's figures, round by round."""
    return [TrialCost(strategy, group, number, value, errors) for number, value in enumerate(seconds, start=first)]


def ranked(*parts: list[TrialCost], group=GROUP):
    """The standings of one group."""
    return standings([figures for part in parts for figures in part])[group]


def test_strategies_are_ranked_by_their_median_round():
    """One slow round does not make a strategy slow."""
    table = ranked(rounds("slow", 3, 3, 3), rounds("fast", 1, 1, 99), rounds("middle", 2, 2, 2))
    assert [row.name for row in table] == ["fast", "middle", "slow"]
    assert [row.fastest for row in table] == [True, False, False]
    assert [row.rounds for row in table] == [3, 3, 3]


def costs(logs) -> list[TrialCost]:
    """A run of arms whose logarithms of seconds are those; shape (arms, rounds)."""
    return [one for arm, row in enumerate(np.exp(logs).tolist()) for one in rounds(f"arm {arm}", *row)]


def test_of_equal_arms_none_is_surely_slower_than_the_fastest():
    """In 1,000 runs, of 5 % of which one may be; the fastest of many equal arms always looks faster than the rest."""
    logs = np.random.default_rng([8, 5]).normal(0, 0.03, (1000, 8, 5))
    wrong = [any(row.ratio.low > 1 for row in ranked(costs(run))) for run in logs]
    assert np.mean(wrong) <= 0.05


def test_no_arm_without_errors_has_a_ratio_below_1_to_the_fastest():
    """Of three rounds of equal arms, each may be faster than the next in two: the ranking is free of such circles."""
    for run in np.random.default_rng(5).standard_t(2, (100, 6, 3)):
        table = ranked(costs(0.1 * run))
        ratios = [row.ratio.value for row in table]
        assert table[0].fastest
        assert min(ratios) >= 1 - 1e-12
        assert ratios == sorted(ratios)
        assert all(row.ratio.low <= row.ratio.value <= row.ratio.high for row in table)


def test_arms_that_missed_rounds_are_ranked_by_the_rounds_they_share():
    """A slow round that one of them missed does not make the other slow."""
    table = ranked(rounds("a", 1, 1, 10, 1), rounds("b", 1.2, 1.2), rounds("b", 1.2, first=4))
    assert [row.name for row in table] == ["a", "b"]
    assert table[1].ratio.value == pytest.approx(1.2)


def test_ratios_are_to_the_baseline_as_well_in_its_own_group():
    """Whatever the fastest is; other groups have none."""
    elsewhere = ("workload", "aiohttp", "proxy")
    trials = [*rounds("a", 1, 2), *rounds("b", 2, 4), *rounds("b", 3, 3, group=elsewhere)]
    found = standings(trials, baseline=(GROUP, "b"))
    assert [(row.name, row.to_baseline.value) for row in found[GROUP]] == [("a", pytest.approx(0.5)), ("b", 1)]
    assert [row.to_baseline for row in found[elsewhere]] == [None]


def test_a_strategy_with_errors_is_never_the_reference():
    """It stays where its speed puts it, and its ratio is below 1."""
    table = ranked(rounds("fails fast", 1, 1, 1, errors=2), rounds("sound", 4, 4, 4), rounds("slow", 8, 8, 8))
    assert [(row.name, row.fastest, row.errors) for row in table] == [
        ("fails fast", False, 6), ("sound", True, 0), ("slow", False, 0),
    ]  # fmt: skip
    assert [row.ratio.value for row in table] == pytest.approx([0.25, 1, 2])


def test_levels_of_arms_that_have_no_round_in_common_are_those_of_their_medians():
    """Two sets of arms: within each the ratios decide, and between the two the arms' own medians."""
    levels = typical_levels([{1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, {3: 8.0}, {3: 16.0, 4: 16.0}])
    assert levels == pytest.approx([0.0, 0.693, 2.079, 2.773], abs=1e-3)
