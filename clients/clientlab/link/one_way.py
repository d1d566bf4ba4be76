"""One direction of a link, which all connections share: delay, bandwidth, and the buffer before the bottleneck.

Bytes leave one after the other: the last of `size` bytes leaves `size * 8 / bandwidth` seconds after the first, and
the next ones wait until then. That is a token bucket without a burst. It is first come, first served, as in a router
with one queue. Only payload counts: headers would take 3 % of the bandwidth more with full segments.

A buffer bounds the bytes that wait. Segments that arrive while it is full are dropped (drop-tail), whichever connection
they are of. Without a buffer, all wait.
"""

from __future__ import annotations

from clientlab.link.agenda import Action, Agenda
from clientlab.link.congestion_window import INITIAL_WINDOW, SEGMENT, CongestionWindow

MOST_IN_FLIGHT = 64 * 2**20
"""Bytes of a connection's direction without a bandwidth: 5 Gbit/s at 100 ms, more than one process relays."""
MOST_HELD = 512 * 2**20
"""Bytes of all connections of a direction together: in flight, or arrived at receivers that do not read.

When a direction holds so many, each connection goes on with the initial window: none waits for another to be read.
"""
_PIECE_SECONDS = 1e-3


class OneWay:
    """A direction. `rtt`: seconds, half of which is this direction's delay; `bandwidth`: bits per second or None.

    `buffer`: bytes that may wait for the bandwidth; None: all. `held`: bytes that its flows have sent, and that are not
    delivered. `at_once`: bytes of a message that may leave without a queue in its flow. Counted since the start, with a
    limited bandwidth: the bytes that were `carried`, the seconds that they waited for the bandwidth summed over these
    bytes, and the segments that were `dropped`.
    """

    def __init__(self, agenda: Agenda, rtt: float, bandwidth: float | None, buffer: int | None = None) -> None:
        self.instant = rtt == 0 and bandwidth is None
        self.alarms = agenda.alarms
        self.held = self.carried = self.dropped = 0
        self.byte_seconds = 0.0
        self.rtt = rtt
        self.buffer = buffer
        self._arrivals = agenda.queue()
        self._delay = rtt / 2
        self._seconds_per_byte = 0.0 if bandwidth is None else 8 / bandwidth
        self._free_at = 0.0
        self.piece = MOST_IN_FLIGHT
        self._most_window = MOST_IN_FLIGHT
        if bandwidth is not None:
            bytes_per_second = bandwidth / 8
            # Bytes arrive in pieces of a millisecond.
            self.piece = SEGMENT * max(1, round(bytes_per_second * _PIECE_SECONDS / SEGMENT))
            if buffer is None:
                # A window of the bandwidth-delay product keeps the link full; a larger one would only make other
                # connections wait longer, since nothing is dropped.
                self._most_window = int(bytes_per_second * rtt) + INITIAL_WINDOW + self.piece
        self.at_once = self.piece if buffer is None else 0

    def new_window(self) -> CongestionWindow:
        """The window of a connection's sender."""
        return CongestionWindow(self.rtt, self._most_window)

    def room(self, window: CongestionWindow, at: float) -> int:
        """Bytes of a connection that may leave now, by its window and by `MOST_HELD`; 0 or less means none."""
        room = window.room(at)
        if room <= MOST_HELD - self.held:
            return room
        return min(room, max(MOST_HELD - self.held, window.initial_room()))

    def counted(self, name: str) -> dict[str, float]:
        """What was counted since the start, by key. `name`: of the direction."""
        return {
            f"{name}_bytes": self.carried,
            f"{name}_byte_seconds": self.byte_seconds,
            f"{name}_dropped": self.dropped,
        }

    def queued_seconds(self, at: float) -> float:
        """How long a byte that comes at `at` waits for the bandwidth."""
        return max(0.0, self._free_at - at)

    def accepted(self, size: int, at: float) -> int:
        """How many of `size` bytes find a place in the buffer at `at`: all, or the whole segments that fit.

        The others are counted as dropped.
        """
        if self.buffer is None:
            return size
        waiting = self.queued_seconds(at) / self._seconds_per_byte
        if size <= self.buffer - waiting:
            return size
        accepted = min(size, max(0, int((self.buffer - waiting) // SEGMENT)) * SEGMENT)
        self.dropped += -(-(size - accepted) // SEGMENT)
        return accepted

    def send(self, size: int, at: float, action: Action, argument: object = None) -> float:
        """Let `size` bytes leave at `at`, or later if bytes before them still leave. Call `action` when they arrive.

        Returns the time at which the last byte left. Without bandwidth and delay, the bytes arrive before this returns.
        """
        if self.instant:
            action(at, argument)
            return at
        if self._seconds_per_byte:
            begins = max(at, self._free_at)
            self.carried += size
            self.byte_seconds += size * (begins - at)
            at = self._free_at = begins + size * self._seconds_per_byte
        self._arrivals.add(at + self._delay, action, argument)
        return at
