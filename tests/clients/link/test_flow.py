"""The model of a link, with a simulated clock."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clientlab.link.path import Agenda, CongestionWindow, OneWay
from clientlab.link.relay import Flow

RTT = 0.1


class Sink(asyncio.Transport):
    """Records when bytes arrive, and how many. The end is None."""

    def __init__(self, timeline):
        super().__init__()
        self._timeline = timeline
        self.arrived = []
        self.received = bytearray()
        self.reading = True

    def write(self, data):
        self.received += data
        self.arrived.append((round(self._timeline.now, 6), len(data)))

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def write_eof(self):
        self.arrived.append((round(self._timeline.now, 6), None))


class Timeline:
    """A clock that only advances in `run`, from event to event."""

    def __init__(self, rtt=RTT, bandwidth=None):
        self.now = 0.0
        self.wake_at = math.inf
        self.agenda = Agenda(lambda: self.now)
        self.agenda.set_timer = self._set
        self.direction = OneWay(self.agenda, rtt, bandwidth)

    def _set(self, due):
        self.wake_at = math.inf if due is None else due

    def flow(self):
        """Return a flow and its sink."""
        flow = Flow(self.direction)
        flow.target = sink = Sink(self)
        flow.arrived_end = sink.write_eof
        flow.open(self.now)
        return flow, sink

    def run(self, until=math.inf):
        """Advance the clock, without `until` to the last event."""
        while self.wake_at <= until and self.wake_at != math.inf:
            self.now = max(self.now, self.wake_at)
            self.agenda.run()
        if until != math.inf:
            self.now = until


def test_a_sender_doubles_its_window_each_round_trip_and_keeps_it_for_the_next_body():
    """100,000 bytes are 10 segments, 20, and the rest."""
    timeline = Timeline()
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    timeline.run(0.4)
    flow.feed(bytes(100_000))
    flow.end()
    timeline.run()
    assert sink.arrived == [
        (0.05, 14_600),
        (0.15, 29_200),
        (0.25, 56_200),
        (0.45, 100_000),
        (0.45, None),
    ]


def test_requests_that_do_not_fill_the_window_do_not_enlarge_it():
    timeline = Timeline()
    flow, sink = timeline.flow()
    for number in range(20):
        timeline.run(number * RTT)
        flow.feed(bytes(1_000))
    timeline.run(2.0)
    flow.feed(bytes(100_000))
    timeline.run()
    assert [size for _, size in sink.arrived[20:]] == [14_600, 29_200, 56_200]


@pytest.mark.parametrize(
    ("idle", "size"), [(0.29, 114_600), (0.31, 57_300), (60.0, 14_600)]
)
def test_the_window_is_halved_for_each_time_out_that_the_sender_was_idle(idle, size):
    window = CongestionWindow(RTT)
    for number, flight in enumerate((14_600, 29_200, 56_200)):
        assert window.room(number * RTT) >= flight
        window.sent(flight, number * RTT)
    assert window.room(2 * RTT + idle) == size


def test_a_single_sender_uses_the_whole_bandwidth():
    """100,000 bytes at 1 Mbit/s leave in 0.8 s: the window exceeds the bandwidth-delay
    product of 12,500 bytes.
    """
    timeline = Timeline(bandwidth=1e6)
    flow, sink = timeline.flow()
    flow.feed(bytes(100_000))
    timeline.run()
    assert sink.arrived[0] == (pytest.approx(0.05 + 1_460 * 8e-6), 1_460)
    assert sink.arrived[-1][0] == pytest.approx(0.05 + 0.8, abs=1e-4)
    assert len(sink.received) == 100_000


def test_senders_take_turns_while_the_bandwidth_is_full():
    """A small message among 100 bulk senders waits for one round trip of bytes, and for
    a turn of each sender.
    """
    timeline = Timeline(bandwidth=20e6)
    flows = [timeline.flow() for _ in range(100)]
    for each, sink in flows:
        each.source = sink
        each.feed(bytes(500_000))
    for _, sink in flows:
        assert sink.reading is False
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
    for _, sink in flows:
        assert len(sink.received) == 500_000
        assert sink.reading


@pytest.mark.parametrize("rtt", [0.0, RTT])
def test_a_small_message_waits_for_a_receiver_that_does_not_read(rtt):
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
