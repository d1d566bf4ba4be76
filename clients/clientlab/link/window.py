"""TCP's congestion window of one sender: slow start, without loss, and its restart after idle time.

RFC 6928: the initial window is 10 segments, here of 1,460 bytes. RFC 5681, 3.1, and RFC 3465: in slow start, the window
grows by the bytes that are acknowledged, so it doubles in a round trip. RFC 2861, 3.1: the window does not grow while
the sender does not use it, and is halved for each retransmission time-out (RTO) that the connection was idle. Where the
RFCs leave a choice, the rule is that of Linux: `tcp_is_cwnd_limited` for "used", `tcp_cwnd_restart` for the restart.

A network without loss never ends slow start, so there is no threshold.
"""

from __future__ import annotations

SEGMENT = 1460
"""Bytes of payload in a segment: Ethernet's 1,500 less two headers of 20."""
INITIAL_WINDOW = 10 * SEGMENT
LEAST_RTO = 0.2
"""Seconds beyond the round-trip time. Linux has at least 200 ms for its variation (TCP_RTO_MIN), which is 0 here."""


class CongestionWindow:
    """How many bytes may leave. `rto`: seconds; `most`: bytes that the window never exceeds."""

    __slots__ = ("_acknowledged", "_last_sent", "_most", "_peak", "_peak_ends", "_rto", "_sent", "size")

    def __init__(self, rto: float, most: int) -> None:
        self.size = INITIAL_WINDOW
        self._rto = rto
        self._most = most
        self._sent = self._acknowledged = 0  # bytes since the connection began
        self._peak = self._peak_ends = 0  # most bytes in flight of the current window, and where that window ends
        self._last_sent = 0.0

    def room(self, now: float) -> int:
        """Bytes that may leave now; 0 or less means none."""
        in_flight = self._sent - self._acknowledged
        if not in_flight and self.size > INITIAL_WINDOW:
            self._restart(now - self._last_sent)
        return self.size - in_flight

    def sent(self, size: int, now: float) -> None:
        """Count bytes that left."""
        self._sent += size
        self._last_sent = now
        in_flight = self._sent - self._acknowledged
        if in_flight > self._peak or self._acknowledged >= self._peak_ends:
            self._peak, self._peak_ends = in_flight, self._sent

    def acknowledged(self, size: int) -> None:
        """Count bytes of which the acknowledgement has arrived."""
        self._acknowledged += size
        if self.size < 2 * self._peak:
            self.size = min(self.size + size, self._most)

    def _restart(self, idle: float) -> None:
        while idle > self._rto and self.size > INITIAL_WINDOW:
            self.size = max(self.size // 2, INITIAL_WINDOW)
            idle -= self._rto
