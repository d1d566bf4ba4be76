"""The network path of a link: events, delay, bandwidth and congestion windows.

The last of `size` bytes leaves `size * 8 / bandwidth` seconds after the first, and the
next ones wait until then. Only payload counts. Nothing is lost: while the bandwidth is
full, the link stops reading the senders' sockets.

A congestion window begins with 10 segments (RFC 6928) and grows by the acknowledged
bytes (RFC 5681, 3.1). As in Linux, it does not grow while at most half of it is used
(`tcp_is_cwnd_limited`), and it is halved for each retransmission time-out that the
connection was idle (RFC 2861, `tcp_cwnd_restart`).

Actions get the time at which their event was due, so the timer's lateness does not add
up over a transfer.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from clientlab.executors.pacing import KernelTimer, has_kernel_timer

SEGMENT = 1460  # bytes of payload: Ethernet's 1,500 minus two headers of 20
INITIAL_WINDOW = 10 * SEGMENT
_MOST_WINDOW = 64 * 2**20  # 5 Gbit/s at 100 ms, more than one process can relay
# Seconds by which the time-out exceeds the round trip at least in Linux (TCP_RTO_MIN).
_LEAST_VARIATION = 0.2
_PIECE_SECONDS = 1e-3
_LEAST_QUEUE = 64 * 2**10
_ROUNDING = 1e-9
# Seconds that an event may be early: sharing a neighbour's wake-up saves CPU time.
_EARLY = 50e-6

Action = Callable[[float, Any], None]
"""A function of the time at which an event was due, and of the event's argument."""

_Event = tuple[float, Action, Any]
"""When it is due, what to do, and its argument."""

SetTimer = Callable[[float | None], None]
"""Sets the timer to a time of `time.monotonic()`, or stops it with None."""


class Agenda:
    """The events of a link.

    The owner sets `set_timer`, and calls `run` when that timer fires.
    """

    set_timer: SetTimer

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._set_for = math.inf
        self._numbers = itertools.count()  # order alarms of the same time
        self._alarms: list[tuple[float, int, Action]] = []  # a heap
        self._queues: list[deque[_Event]] = []

    def add_alarm(self, due: float, action: Action) -> None:
        """Call `action(due, None)` when it is due. Alarms can be added in any order."""
        heapq.heappush(self._alarms, (due, next(self._numbers), action))
        if due < self._set_for:
            self._set(due)

    def new_queue(self) -> Callable[[float, Action, Any], None]:
        """Return a function that adds events to a new queue.

        It is called in the order of their times, like arrivals after a constant delay.
        """
        events: deque[_Event] = deque()
        self._queues.append(events)

        def add(due: float, action: Action, argument: Any) -> None:
            events.append((due, action, argument))
            if due < self._set_for:
                self._set(due)

        return add

    def run(self) -> None:
        """Take all actions that are due, and set the timer for the next one."""
        self._set_for = -math.inf  # so that no action sets the timer
        until = self.clock() + _EARLY
        while self._alarms and self._alarms[0][0] <= until:
            due, _, wake = heapq.heappop(self._alarms)
            wake(due, None)
        for events in self._queues:
            while events and events[0][0] <= until:
                due, action, argument = events.popleft()
                action(due, argument)
        dues = [events[0][0] for events in self._queues if events]
        if self._alarms:
            dues.append(self._alarms[0][0])
        self._set(min(dues, default=math.inf))

    def _set(self, due: float) -> None:
        self._set_for = due
        self.set_timer(None if due == math.inf else due)


def make_timer(
    loop: asyncio.AbstractEventLoop, callback: Callable[[], None]
) -> SetTimer:
    """Return the most precise timer of the system: event loops count milliseconds."""
    if has_kernel_timer():
        kernel = KernelTimer()
        loop.add_reader(kernel.descriptor, callback)
        return kernel.set
    handles: list[asyncio.TimerHandle] = []

    def set_handle(due: float | None) -> None:
        while handles:
            handles.pop().cancel()
        if due is not None:
            delay = due - time.monotonic()
            handles.append(loop.call_later(max(0.0, delay), callback))

    return set_handle


class OneWay:
    """One direction of a link, which all connections share.

    `rtt`: seconds; `bandwidth`: bits per second, or None; `carried`: bytes since the
    start; `piece`: the most bytes that leave at once, worth a millisecond. The
    bandwidth is full while bytes wait for longer than one round trip and than 64 KiB
    take.
    """

    def __init__(self, agenda: Agenda, rtt: float, bandwidth: float | None) -> None:
        self.rtt = rtt
        self.clock = agenda.clock
        self.add_alarm = agenda.add_alarm
        self.instant = rtt == 0 and bandwidth is None
        self.carried = 0
        self.piece = _MOST_WINDOW
        self._add_arrival = agenda.new_queue()
        self._free_at = 0.0
        self._last_turn = 0.0
        self._seconds_per_byte = 0.0
        self._longest_wait = math.inf
        if bandwidth is not None:
            self._seconds_per_byte = 8 / bandwidth
            segments = round(_PIECE_SECONDS / self._seconds_per_byte / SEGMENT)
            self.piece = SEGMENT * max(1, segments)
            self._longest_wait = max(rtt, _LEAST_QUEUE * self._seconds_per_byte)

    def is_full(self, at: float) -> bool:
        return self._free_at - at > self._longest_wait + _ROUNDING

    def next_turn(self) -> float:
        """Return when a sender may send its next piece while the bandwidth is full.

        Each call takes one turn.
        """
        following = self._last_turn + self.piece * self._seconds_per_byte
        self._last_turn = max(following, self._free_at - self._longest_wait)
        return self._last_turn

    def send(
        self, size: int, at: float, action: Action, argument: object = None
    ) -> float:
        """Let bytes leave at `at`, or after those before them, and return when.

        `action` is called when they arrive: without bandwidth and delay, before this
        returns.
        """
        if self.instant:
            action(at, argument)
            return at
        if self._seconds_per_byte:
            self.carried += size
            at = max(at, self._free_at) + size * self._seconds_per_byte
            self._free_at = at
        self._add_arrival(at + self.rtt / 2, action, argument)
        return at


class CongestionWindow:
    """The number of bytes of a connection that can be in flight. `rtt`: seconds."""

    def __init__(self, rtt: float) -> None:
        self.size = INITIAL_WINDOW
        self.in_flight: deque[tuple[float, int]] = deque()
        """When bytes will be acknowledged, and how many."""
        self._rtt = rtt
        # Bytes since the connection began.
        self._sent = 0
        self._acknowledged = 0
        # The most bytes in flight of the current window, and where that window ends.
        self._peak = 0
        self._peak_ends = 0
        self._last_sent = 0.0

    def room(self, now: float) -> int:
        """Return how many bytes can leave now: none if it is 0 or less."""
        in_flight = self.in_flight
        while in_flight and in_flight[0][0] <= now:
            _, size = in_flight.popleft()
            self._acknowledged += size
            if self.size < 2 * self._peak:
                self.size = min(self.size + size, _MOST_WINDOW)
        if not in_flight and self.size > INITIAL_WINDOW:
            idle = now - self._last_sent
            time_outs = int(idle / (self._rtt + _LEAST_VARIATION))
            if time_outs >= 1:
                halved = int(self.size * 0.5**time_outs)
                self.size = max(halved, INITIAL_WINDOW)
                self._last_sent = now
        return self.size - (self._sent - self._acknowledged)

    def sent(self, size: int, now: float) -> None:
        self._last_sent = now
        self.in_flight.append((now + self._rtt, size))
        self._sent += size
        in_flight = self._sent - self._acknowledged
        if in_flight > self._peak or self._acknowledged >= self._peak_ends:
            self._peak = in_flight
            self._peak_ends = self._sent
