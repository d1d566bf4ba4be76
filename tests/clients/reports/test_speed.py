"""The speed of an arm: the number of the table, with an interval that holds it."""

from __future__ import annotations

import pytest

from clientlab.reports.rows import speed_of
from clients.documents import a_failed_trial, a_trial


@pytest.mark.parametrize("walls", [(1.0, 1.1, 0.9), (2.0, 1.0, 4.0, 0.5), (1.0,) * 7])
def test_the_interval_holds_the_median_of_the_rounds(walls):
    """Of an even number of rounds as well, and where all rounds are equal."""
    rates = sorted(1000 / wall for wall in walls)
    found = speed_of(a_trial(number=number, wall=wall) for number, wall in enumerate(walls, 1))
    middle = len(rates) // 2
    assert found.value == pytest.approx(rates[middle] if len(rates) % 2 else (rates[middle - 1] + rates[middle]) / 2)
    assert found.low <= found.value <= found.high


def test_with_two_rounds_there_is_no_interval():
    """A failed trial is no round."""
    found = speed_of([a_trial(wall=1.0), a_trial(number=2, wall=2.0), a_failed_trial("urllib3", number=3)])
    assert (found.value, found.interval) == (750, None)
