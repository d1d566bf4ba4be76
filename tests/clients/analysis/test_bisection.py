"""The search for the highest rate that holds, against capacities that are known."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import pytest

from clientlab.analysis.bisection import Bracket, SearchBounds, bracket_of, jittered, next_rate, typical_capacity

BOUNDS = SearchBounds(start=100.0, lowest=4.0, highest=1e6, resolution=0.025, tries=2)


def searched(held, bounds: SearchBounds = BOUNDS) -> list[tuple[float, bool]]:
    """All outcomes of a search. `held`: rate → whether a trial holds it."""
    outcomes: list[tuple[float, bool]] = []
    while (rate := next_rate(outcomes, bounds)) is not None:
        outcomes.append((rate, held(rate)))
        assert len(outcomes) <= 60
    return outcomes


@pytest.mark.parametrize("capacity", [4.1, 37.0, 99.9, 100.0, 101.0, 160.0, 5_432.1, 123_456.0])
def test_a_search_ends_within_its_resolution_below_the_capacity(capacity):
    """Whichever way the first rate lies. It takes few trials, and none beyond twice the capacity but the first."""
    outcomes = searched(lambda rate: rate <= capacity)
    bracket = bracket_of(outcomes, BOUNDS.tries)
    assert bracket.held <= capacity < bracket.failed <= 1.025 * bracket.held
    assert len(outcomes) <= 28
    assert max(rate for rate, _ in outcomes) <= max(100, 2 * capacity)


def test_one_disturbed_trial_does_not_move_the_result():
    """A rate counts as held, or as not held, when two of its trials agree; on the way up, one trial is enough."""
    for seed in range(50):
        disturbed = random.Random(seed).randrange(12)
        count = iter(range(100))
        found = searched(lambda rate, count=count, disturbed=disturbed: next(count) != disturbed and rate <= 160)
        bracket = bracket_of(found, 2)
        assert bracket.held <= 160 < bracket.failed <= 1.025 * bracket.held
    assert searched(lambda rate: rate <= 160)[:4] == [(100, True), (200, False), (200, False), (100, True)]


def test_one_lucky_trial_does_not_hold_a_rate():
    """The search errs to neither side: a success beyond the capacity counts as little as a failure below it."""
    for seed in range(50):
        lucky = random.Random(seed).randrange(14)
        count = iter(range(100))
        found = searched(lambda rate, count=count, lucky=lucky: next(count) == lucky or rate <= 160)
        bracket = bracket_of(found, 2)
        assert bracket.held <= 160 < bracket.failed <= 1.025 * bracket.held


def test_a_capacity_is_the_rate_that_half_of_all_trials_hold():
    """The mean over 400 searches is within 1 % where the capacity of a trial varies by 10 %."""
    draw = random.Random(11)
    errors = []
    for number in range(400):
        bounds = replace(BOUNDS, start=jittered(100, f"a:{number}"))
        outcomes = searched(lambda rate: rate <= 700 * math.exp(draw.gauss(0, 0.1)), bounds)
        errors.append(math.log(bracket_of(outcomes, 2).middle / 700))
    assert statistics.mean(errors) == pytest.approx(0, abs=0.01)


def test_an_interval_counts_the_width_of_the_brackets():
    """Three rounds with one bracket leave all rates between its ends; a round without an upper end adds none."""
    brackets = dict.fromkeys((1, 2, 3), Bracket(100.0, 102.0))
    found = typical_capacity(brackets)
    assert (found.value, found.low, found.high) == pytest.approx((math.sqrt(10_200), 100, 102))
    assert typical_capacity({1: Bracket(None, 4.0)}) is None
    assert typical_capacity(dict.fromkeys((1, 2, 3), Bracket(50.0, None))).interval == pytest.approx((50, 50))


def test_first_rates_differ_by_round_and_arm_and_follow_from_their_key():
    """They lie within a factor of 1.42 of the chosen one, as the draw of the round and the arm has them."""
    rates = [jittered(100.0, f"1:{number}:{arm}") for number in (1, 2, 3) for arm in "ab"]
    assert len(set(rates)) == len(rates)
    assert all(100 / 1.42 < rate < 142 for rate in rates)
    assert jittered(100.0, "1:1:a") == rates[0]


def test_the_next_rate_follows_from_the_outcomes_alone():
    """So a search goes on from what was saved, wherever it was interrupted."""
    whole = searched(lambda rate: rate <= 777)
    for length, (rate, _) in enumerate(whole):
        assert next_rate(whole[:length], BOUNDS) == rate


def test_a_search_ends_at_its_limits():
    """No rate below the lowest is tried, and none above the highest: then an end of the bracket is missing."""
    nothing = searched(lambda _: False)
    assert [rate for rate, _ in nothing[::2]] == [100, 50, 25, 12.5, 6.25, 4]
    assert bracket_of(nothing, 2) == bracket_of([(4.0, False)] * 2, 2)
    everything = searched(lambda _: True, SearchBounds(100, 4, 1000, 0.025, 2))
    assert [rate for rate, _ in everything] == [100, 200, 400, 800, 1000, 1000]
    assert bracket_of(everything, 2).failed is None
