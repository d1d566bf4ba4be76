"""The formula to which the link is held: against cases computed by hand, and against two published figures."""

from __future__ import annotations

import pytest
from benchmarks.link.arithmetic import danjou, flights, response_seconds, window_after


def test_a_body_comes_in_flights_of_10_segments_20_and_40():
    """The last one is what remains."""
    assert flights(10_000) == [10_000]
    assert flights(14_600) == [14_600]
    assert flights(1_000_000) == [14_600, 29_200, 58_400, 116_800, 233_600, 467_200, 80_200]
    assert len(flights(10_000_000)) == 10


@pytest.mark.parametrize(
    ("size", "window"), [(7_000, 14_600), (10_000, 24_600), (100_000, 114_600), (1_000_000, 934_400)]
)
def test_a_body_leaves_a_window_behind(size, window):
    """A flight of at most half of its window does not count."""
    assert window_after(size) == window


def test_a_response_takes_a_round_trip_for_each_flight():
    """On a kept connection, 1 MB takes 2 in place of 7."""
    assert response_seconds(10_000, 0.1) == pytest.approx(0.1)
    assert response_seconds(1_000_000, 0.1) == pytest.approx(0.7)
    assert response_seconds(1_000_000, 0.1, window_after(1_000_000)) == pytest.approx(0.2)


def test_a_rate_bounds_the_response():
    """20 Mbit/s are 2.5 MB/s: 10,000 bytes take 4 ms; 1 MB fills the line from the fourth flight on, at 105 ms."""
    assert response_seconds(10_000, 0.035, rate=2.5e6) == pytest.approx(0.035 + 0.004)
    after_three_flights = 1_000_000 - 14_600 - 29_200 - 58_400
    assert response_seconds(1_000_000, 0.035, rate=2.5e6) == pytest.approx(0.035 + 0.105 + after_three_flights / 2.5e6)


def test_a_round_trip_of_106_ms_gives_both_figures_that_danjou_published():
    """10 requests of 1 s: 12.12 s with a connection each, and 11.17 s with a session (published: 11.22 s)."""
    assert danjou(0.106, 1.0, 10, session=False) == pytest.approx(12.12)
    assert danjou(0.106, 1.0, 10, session=True) == pytest.approx(11.166)
