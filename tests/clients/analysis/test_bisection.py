"""The search for the highest rate that holds, against capacities that are known."""

from __future__ import annotations

import random

import pytest

from clientlab.analysis.bisection import SearchBounds, bracket_of, next_rate

BOUNDS = SearchBounds(start=100.0, lowest=4.0, highest=1e6, resolution=0.025, tries=2)


def searched(held, bounds: SearchBounds = BOUNDS) -> list[tuple[float, bool]]:
    """All outcomes of a search. `held`: rate → whether a trial holds it."""
    outcomes: list[tuple[float, bool]] = []
    while (rate := next_rate(outcomes, bounds)) is not None:
        outcomes.append((rate, held(rate)))
        assert len(outcomes) <= 60
    return outcomes


@pytest.mark.parametrize("capacity", [4.1, 99.9, 160.0, 123_456.0])
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
