"""Links: how their times and rates are written, within which limits, and how they are shown."""

from __future__ import annotations

import math

import pytest

from clientlab.workload.link import Link, bandwidth_of, buffer_of, link_of, part_text, rtt_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("35ms", 0.035), ("0ms", 0.0), ("1.28s", 1.28), ("0.1", 0.1), ("10s", 10.0)]
)
def test_a_round_trip_time_is_written_as_a_delay(text, seconds):
    """Without a unit it is in seconds."""
    assert rtt_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "bits"),
    [("20mbit", 2e7), ("1gbit", 1e9), ("512kbit", 512e3), ("1.5Mbit/s", 1.5e6), (" 100 Mbit ", 1e8), ("1000bit", 1e3)],
)
def test_a_bandwidth_is_written_in_bits_per_second(text, bits):
    """The case of the unit does not count."""
    assert bandwidth_of(text) == bits


@pytest.mark.parametrize("text", ["-1ms", "35", "11s", "1h", "nan", "", "35ms20"])
def test_a_round_trip_time_beyond_the_limits_is_refused(text):
    """35 without a unit is 35 seconds, for instance."""
    with pytest.raises(ValueError, match="write "):
        rtt_of(text)


@pytest.mark.parametrize("text", ["0", "0mbit", "-1mbit", "20", "20mbps", "20MB", "999bit", "101gbit", "inf", ""])
def test_a_bandwidth_without_a_unit_of_bits_or_beyond_the_limits_is_refused(text):
    """Bytes per second (``20mbps`` to tc) are not mistaken for bits."""
    with pytest.raises(ValueError, match=r"write \d+kbit"):
        bandwidth_of(text)


@pytest.mark.parametrize("rtt", [-0.001, math.nan, math.inf, 10.1])
def test_no_link_has_a_round_trip_time_beyond_the_limits(rtt):
    """A run file is checked by the same limits as an option."""
    with pytest.raises(ValueError, match="0ms to 10s"):
        Link(rtt)


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (Link(0.0), "0 ms"), (Link(0.035), "35 ms"), (Link(0.07), "70 ms"), (Link(0.0005), "0.5 ms"),
        (Link(1.28), "1.28 s"), (Link(0.035, 2e7), "35 ms, 20 Mbit/s"), (Link(0.0, 1e9), "0 ms, 1 Gbit/s"),
        (Link(0.0, 512e3), "0 ms, 512 kbit/s"), (Link(0.035, 2e7, 65_536), "35 ms, 20 Mbit/s, buffer of 64 KiB"),
        (Link(0.035, 2e7, 87_500), "35 ms, 20 Mbit/s, buffer of 87.5 KB"),
    ],
)  # fmt: skip
def test_a_link_is_shown_by_its_time_and_its_rate(link, text):
    """An unlimited rate is not shown."""
    assert str(link) == text


def test_without_a_time_and_a_rate_there_is_no_link():
    """A rate alone delays nothing but what it must; 0ms is a link, too."""
    assert link_of(None, None) is None
    assert link_of(0.0, None) == Link(0.0)
    assert link_of(None, 2e7, 100_000) == Link(0.0, 2e7, 100_000)


@pytest.mark.parametrize(
    ("rtt", "bandwidth", "buffer"),
    [(0.05, 2e7, 125_000), (0.0, 2e7, 65_536), (0.01, 1e6, 65_536), (0.1, 1e9, 12_500_000), (10.0, 1e11, 2**30)],
)
def test_the_default_buffer_is_one_bandwidth_delay_product_within_bounds(rtt, bandwidth, buffer):
    """At least 64 KiB, so that a few connections can begin; at most the largest buffer."""
    assert link_of(rtt, bandwidth) == Link(rtt, bandwidth, buffer)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64KiB", 65_536), ("128KB", 128_000), ("1.5 MB", 1_500_000), ("1500B", 1_500), (" 1GiB ", 2**30)],
)
def test_a_buffer_is_written_in_bytes_with_a_unit(text, size):
    """Units are those of other sizes; names of arms write them so that they are read again."""
    assert buffer_of(text) == buffer_of(part_text("buffer", size)) == size


@pytest.mark.parametrize("text", ["0", "0KB", "64000", "-1KB", "1499B", "2GiB", "64kb", "20mbit", "unlimited", ""])
def test_a_buffer_of_0_without_a_unit_or_beyond_the_limits_is_refused(text):
    """The message has what to write."""
    with pytest.raises(ValueError, match=r"write (64KiB|1500B)"):
        buffer_of(text)


def test_a_buffer_needs_a_bandwidth():
    """Without a limit, no byte waits."""
    with pytest.raises(ValueError, match="a buffer of 65,536 bytes without a bandwidth"):
        link_of(0.01, None, 65_536)
