"""What a transfer takes by arithmetic: round trips of TCP, TLS and slow start, and the time of the bytes themselves.

A new connection costs one round trip (RFC 9293, 3.5), TLS 1.3 one more (RFC 8446, 2), TLS 1.2 two (RFC 5246, 7.3). A
response on it comes in flights, one each round trip: 10 segments of 1,460 bytes (RFC 6928), then twice the bytes of the
flight before (RFC 5681, 3.1), as long as the flights fill the window.
"""

from __future__ import annotations

import math

FIRST_WINDOW = 14_600

OPENING = {"plain": 1, "TLS 1.3": 2, "TLS 1.2": 3}
"""Round trips before the request leaves."""


def flights(size: int, window: int = FIRST_WINDOW) -> list[int]:
    """Bytes of each flight of a body."""
    found = []
    while size > 0:
        found.append(min(size, window))
        size -= found[-1]
        window *= 2
    return found


def window_after(size: int, window: int = FIRST_WINDOW) -> int:
    """The window that a body leaves behind. A flight that fills no more than half of its window does not enlarge it."""
    for flight in flights(size, window):
        if 2 * flight > window:
            window += flight
    return window


def response_seconds(size: int, rtt: float, window: int = FIRST_WINDOW, rate: float = math.inf) -> float:
    """From the request's first byte to the response's last, without the server's time. `rate`: bytes per second.

    A flight begins one round trip after the flight before began, or when that one's last byte has left.
    """
    free = 0.0
    for number, flight in enumerate(flights(size, window)):
        free = max(free, number * rtt) + flight / rate
    return rtt + free


def sawtooth(buffer: float) -> float:
    """The share of the bandwidth that one sender uses (RFC 5681). `buffer`: in bandwidth-delay products.

    In units of the product, its window goes from half of 1 + buffer up to 1 + buffer, by one segment a round trip.
    Below 1, the line is idle for the rest of each round trip. Above, bytes wait, and round trips last as long as the
    window.
    """
    if buffer >= 1:
        return 1.0
    idle, full = (1 - buffer) / 2, buffer * (1 + buffer / 2)
    return (idle * (3 + buffer) / 4 + full) / (idle + full)


def danjou(rtt: float, delay: float, requests: int, *, session: bool) -> float:
    """Seconds of requests one by one, each of which the server delays: a new connection for each, or one for all."""
    each = delay + response_seconds(100, rtt)
    return requests * each + rtt * (1 if session else requests)
