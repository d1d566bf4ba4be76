"""The congestion window of a connection's sender: slow start, congestion avoidance, losses, and idle connections.

RFC 6928: the initial window is 10 segments, here of 1,460 bytes. RFC 5681, 3.1, and RFC 3465: in slow start, the window
grows by the bytes that are acknowledged, so it doubles in a round trip. RFC 2861, 3.1: the window does not grow while
the sender does not use it, and is halved for each retransmission time-out (RTO) that the connection was idle. Where the
RFCs leave a choice, the rule is that of Linux: `tcp_is_cwnd_limited` for "used", `tcp_cwnd_restart` for the restart.

RFC 5681, 3.2: a loss ends slow start. It halves the window, once for all bytes that were in flight when it was found.
From there, the window grows by one segment in a round trip (3.1, congestion avoidance). A time-out leaves one segment.
A link without a buffer loses nothing, so its senders stay in slow start.
"""

from __future__ import annotations

import math
from collections import deque

SEGMENT = 1460
"""Bytes of payload in a segment: Ethernet's 1,500 less two headers of 20."""
INITIAL_WINDOW = 10 * SEGMENT
LEAST_VARIATION = 0.2
"""Seconds that Linux adds to the round-trip time for its RTO, at least (TCP_RTO_MIN). Here, round trips do not vary."""
_LEAST_THRESHOLD = 2 * SEGMENT


class CongestionWindow:
    """How many bytes may leave. `rtt`: seconds; `most`: bytes that the window never exceeds."""

    __slots__ = (
        "_acknowledged", "_credit", "_in_flight", "_last_sent", "_most", "_peak", "_peak_ends", "_recovered_at", "_rtt",
        "_threshold", "sent_bytes", "size",
    )  # fmt: skip

    def __init__(self, rtt: float, most: int) -> None:
        self.size = INITIAL_WINDOW
        self.sent_bytes = 0  # since the connection began; a byte that is sent again counts again
        self._rtt = rtt
        self._most = most
        self._in_flight: deque[tuple[float, int]] = deque()  # when bytes will be acknowledged, and how many
        self._acknowledged = 0  # of the bytes sent, or known to be lost
        self._peak = self._peak_ends = 0  # most bytes in flight of the current window, and where that window ends
        self._last_sent = 0.0
        self._threshold = math.inf  # where slow start ends, in bytes
        self._recovered_at = 0  # acknowledged bytes at which the last loss is over
        self._credit = 0  # bytes acknowledged towards the next segment of congestion avoidance

    @property
    def idle(self) -> bool:
        """Whether no acknowledgement is under way."""
        return not self._in_flight

    def room(self, now: float) -> int:
        """Bytes that may leave now; 0 or less means none."""
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= now:
            self._acknowledge(in_flight.popleft()[1])
        if not in_flight and self.size > INITIAL_WINDOW:
            self._restart(now - self._last_sent)
        return self.size - (self.sent_bytes - self._acknowledged)

    def initial_room(self) -> int:
        """Bytes that may leave now if the window is not larger than the initial one. Call `room` before."""
        return INITIAL_WINDOW - (self.sent_bytes - self._acknowledged)

    def next_acknowledgement(self) -> float:
        """When the oldest bytes in flight are acknowledged; infinite if there are none."""
        return self._in_flight[0][0] if self._in_flight else math.inf

    def sent(self, size: int, now: float) -> None:
        """Count bytes that left."""
        self._last_sent = now
        self._in_flight.append((now + self._rtt, size))
        self.sent_bytes += size
        in_flight = self.sent_bytes - self._acknowledged
        if in_flight > self._peak or self._acknowledged >= self._peak_ends:
            self._peak, self._peak_ends = in_flight, self.sent_bytes

    def dropped(self, size: int) -> None:
        """Count bytes that left and were dropped. They are in flight until the sender finds their loss."""
        self.sent_bytes += size

    def lost(self, size: int, sent_bytes: int) -> None:
        """Found by an acknowledgement: `size` bytes are lost. `sent_bytes`: its value when the last of them was sent.

        The window is halved, unless it was halved after they were sent.
        """
        if sent_bytes > self._recovered_at:
            self._halve()
            self.size = int(self._threshold)
        self._acknowledged += size

    def timed_out(self, size: int) -> None:
        """No acknowledgement came: `size` bytes are lost, and one segment may leave."""
        self._halve()
        self.size = SEGMENT
        self._acknowledged += size

    def _halve(self) -> None:
        in_flight = self.sent_bytes - self._acknowledged
        self._threshold = max(in_flight // 2, _LEAST_THRESHOLD)
        self._recovered_at = self.sent_bytes
        self._credit = 0

    def _acknowledge(self, size: int) -> None:
        self._acknowledged += size
        if self._acknowledged < self._recovered_at:
            return
        if self.size < self._threshold:
            if self.size < 2 * self._peak:
                self.size = min(self.size + size, self._most)
        elif self._peak + SEGMENT > self.size:
            self._credit += size
            if self._credit >= self.size:
                self._credit -= self.size
                self.size = min(self.size + SEGMENT, self._most)

    def _restart(self, idle: float) -> None:
        if self.sent_bytes > self._acknowledged:
            return  # not idle: a loss has not been found yet
        time_out = self._rtt + LEAST_VARIATION
        while idle > time_out and self.size > INITIAL_WINDOW:
            self.size = max(self.size // 2, INITIAL_WINDOW)
            idle -= time_out
