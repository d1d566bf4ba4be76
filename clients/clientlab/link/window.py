"""TCP's congestion window of one sender: slow start, without loss, and its restart after idle time.

RFC 6928: the initial window is 10 segments, here of 1,460 bytes. RFC 5681, 3.1, and RFC 3465: in slow start, the window
grows by the bytes that are acknowledged, so it doubles in a round trip. RFC 2861, 3.1: the window does not grow while
the sender does not use it, and is halved for each retransmission time-out (RTO) that the connection was idle. Where the
RFCs leave a choice, the rule is that of Linux: `tcp_is_cwnd_limited` for "used", `tcp_cwnd_restart` for the restart.

A network without loss never ends slow start, so there is no threshold.
"""

from __future__ import annotations

import math
from collections import deque

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
