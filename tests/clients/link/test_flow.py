"""The model of a link, with a clock of the tests' own: when bytes leave, and when they arrive."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clientlab.link.path import CongestionWindow
from clients.link.timeline import RTT, Timeline


def test_a_fresh_sender_doubles_its_window_each_round_trip():
    """100,000 bytes are 10 segments, 20, and the rest; each flight arrives half a round trip after it left."""
    timeline = Timeline()
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    flow.end()
    timeline.run()
    assert sink.arrived == [(0.05, 14_600), (0.15, 29_200), (0.25, 56_200), (0.25, None)]


def test_a_kept_connection_has_the_window_of_its_last_body():
    """The second body of 100,000 bytes leaves at once."""
    timeline = Timeline()
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    timeline.run(0.4)
    flow.feed(bytes(100_000))
    timeline.run()
    assert sink.arrived[3:] == [(0.45, 100_000)]


def test_requests_that_do_not_fill_the_window_do_not_enlarge_it():
    """As in Linux: after 20 small ones, a body still takes three flights."""
    timeline = Timeline()
    flow, sink = timeline.flow()
    for number in range(20):
        timeline.run(number * RTT)
        flow.feed(bytes(1_000))
    timeline.run(2.0)
    flow.feed(bytes(100_000))
    timeline.run()
    assert [size for _, size in sink.arrived[20:]] == [14_600, 29_200, 56_200]


@pytest.mark.parametrize(("idle", "size"), [(0.29, 114_600), (0.31, 57_300), (60.0, 14_600)])
def test_the_window_is_halved_for_each_time_out_that_the_sender_was_idle(idle, size):
    """The time-out is 0.3 s at a round trip of 0.1 s. The initial window remains."""
    window = CongestionWindow(RTT)
    for number, flight in enumerate((14_600, 29_200, 56_200)):
        assert window.room(number * RTT) >= flight
        window.sent(flight, number * RTT)
    assert window.room(2 * RTT + idle) == size


def test_a_line_with_a_bandwidth_is_full_from_the_first_byte_to_the_last():
    """100,000 bytes at 1 Mbit/s leave in 0.8 s: the window exceeds the bandwidth-delay product of 12,500 bytes."""
    timeline = Timeline(bandwidth=1e6)
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    timeline.run()
    assert sink.arrived[0] == (pytest.approx(0.05 + 1_460 * 8e-6), 1_460)
    assert sink.arrived[-1][0] == pytest.approx(0.05 + 0.8, abs=1e-4)
    assert len(sink.received) == 100_000


def test_connections_share_the_bandwidth_in_the_order_in_which_they_send():
    """The second of two that send at once waits for the first one's 10,000 bytes, which take 80 ms."""
    timeline = Timeline(bandwidth=1e6)
    (first, first_sink), (second, second_sink) = timeline.flow(), timeline.flow()
    first.feed(bytes(10_000))
    second.feed(bytes(1_000))
    timeline.run()
    assert first_sink.arrived[-1][0] == pytest.approx(0.05 + 0.080, abs=1e-4)
    assert second_sink.arrived == [(pytest.approx(0.05 + 0.088, abs=1e-4), 1_000)]


def test_without_delay_and_bandwidth_bytes_arrive_at_once():
    """A link without delay and bandwidth delivers bytes at once, without an event or a window."""
    timeline = Timeline(rtt=0.0)
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    flow.end()
    assert sink.arrived == [(0.0, 100_000), (0.0, None)]
    assert timeline.wake_at == math.inf


def test_nothing_leaves_before_the_handshake_is_done():
    """What was read before leaves then, its end too."""
    timeline = Timeline()
    flow, sink = timeline.flow(is_open=False)
    flow.feed(b"early")
    flow.end()
    timeline.run(1.0)
    assert sink.arrived == []
    flow.open(1.0)
    timeline.run()
    assert sink.arrived == [(1.05, 5), (1.05, None)]


def test_a_full_bandwidth_holds_senders_back_and_they_take_turns():
    """Of 100 bulk senders at 20 Mbit/s, each gets its share, and one small message waits for 87 ms and a turn each.

    One round trip of bytes waits, at least 64 KiB; then the link stops reading.
    """
    timeline = Timeline(bandwidth=20e6)
    flows = [timeline.flow() for _ in range(100)]
    for each, sink in flows:
        each.source = sink
        each.feed(bytes(500_000))
    assert all(sink.reading is False for _, sink in flows)
    timeline.run(2.0)
    small, small_sink = timeline.flow()
    small.feed(b"small")
    timeline.run(3.0)
    shares = [len(sink.received) for _, sink in flows]
    assert sum(shares) == pytest.approx(20e6 / 8 * (3.0 - RTT / 2), rel=0.01)
    assert max(shares) - min(shares) <= 20_000
    ((arrived, _),) = small_sink.arrived
    assert arrived - 2.0 == pytest.approx(RTT / 2 + RTT + 0.1168, abs=0.02)
    timeline.run()
    assert all(len(sink.received) == 500_000 and sink.reading for _, sink in flows)


@pytest.mark.parametrize("rtt", [0.0, RTT])
def test_a_small_message_waits_for_a_receiver_that_does_not_read(rtt):
    """It leaves when the receiver reads again."""
    timeline = Timeline(rtt)
    flow, sink = timeline.flow()
    flow.stall()
    flow.feed(b"small")
    timeline.run(1.0)
    assert sink.arrived == []
    flow.resume()
    timeline.run()
    assert bytes(sink.received) == b"small"


@settings(max_examples=40, deadline=None)
@given(
    chunks=st.lists(st.integers(1, 60_000), max_size=12),
    bandwidth=st.sampled_from([None, 1e6, 1e9]),
    rtt=st.sampled_from([0.0, 0.001, 0.1]),
)
def test_all_bytes_arrive_in_order_and_then_the_end(chunks, bandwidth, rtt):
    """For any sizes of reads, all bytes arrive in order before the end of the stream."""
    timeline = Timeline(rtt, bandwidth)
    flow, sink = timeline.flow()
    sent = b"".join(bytes([number % 251]) * size for number, size in enumerate(chunks))
    at = 0
    for size in chunks:
        flow.feed(sent[at : at + size])
        at += size
    flow.end()
    timeline.run()
    assert bytes(sink.received) == sent
    assert [size for _, size in sink.arrived].count(None) == 1
    assert sink.arrived[-1][1] is None
