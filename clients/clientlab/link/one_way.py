"""One direction of a link: its delay, and its bandwidth, which all connections share.

Bytes leave one after the other: the last of `size` bytes leaves `size * 8 / bandwidth` seconds after the first, and
the next ones wait until then. That is a token bucket without a burst. It is first come, first served, as in a router
with one queue. Only payload counts: headers would take 3 % of the bandwidth more with full segments.
"""

from __future__ import annotations

from typing import Any

from clientlab.link.agenda import Action, Agenda
from clientlab.link.window import INITIAL_WINDOW, SEGMENT, CongestionWindow

MOST_IN_FLIGHT = 64 * 2**20
"""Bytes of a connection's direction without a bandwidth: 5 Gbit/s at 100 ms, more than one process relays."""
MOST_HELD = 512 * 2**20
"""Bytes of all connections of a direction together: in flight, or arrived at receivers that do not read.

When a direction holds so many, each connection goes on with the initial window: none waits for another to be read.
"""
_PIECE_SECONDS = 1e-3


class OneWay:
    """A direction. `rtt`: seconds, half of which is this direction's delay; `bandwidth`: bits per second or None.

    `held`: bytes that its flows have sent, and that are not delivered.
    """

    def __init__(self, agenda: Agenda, rtt: float, bandwidth: float | None) -> None:
        self.instant = rtt == 0 and bandwidth is None
        self.alarms = agenda.alarms
        self.held = 0
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
            at = self._free_at = max(at, self._free_at) + size * self._seconds_per_byte
        self._arrivals.add(at + self._delay, action, argument)
        return at
