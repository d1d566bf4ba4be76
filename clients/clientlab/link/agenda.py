"""Events in the order of their times, and one timer that is precise to some ten microseconds.

An event's function gets the time at which the event was due, not the time at which it runs. A sender that continues
after an acknowledgement counts from there, so the timer's lateness does not add up over the rounds of a transfer.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from clientlab.executors.pacing import KernelTimer, has_kernel_timer

EARLY = 50e-6
"""Seconds that an event may be early, to share a wake-up with its neighbour. A wake-up costs more than an event."""

Action = Callable[[float, Any], None]
"""Called with the time at which the event was due, and the event's argument."""
SetTimer = Callable[[float | None], None]
"""Has a function called at a time of `time.monotonic()`, and no longer at the time before. None: never."""


class Agenda:
    """The events of a link. `clock()` returns seconds; `set_timer`, which the user sets, has `run` called."""

    set_timer: SetTimer

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._set_for = math.inf
        self._numbers = itertools.count()  # order alarms of the same time
        self._alarms: list[tuple[float, int, Action]] = []
        self._queues: list[deque[tuple[float, Action, Any]]] = []

    def add_alarm(self, due: float, action: Action) -> None:
        """Call `action(due, None)` when it is due. Alarms may come in any order."""
        heapq.heappush(self._alarms, (due, next(self._numbers), action))
        if due < self._set_for:
            self._set(due)

    def new_queue(self) -> Callable[[float, Action, Any], None]:
        """Return a function that adds an event to a new queue, whose events come in the order of their times.

        The arrivals of one delay do. A deque takes as long with ten thousand connections as with ten.
        """
        events: deque[tuple[float, Action, Any]] = deque()
        self._queues.append(events)

        def add(due: float, action: Action, argument: Any) -> None:
            events.append((due, action, argument))
            if due < self._set_for:
                self._set(due)

        return add

    def run(self) -> None:
        """Run all events that are due, and set the timer to the next one."""
        self._set_for = -math.inf  # the timer is set once, below
        until = self.clock() + EARLY
        while self._alarms and self._alarms[0][0] <= until:
            due, _, wake = heapq.heappop(self._alarms)
            wake(due, None)
        for events in self._queues:
            while events and events[0][0] <= until:
                due, action, argument = events.popleft()
                action(due, argument)
        waiting: list[Sequence[tuple[float, Any, Any]]] = [self._alarms, *self._queues]
        self._set(min((events[0][0] for events in waiting if events), default=math.inf))

    def _set(self, due: float) -> None:
        self._set_for = due
        self.set_timer(due if due < math.inf else None)


def timer(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> SetTimer:
    """Return the most precise timer that the system has. On Linux, timers of loops count milliseconds."""
    if has_kernel_timer():
        kernel = KernelTimer()
        loop.add_reader(kernel.descriptor, callback)
        return kernel.set
    handles: list[asyncio.TimerHandle] = []

    def set_handle(due: float | None) -> None:
        while handles:
            handles.pop().cancel()
        if due is not None:
            handles.append(loop.call_later(max(0.0, due - time.monotonic()), callback))

    return set_handle
