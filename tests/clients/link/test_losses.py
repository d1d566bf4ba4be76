"""A buffer that drops: what TCP's senders lose, when they find it, and what that makes of bandwidth and queue."""

from __future__ import annotations

import pytest
from benchmarks.link.arithmetic import sawtooth

from clientlab.link.congestion_window import INITIAL_WINDOW, SEGMENT, CongestionWindow
from clients.link.timeline import RTT, Timeline

LINE = 1e6
EACH = SEGMENT * 8 / LINE
"""Seconds of a segment on a line of 1 Mbit/s: 11.68 ms."""


def arrivals(sink):
    """Times, without the sizes."""
    return [at for at, _ in sink.arrived]


def test_what_the_buffer_has_no_room_for_is_dropped_and_sent_again_after_a_time_out():
    """Of 10 segments at once, 4 find room. Nothing follows them, so the others wait for the time-out.

    That is the last acknowledgement, at 4 segments and a round trip, and as long again, and 200 ms. One segment leaves.
    Its acknowledgement is a round trip later, and two leave.
    """
    timeline = Timeline(bandwidth=LINE, buffer=4 * SEGMENT)
    flow, sink = timeline.flow()
    flow.feed(bytes(INITIAL_WINDOW))
    timeline.run(0.4)
    assert arrivals(sink) == [pytest.approx(RTT / 2 + number * EACH, abs=1e-4) for number in (1, 2, 3, 4)]
    assert timeline.direction.dropped == 6
    timeline.run()
    time_out = 2 * (4 * EACH + RTT) + 0.2
    assert arrivals(sink)[4] == pytest.approx(time_out + EACH + RTT / 2, abs=1e-4)
    assert arrivals(sink)[5] == pytest.approx(time_out + 2 * EACH + 1.5 * RTT, abs=1e-4)
    assert len(sink.received) == INITIAL_WINDOW


def test_time_outs_of_one_segment_double():
    """While another sender keeps the buffer full, the lost segment is tried again after 0.3 s and then 0.6 s."""
    timeline = Timeline(bandwidth=LINE, buffer=SEGMENT)
    flow, sink = timeline.flow()

    def tried(at):
        timeline.run(at)
        before = timeline.direction.dropped
        for _ in range(5):  # another sender fills the line anew
            timeline.direction.send(SEGMENT, timeline.now, lambda *_: None)
        timeline.run(at + 0.02)
        return timeline.direction.dropped - before

    timeline.direction.send(3 * SEGMENT, 0.0, lambda *_: None)
    flow.feed(bytes(SEGMENT))
    assert (tried(0.29), tried(0.89)) == (1, 1)
    timeline.run()
    assert arrivals(sink) == [pytest.approx(2.1 + EACH + RTT / 2, abs=1e-4)]


def test_the_acknowledgement_of_a_later_segment_shows_the_loss():
    """A segment is lost at 0 ms, and the next one leaves at 58.4 ms. A round trip later, the lost one is sent again.

    The receiver gets both when it arrives, in order.
    """
    timeline = Timeline(bandwidth=LINE, buffer=4 * SEGMENT)
    (other, _), (flow, sink) = timeline.flow(), timeline.flow()
    other.feed(bytes(4 * SEGMENT))
    flow.feed(b"1" * SEGMENT)
    timeline.run(0.03)
    flow.feed(b"2" * SEGMENT)
    timeline.run()
    assert timeline.direction.dropped == 1
    again = 5 * EACH + RTT
    assert arrivals(sink) == [pytest.approx(again + EACH + RTT / 2, abs=1e-4)] * 2
    assert bytes(sink.received) == b"1" * SEGMENT + b"2" * SEGMENT


def test_the_end_of_a_connection_shows_a_loss_too():
    """It is a segment of its own, for which there is always room."""
    timeline = Timeline(bandwidth=LINE, buffer=4 * SEGMENT)
    (other, _), (flow, sink) = timeline.flow(), timeline.flow()
    other.feed(bytes(4 * SEGMENT))
    flow.feed(bytes(SEGMENT))
    flow.end()
    timeline.run()
    arrives = 4 * EACH + RTT + EACH + RTT / 2
    assert sink.arrived == [(pytest.approx(arrives, abs=1e-4), SEGMENT), (pytest.approx(arrives, abs=1e-4), None)]


def test_a_reset_leaves_no_bytes_behind():
    """Neither those that are to be sent again, nor those that arrived after a gap."""
    timeline = Timeline(bandwidth=LINE, buffer=4 * SEGMENT)
    (other, _), (flow, sink) = timeline.flow(), timeline.flow()
    other.feed(bytes(4 * SEGMENT))
    flow.feed(bytes(2 * SEGMENT))
    timeline.run(0.03)
    flow.feed(bytes(3 * SEGMENT))
    timeline.run(0.15)
    assert timeline.direction.held > 0
    flow.drop()
    timeline.run()
    assert (timeline.direction.held, sink.arrived) == (0, [])


def test_a_loss_halves_the_window_once_and_then_it_grows_by_a_segment_in_a_round_trip():
    """Two losses of one flight count once. From there, acknowledgements of a whole window add a segment (RFC 5681)."""
    window = CongestionWindow(RTT, most=1 << 20)
    window.sent(8 * SEGMENT, 0.0)
    window.dropped(SEGMENT)
    first = window.sent_bytes
    window.dropped(SEGMENT)
    window.room(RTT)
    window.lost(SEGMENT, first)
    halved = window.size
    window.lost(SEGMENT, window.sent_bytes)
    assert window.size == halved == 2 * SEGMENT
    for number in range(1, 4):
        window.sent(window.size, number * RTT)
        window.room((number + 1) * RTT)
        assert window.size == (2 + number) * SEGMENT


def test_after_a_time_out_the_window_is_one_segment_and_doubles_to_half_of_what_was_lost():
    """10 segments are lost: slow start goes up to 5, one segment in a round trip from there."""
    window = CongestionWindow(RTT, most=1 << 20)
    window.dropped(INITIAL_WINDOW)
    window.timed_out(INITIAL_WINDOW)
    sizes = [window.size]
    for number in range(1, 6):
        window.sent(window.size, number * RTT)
        window.room((number + 1) * RTT)
        sizes.append(window.size)
    assert [size // SEGMENT for size in sizes] == [1, 2, 4, 8, 9, 10]


RATE, TRIP = 20e6, 0.05
PRODUCT = RATE / 8 * TRIP


def loaded(connections, buffer, seconds):
    """Bytes of each connection after 3 s, and the queue of a line of 20 Mbit/s and 50 ms: mean and longest, in seconds.

    The connections begin within half a second, and have more to send than the line carries.
    """
    timeline = Timeline(TRIP, RATE, buffer)
    sinks = []
    for number in range(connections):
        timeline.run(number * 0.5 / connections)
        flow, sink = timeline.flow()
        flow.feed(bytes(int(RATE / 8 * (seconds + 4) / connections**0.5)))
        sinks.append(sink)
    timeline.run(3.0)
    before, way, longest = [len(sink.received) for sink in sinks], timeline.direction, 0.0
    carried, waited = way.carried, way.byte_seconds
    while timeline.now < 3.0 + seconds:
        timeline.run(timeline.now + 0.005)
        longest = max(longest, way.queued_seconds(timeline.now))
    after = [len(sink.received) for sink in sinks]
    mean = (way.byte_seconds - waited) / (way.carried - carried)
    return [end - begin for begin, end in zip(before, after, strict=True)], mean, longest


@pytest.mark.parametrize(("products", "within"), [(0.25, 0.03), (0.5, 0.03), (1.0, 0.01)])
def test_one_sender_uses_as_much_of_the_bandwidth_as_the_sawtooth_of_its_window(products, within):
    """With a buffer of one bandwidth-delay product all of it; less with a smaller buffer. The queue stays in bounds."""
    (received,), _, longest = loaded(1, int(products * PRODUCT), 15.0)
    assert received / 15 / (RATE / 8) == pytest.approx(sawtooth(products), abs=within)
    assert longest <= products * TRIP


@pytest.mark.parametrize(("connections", "fair"), [(10, 0.9), (100, 0.85)])
def test_connections_fill_the_bandwidth_and_the_queue_stays_below_the_buffer(connections, fair):
    """One bandwidth-delay product of 50 ms. Without a buffer, 100 connections would have 4.8 s in the queue.

    Jain's index of fairness is 1 if all get as much; with less than two segments each, time-outs make it less.
    """
    received, mean, longest = loaded(connections, int(PRODUCT), 12.0)
    assert sum(received) / 12 / (RATE / 8) >= 0.95
    assert TRIP / 4 < mean < longest <= TRIP
    assert sum(received) ** 2 / connections / sum(one * one for one in received) >= fair


def test_bytes_that_are_read_late_leave_when_their_acknowledgements_were_due():
    """The process stands still for 60 ms. A burst of all that was acknowledged meanwhile would overflow the buffer."""
    timeline = Timeline(TRIP, RATE, 10 * SEGMENT)
    flow, sink = timeline.flow()
    flow.feed(bytes(200_000))
    timeline.run(0.2)
    before = timeline.direction.dropped
    timeline.now += 0.06
    flow.feed(bytes(1_000))
    assert timeline.direction.dropped == before
    timeline.run()
    assert len(sink.received) == 201_000
