"""The speed of an arm: the number of the table, with an interval that holds it."""

from __future__ import annotations

import pytest

from clientlab.reports.rows import speed_of
from clients.documents import a_failed_trial, a_trial


@pytest.mark.parametrize(
    ("walls", "median"), [((1.0, 1.1, 0.9), 1000), ((2.0, 1.0, 4.0, 0.5), 750), ((1.0,) * 7, 1000)]
)
def test_the_interval_holds_the_median_of_the_rounds(walls, median):
    """A failed trial is no round, and two rounds have no interval."""
    trials = [a_trial(number=number, wall=wall) for number, wall in enumerate(walls, 1)]
    found = speed_of([*trials, a_failed_trial("urllib3", number=9)])
    assert found.value == pytest.approx(median)
    assert found.low <= found.value <= found.high
    assert speed_of([*trials[:2], a_failed_trial("urllib3", number=3)]).interval is None
