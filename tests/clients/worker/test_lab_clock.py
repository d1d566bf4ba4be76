"""How a worker estimates the lab's clock."""

from __future__ import annotations

import pytest

from clientlab.worker.lab_clock import RoundTrip, offset_of


def test_the_shortest_round_trip_decides_and_bounds_the_error():
    """The lab's clock is 100 s ahead; a long way back shifts the other estimates."""
    found = offset_of([RoundTrip(1.0, 101.01, 1.2), RoundTrip(2.0, 102.002, 2.004), RoundTrip(3.0, 103.3, 3.31)])
    assert found.seconds == pytest.approx(100.0)
    assert found.error_seconds == pytest.approx(0.002)
