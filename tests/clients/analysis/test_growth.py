"""How much a client grows with each request."""

from __future__ import annotations

import pytest

from clientlab.analysis.growth import find_growth

FINISHED = [0, 500, 1000, 1500, 2000, 2500, 2503]


def test_a_leak_is_found_per_1000_requests_and_a_short_last_part_does_not_count():
    found = find_growth(FINISHED, [0, 50, 101, 150, 199, 250, 900])
    assert found.mean == pytest.approx(100, abs=3)
    assert 90 < found.low <= found.mean <= found.high < 110


def test_one_step_is_no_growth():
    found = find_growth(FINISHED, [10, 10, 90, 90, 90, 90, 90])
    assert found.low <= 0 <= found.high


@pytest.mark.parametrize("finished", [[], [5], [0, 0, 0, 0, 0], [0, 10, 20, 30]])
def test_a_trial_with_few_parts_says_nothing(finished):
    assert find_growth(finished, [0.0] * len(finished)) is None
