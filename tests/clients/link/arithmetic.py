"""What a transfer takes by arithmetic that shares no code with the link.

A new connection costs one round trip (RFC 9293, 3.5). A response comes in flights, one per round trip: 10 segments of
1,460 bytes (RFC 6928), then twice the bytes of the flight before (RFC 5681, 3.1), while the flights fill the window.
"""

from __future__ import annotations

import math

FIRST_WINDOW = 14_600


def flights(size, window=FIRST_WINDOW):
    """The bytes of each flight of a body."""
    found = []
    while size > 0:
        found.append(min(size, window))
        size -= found[-1]
        window *= 2
    return found


def window_after(size, window=FIRST_WINDOW):
    """The window that a body leaves behind. A flight that fills no more than half of its window does not enlarge it."""
    for flight in flights(size, window):
        if 2 * flight > window:
            window += flight
    return window


def response_seconds(size, rtt, window=FIRST_WINDOW, rate=math.inf):
    """Seconds from the request's first byte to the response's last. `rate`: bytes per second.

    A flight begins one round trip after the flight before began, or when that one's last byte has left.
    """
    free = 0.0
    for number, flight in enumerate(flights(size, window)):
        free = max(free, number * rtt) + flight / rate
    return rtt + free


def danjou(rtt, delay, requests, *, session):
    """Seconds of requests one by one, each of which the server delays: a new connection for each, or one for all."""
    each = delay + response_seconds(100, rtt)
    return requests * each + rtt * (1 if session else requests)
