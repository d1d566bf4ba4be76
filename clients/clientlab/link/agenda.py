"""Events in the order of their times, and the one timer that is precise to some ten microseconds.

libuv (uvloop) and epoll_wait(2) round time-outs to milliseconds, which is too coarse for a link of 1 ms. On Linux, the
timer is a timerfd: a file descriptor that becomes readable at a time given in nanoseconds. On other systems, asyncio's
own loop waits by kqueue, which takes nanoseconds; there its own timer is enough.

Whatever crosses a link arrives one delay after it left. So arrivals are due in the order in which they were added, and
their queue is a plain deque: an event costs the same with ten connections and with ten thousand.

An event's function gets the time at which the event was due, not the time at which it runs. A sender that goes on
after an acknowledgement counts from there, so the lateness of a timer does not add up over the rounds of a transfer.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_NANOSECONDS = 1_000_000_000


class Timer(Protocol):
    """A timer that calls one function."""

    def start(self, callback: Callable[[], None]) -> None:
        """Name the function. It has to set the timer again, or to stop it."""

    def set(self, due: float) -> None:
        """Call it at `due`, in seconds of `time.monotonic()`, and not at the time set before; infinite: never."""

    def close(self) -> None:
        """Give back what the timer holds."""


def precise_timer(loop: asyncio.AbstractEventLoop) -> Timer:
    """A timer of that loop, not set yet."""
    # A long holds the seconds of struct itimerspec on systems with 64 bits.
    if sys.platform == "linux" and ctypes.sizeof(ctypes.c_long) == 8:
        return TimerDescriptor(loop)
    return LoopTimer(loop)


class TimerDescriptor:
    """timerfd_create(2). Python has it from 3.13 on (`os.timerfd_create`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._loop = loop
        self._set_time = libc.timerfd_settime
        self._descriptor: int = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._spec = (ctypes.c_long * 4)()  # struct itimerspec: seconds, nanoseconds of the interval; of the time

    def start(self, callback: Callable[[], None]) -> None:
        self._loop.add_reader(self._descriptor, callback)

    def set(self, due: float) -> None:
        """Also makes the descriptor unreadable again, so nothing has to read it."""
        at = 0 if due == math.inf else max(1, int(due * _NANOSECONDS))  # 0 stops the timer
        self._spec[2], self._spec[3] = divmod(at, _NANOSECONDS)
        if self._set_time(self._descriptor, _ABSOLUTE, self._spec, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class LoopTimer:
    """The loop's own timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callback: Callable[[], None] = lambda: None
        self._handle: asyncio.TimerHandle | None = None

    def start(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def set(self, due: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        if due != math.inf:
            self._handle = self._loop.call_later(max(0.0, due - time.monotonic()), self._callback)

    def close(self) -> None:
        self.set(math.inf)


EARLY = 50e-6
"""Seconds that an event may be early, to share a wake-up with its neighbour. A wake-up costs more than an event."""

Action = Callable[[float, Any], None]
"""Called with the time at which the event was due, and the event's argument."""


class EventQueue:
    """Events of one delay: their times do not decrease, except by the lateness of the event that added them."""

    __slots__ = ("_agenda", "_events")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._events: deque[tuple[float, Action, Any]] = deque()

    def add(self, due: float, action: Action, argument: Any = None) -> None:
        """Call `action(due, argument)` when it is due."""
        self._events.append((due, action, argument))
        if due < self._agenda.set_for:
            self._agenda.expect(due)

    def run(self, until: float) -> None:
        """Run the events that are due by then."""
        events = self._events
        while events and events[0][0] <= until:
            due, action, argument = events.popleft()
            action(due, argument)

    def next_due(self) -> float:
        """When the first event is due; infinite without any."""
        return self._events[0][0] if self._events else math.inf


class Alarms:
    """Events of any times, which few need: senders whose window is full."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._events: list[tuple[float, int, Action]] = []
        self._added = 0  # orders events of the same time

    def add(self, due: float, action: Action) -> None:
        """Call `action(due, None)` when it is due."""
        self._added += 1
        heapq.heappush(self._events, (due, self._added, action))
        if due < self._agenda.set_for:
            self._agenda.expect(due)

    def run(self, until: float) -> None:
        """Run the events that are due by then."""
        while self._events and self._events[0][0] <= until:
            due, _, action = heapq.heappop(self._events)
            action(due, None)

    def next_due(self) -> float:
        """When the first event is due; infinite without any."""
        return self._events[0][0] if self._events else math.inf


class Agenda:
    """All queues of a link. `clock()` is the time in seconds; `wake_at(due)` sets the timer, infinite to stop it.

    The timer's callback is `run`.
    """

    def __init__(self, clock: Callable[[], float], wake_at: Callable[[float], None]) -> None:
        self.clock = clock
        self.set_for = math.inf
        self._wake_at = wake_at
        self.alarms = Alarms(self)
        self._queues: list[EventQueue | Alarms] = [self.alarms]

    def queue(self) -> EventQueue:
        """A new queue, for the events of one delay."""
        queue = EventQueue(self)
        self._queues.append(queue)
        return queue

    def expect(self, due: float) -> None:
        """Set the timer, unless it is set to an earlier time."""
        if due < self.set_for:
            self.set_for = due
            self._wake_at(due)

    def run(self) -> None:
        """Run all events that are due, and set the timer to the next one."""
        self.set_for = -math.inf  # the timer is set once, below
        until = self.clock() + EARLY
        for queue in self._queues:
            queue.run(until)
        self.set_for = min(queue.next_due() for queue in self._queues)
        self._wake_at(self.set_for)
