"""One direction of a connection through the link: delay, bandwidth, and the sender's congestion window.

RFC 6928: the initial window is 10 segments, here of 1,460 bytes. RFC 5681, 3.1, and RFC 3465: in slow start, the window
grows by the bytes that are acknowledged, so it doubles in a round trip. RFC 2861, 3.1: the window does not grow while
the sender does not use it, and is halved for each retransmission time-out (RTO) that the connection was idle. Where the
RFCs leave a choice, the rule is that of Linux: `tcp_is_cwnd_limited` for "used", `tcp_cwnd_restart` for the restart.

A network without loss never ends slow start, so there is no threshold.

Bytes leave one after the other: the last of `size` bytes leaves `size * 8 / bandwidth` seconds after the first, and
the next ones wait until then. That is a token bucket without a burst. It is first come, first served, as in a router
with one queue. Only payload counts: headers would take 3 % of the bandwidth more with full segments.

Buffers are bounded. At most `READ_AHEAD` bytes and one read wait for the window; then the socket is no longer read, and
the peer's own kernel stops it. Bytes in flight are bounded by the window, and those of all connections together by
`MOST_HELD` (one_way). If the receiver does not read, nothing leaves any more, as with a receive window of 0, once
`UNREAD` bytes wait for it in this process.
"""

from __future__ import annotations

import math
from asyncio import Transport
from collections import deque
from collections.abc import Callable
from typing import Any

from clientlab.link.agenda import Action, Agenda

SEGMENT = 1460
"""Bytes of payload in a segment: Ethernet's 1,500 less two headers of 20."""
INITIAL_WINDOW = 10 * SEGMENT
LEAST_VARIATION = 0.2
"""Seconds that Linux adds to the round-trip time for its RTO, at least (TCP_RTO_MIN). Here, round trips do not vary."""


class CongestionWindow:
    """How many bytes may leave. `rtt`: seconds; `most`: bytes that the window never exceeds."""

    __slots__ = ("_acknowledged", "_in_flight", "_last_sent", "_most", "_peak", "_peak_ends", "_rtt", "_sent", "size")

    def __init__(self, rtt: float, most: int) -> None:
        self.size = INITIAL_WINDOW
        self._rtt = rtt
        self._most = most
        self._in_flight: deque[tuple[float, int]] = deque()  # when bytes will be acknowledged, and how many
        self._sent = self._acknowledged = 0  # bytes since the connection began
        self._peak = self._peak_ends = 0  # most bytes in flight of the current window, and where that window ends
        self._last_sent = 0.0

    def room(self, now: float) -> int:
        """Bytes that may leave now; 0 or less means none."""
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= now:
            self._acknowledge(in_flight.popleft()[1])
        if not in_flight and self.size > INITIAL_WINDOW:
            self._restart(now - self._last_sent)
        return self.size - (self._sent - self._acknowledged)

    def initial_room(self) -> int:
        """Bytes that may leave now if the window is not larger than the initial one. Call `room` before."""
        return INITIAL_WINDOW - (self._sent - self._acknowledged)

    def next_acknowledgement(self) -> float:
        """When the oldest bytes in flight are acknowledged; infinite if there are none."""
        return self._in_flight[0][0] if self._in_flight else math.inf

    def sent(self, size: int, now: float) -> None:
        """Count bytes that left."""
        self._sent += size
        self._last_sent = now
        self._in_flight.append((now + self._rtt, size))
        in_flight = self._sent - self._acknowledged
        if in_flight > self._peak or self._acknowledged >= self._peak_ends:
            self._peak, self._peak_ends = in_flight, self._sent

    def _acknowledge(self, size: int) -> None:
        self._acknowledged += size
        if self.size < 2 * self._peak:
            self.size = min(self.size + size, self._most)

    def _restart(self, idle: float) -> None:
        time_out = self._rtt + LEAST_VARIATION
        while idle > time_out and self.size > INITIAL_WINDOW:
            self.size = max(self.size // 2, INITIAL_WINDOW)
            idle -= time_out


MOST_IN_FLIGHT = 64 * 2**20
"""Bytes of a connection's direction without a bandwidth: 5 Gbit/s at 100 ms, more than one process relays."""
MOST_HELD = 512 * 2**20
"""Bytes of all connections of a direction together: in flight, or arrived at receivers that do not read.

When a direction holds so many, each connection goes on with the initial window: none waits for another to be read.
"""
_PIECE_SECONDS = 1e-3


class OneWay:
    """A direction. `rtt`: seconds, half of which is this direction's delay; `bandwidth`: bits per second or None.

    `held`: bytes that its flows have sent, and that are not delivered. `carried`: bytes that took some of a limited
    bandwidth, since the start.
    """

    def __init__(self, agenda: Agenda, rtt: float, bandwidth: float | None) -> None:
        self.instant = rtt == 0 and bandwidth is None
        self.alarms = agenda.alarms
        self.held = self.carried = 0
        self._rtt = rtt
        self._arrivals = agenda.queue()
        self._delay = rtt / 2
        self._seconds_per_byte = 0.0 if bandwidth is None else 8 / bandwidth
        self._free_at = 0.0
        self.piece = MOST_IN_FLIGHT
        self._most_window = MOST_IN_FLIGHT
        if bandwidth is not None:
            # Bytes arrive in pieces of a millisecond. A window of the bandwidth-delay product keeps the link full; a
            # larger one would only make other connections wait longer.
            bytes_per_second = bandwidth / 8
            self.piece = SEGMENT * max(1, round(bytes_per_second * _PIECE_SECONDS / SEGMENT))
            self._most_window = int(bytes_per_second * rtt) + INITIAL_WINDOW + self.piece

    def new_window(self) -> CongestionWindow:
        """The window of a connection's sender."""
        return CongestionWindow(self._rtt, self._most_window)

    def room(self, window: CongestionWindow, at: float) -> int:
        """Bytes of a connection that may leave now, by its window and by `MOST_HELD`; 0 or less means none."""
        room = window.room(at)
        if room <= MOST_HELD - self.held:
            return room
        return min(room, max(MOST_HELD - self.held, window.initial_room()))

    def send(self, size: int, at: float, action: Action, argument: Any = None) -> float:
        """Let `size` bytes leave at `at`, or later if bytes before them still leave. Call `action` when they arrive.

        Returns the time at which the last byte left. Without bandwidth and delay, the bytes arrive before this returns.
        """
        if self.instant:
            action(at, argument)
            return at
        if self._seconds_per_byte:
            self.carried += size
            at = self._free_at = max(at, self._free_at) + size * self._seconds_per_byte
        self._arrivals.add(at + self._delay, action, argument)
        return at


READ_AHEAD = 128 * 1024
UNREAD = 4 * 2**20
"""Bytes, as many as Linux's largest send buffer has by default (tcp_wmem)."""


class Flow:
    """One direction. Its user sets `source` and `target` while the sockets are open, and None afterwards.

    `arrived_end()` is called when the end of the bytes has arrived.
    """

    __slots__ = (
        "_arrived_end", "_blocked", "_clock", "_direction", "_ended", "_open", "_paused", "_size", "_stalled",
        "_untaken", "_waiting", "_window", "source", "target",
    )  # fmt: skip

    def __init__(self, direction: OneWay, clock: Callable[[], float], arrived_end: Callable[[], None]) -> None:
        self.source: Transport | None = None
        self.target: Transport | None = None
        self._direction = direction
        self._clock = clock
        self._arrived_end = arrived_end
        self._window = direction.new_window()
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0  # of all that waits
        self._open = False  # from the end of the handshake on
        self._stalled = False  # the receiver does not read
        self._untaken = 0  # bytes that arrived while it did not
        self._blocked = False  # the window is full, and an alarm is set
        self._paused = False  # the source is not read
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take bytes that were read from the source."""
        at_once = self._open and not (self._stalled or self._waiting)
        if at_once and self._direction.instant:
            if self.target is not None:
                self.target.write(data)
            return
        now, size = self._clock(), len(data)
        if at_once and size <= self._direction.piece and size <= self._direction.room(self._window, now):
            # Most messages are small, and nothing waits: they need no queue.
            self._direction.held += size
            self._window.sent(size, self._direction.send(size, now, self._arrive, data))
            return
        self._waiting.append(data)
        self._size += size
        self._send(now)
        if self._size > READ_AHEAD and not self._paused and self.source is not None:
            self._paused = True
            self.source.pause_reading()

    def end(self) -> None:
        """Note that the source sends no more."""
        self._ended = True
        self._send(self._clock())

    def open(self, at: float) -> None:
        """Let bytes leave: the handshake is done."""
        self._open = True
        self._send(at)

    def stall(self) -> None:
        """Let no more bytes leave: the receiver does not read."""
        self._stalled = True

    def resume(self) -> None:
        """Let bytes leave again."""
        self._taken()
        self._send(self._clock())

    def drop(self) -> None:
        """Forget what waits: the connection was reset."""
        self._waiting.clear()
        self._size = 0
        self._open = False
        self._taken()

    def _send(self, at: float) -> None:
        """Let leave what handshake, receiver and window permit."""
        while self._waiting and self._open and not (self._stalled or self._blocked):
            most = self._direction.piece
            if not self._direction.instant:
                most = min(most, self._direction.room(self._window, at))
            if most > 0:
                self._send_piece(self._take(most), at)
            else:
                self._blocked = True
                self._direction.alarms.add(self._window.next_acknowledgement(), self._wake)
        if self._paused and self._size <= READ_AHEAD // 2 and self.source is not None:
            self._paused = False
            self.source.resume_reading()
        if self._ended and self._open and not self._waiting:
            self._ended = False  # sent once
            self._direction.send(0, at, self._arrive_end)

    def _send_piece(self, piece: bytes | memoryview, at: float) -> None:
        size = len(piece)
        self._direction.held += size
        left = self._direction.send(size, at, self._arrive, piece)
        if not self._direction.instant:
            self._window.sent(size, left)

    def _take(self, most: int) -> bytes | memoryview:
        """The next bytes, without a copy."""
        piece = self._waiting.popleft()
        if len(piece) > most:
            view = memoryview(piece)
            self._waiting.appendleft(view[most:])
            piece = view[:most]
        self._size -= len(piece)
        return piece

    def _wake(self, due: float, _: None) -> None:
        """Go on after an acknowledgement."""
        self._blocked = False
        self._send(due)

    def _arrive(self, _due: float, piece: bytes | memoryview) -> None:
        if self._stalled:
            self._untaken += len(piece)
        else:
            self._direction.held -= len(piece)
        if self.target is not None:
            self.target.write(piece)

    def _taken(self) -> None:
        """The receiver reads again, or never will."""
        self._stalled = False
        self._direction.held -= self._untaken
        self._untaken = 0

    def _arrive_end(self, _due: float, _nothing: None) -> None:
        if self.target is not None:
            self.target.write_eof()
        self._arrived_end()
