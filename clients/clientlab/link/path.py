"""The network path: delay, bandwidth, and the congestion window that every sender obeys.

Bytes leave one after the other: the last of `size` bytes leaves `size * 8 / bandwidth` seconds after the first, and the
next ones wait until then. Only payload counts. Nothing is lost: while the bandwidth is full, senders are held back, the
link stops reading their sockets, and TCP makes the peers wait.

A congestion window begins with 10 segments (RFC 6928) and grows by the bytes that are acknowledged (RFC 5681, 3.1), so
it doubles per round trip. As in Linux, it does not grow while no more than half of it is used (`tcp_is_cwnd_limited`),
and it is halved for each retransmission time-out that the connection was idle (RFC 2861, `tcp_cwnd_restart`).
"""

from __future__ import annotations

import math
from collections import deque

from clientlab.link.agenda import Action, Agenda

SEGMENT = 1460  # bytes of payload: Ethernet's 1,500 less two headers of 20
INITIAL_WINDOW = 10 * SEGMENT
_MOST_WINDOW = 64 * 2**20  # 5 Gbit/s at 100 ms, more than one process relays
_LEAST_VARIATION = 0.2  # seconds by which the time-out exceeds the round trip, at least, in Linux (TCP_RTO_MIN)
_PIECE_SECONDS = 1e-3
_LEAST_QUEUE = 64 * 2**10
_ROUNDING = 1e-9


class OneWay:
    """One direction of a link, which all connections share. `rtt`: seconds; `bandwidth`: bits per second, or None.

    `carried`: bytes since the start, with a bandwidth. `piece`: most bytes that leave at once; those of a millisecond,
    with a bandwidth. That is full while bytes wait for longer than one round trip, or than 64 KiB take.
    """

    def __init__(self, agenda: Agenda, rtt: float, bandwidth: float | None) -> None:
        self.rtt, self.clock, self.add_alarm = rtt, agenda.clock, agenda.add_alarm
        self.instant = rtt == 0 and bandwidth is None
        self.carried = 0
        self.piece = _MOST_WINDOW
        self._add_arrival = agenda.new_queue()
        self._free_at = self._last_turn = 0.0
        self._seconds_per_byte = 8 / (bandwidth or math.inf)
        self._longest_wait = math.inf
        if bandwidth is not None:
            self.piece = SEGMENT * max(1, round(_PIECE_SECONDS / self._seconds_per_byte / SEGMENT))
            self._longest_wait = max(rtt, _LEAST_QUEUE * self._seconds_per_byte)

    def is_full(self, at: float) -> bool:
        """Whether senders have to take turns."""
        return self._free_at - at > self._longest_wait + _ROUNDING

    def next_turn(self) -> float:
        """Return when a sender may send a piece, while the bandwidth is full. Each call is another sender's turn."""
        following = self._last_turn + self.piece * self._seconds_per_byte
        self._last_turn = max(following, self._free_at - self._longest_wait)
        return self._last_turn

    def send(self, size: int, at: float, action: Action, argument: object = None) -> float:
        """Let bytes leave at `at`, or once the bytes before them have left; call `action` when they arrive.

        Return the time at which the last byte left. Without bandwidth and delay, they arrive before this returns.
        """
        if self.instant:
            action(at, argument)
            return at
        if self._seconds_per_byte:
            self.carried += size
            at = self._free_at = max(at, self._free_at) + size * self._seconds_per_byte
        self._add_arrival(at + self.rtt / 2, action, argument)
        return at


class CongestionWindow:
    """How many bytes of a connection may be in flight. `rtt`: seconds."""

    def __init__(self, rtt: float) -> None:
        self.size = INITIAL_WINDOW
        self._rtt = rtt
        self._sent = self._acknowledged = 0  # bytes since the connection began
        self.in_flight: deque[tuple[float, int]] = deque()  # when bytes will be acknowledged, and how many
        self._peak = self._peak_ends = 0  # most bytes in flight of the current window, and where that window ends
        self._last_sent = 0.0

    def room(self, now: float) -> int:
        """Return the bytes that may leave now; 0 or less means none."""
        in_flight = self.in_flight
        while in_flight and in_flight[0][0] <= now:
            size = in_flight.popleft()[1]
            self._acknowledged += size
            if self.size < 2 * self._peak:
                self.size = min(self.size + size, _MOST_WINDOW)
        if not in_flight and self.size > INITIAL_WINDOW:
            time_outs = (now - self._last_sent) / (self._rtt + _LEAST_VARIATION)
            if time_outs >= 1:
                self.size, self._last_sent = max(int(self.size * 0.5 ** int(time_outs)), INITIAL_WINDOW), now
        return self.size - (self._sent - self._acknowledged)

    def sent(self, size: int, now: float) -> None:
        """Count bytes that left."""
        self._last_sent = now
        self.in_flight.append((now + self._rtt, size))
        self._sent += size
        in_flight = self._sent - self._acknowledged
        if in_flight > self._peak or self._acknowledged >= self._peak_ends:
            self._peak, self._peak_ends = in_flight, self._sent
