"""Links: how their times and rates are written, within which limits, and how they are shown."""

from __future__ import annotations

import pytest

from clientlab.workload.link import Link, bandwidth_of, rtt_of


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (rtt_of, "35ms", 0.035), (rtt_of, "0ms", 0.0), (rtt_of, "0.1", 0.1),
        (bandwidth_of, "20mbit", 2e7), (bandwidth_of, "512kbit", 512e3), (bandwidth_of, "1.5Mbit/s", 1.5e6),
    ],
)  # fmt: skip
def test_a_round_trip_time_is_written_as_a_delay_and_a_bandwidth_in_bits_per_second(read, text, value):
    """A time without a unit is in seconds. The case of a unit of bits does not count."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [*((rtt_of, text) for text in ("-1ms", "35", "nan")),
     *((bandwidth_of, text) for text in ("0mbit", "20", "20mbps", "101gbit"))],
)  # fmt: skip
def test_what_is_no_time_or_no_rate_within_the_limits_is_refused(read, text):
    """35 without a unit is 35 seconds. Bytes per second (``20mbps`` to tc) are not mistaken for bits."""
    with pytest.raises(ValueError, match="write "):
        read(text)


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (Link(0.0), "0 ms"), (Link(0.035), "35 ms"), (Link(0.035, 2e7), "35 ms, 20 Mbit/s"),
    ],
)  # fmt: skip
def test_a_link_is_shown_by_its_time_and_its_rate(link, text):
    assert str(link) == text
