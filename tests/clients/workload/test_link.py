"""Links: how their times and rates are written, within which limits, and how they are shown."""

from __future__ import annotations

import pytest

from clientlab.workload.link import Link, bandwidth_of, rtt_of


@pytest.mark.parametrize(("text", "seconds"), [("35ms", 0.035), ("0ms", 0.0), ("0.1", 0.1)])
def test_a_round_trip_time_is_written_as_a_delay(text, seconds):
    """Without a unit it is in seconds."""
    assert rtt_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "bits"),
    [("20mbit", 2e7), ("512kbit", 512e3), ("1.5Mbit/s", 1.5e6)],
)
def test_a_bandwidth_is_written_in_bits_per_second(text, bits):
    """The case of the unit does not count."""
    assert bandwidth_of(text) == bits


@pytest.mark.parametrize("text", ["-1ms", "35", "nan"])
def test_a_round_trip_time_beyond_the_limits_is_refused(text):
    """35 without a unit is 35 seconds, for instance."""
    with pytest.raises(ValueError, match="write "):
        rtt_of(text)


@pytest.mark.parametrize("text", ["0mbit", "20", "20mbps", "101gbit"])
def test_a_bandwidth_without_a_unit_of_bits_or_beyond_the_limits_is_refused(text):
    """Bytes per second (``20mbps`` to tc) are not mistaken for bits."""
    with pytest.raises(ValueError, match=r"write \d+kbit"):
        bandwidth_of(text)


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (Link(0.0), "0 ms"), (Link(0.035), "35 ms"), (Link(0.035, 2e7), "35 ms, 20 Mbit/s"),
    ],
)  # fmt: skip
def test_a_link_is_shown_by_its_time_and_its_rate(link, text):
    """An unlimited rate is not shown."""
    assert str(link) == text
