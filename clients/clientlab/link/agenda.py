"""Events in the order of their times, and the one timer that is set to the earliest.

Everything that happens on a link happens one delay after something else: a half round trip, or a whole one. So the
events of one delay are due in the order in which they were added, and a queue is a plain deque: adding and taking an
event cost the same with ten connections and with ten thousand.

An event's function gets the time at which the event was due, not the time at which it runs. A sender that goes on
after an acknowledgement counts from there, so the lateness of a timer does not add up over the rounds of a transfer.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

EARLY = 50e-6
"""Seconds that an event may be early, to share a wake-up with its neighbour. A wake-up costs more than an event."""

Action = Callable[[float, Any], None]
"""Called with the time at which the event was due, and the event's argument."""


class EventQueue:
    """Events whose times do not decrease, except by the lateness of the event that added them.

    `waiters`: how many wait for the events of this queue. Without any, an event runs with the next one that wakes the
    process, or when its queue is run before the next departure.
    """

    __slots__ = ("_agenda", "_events", "waiters")

    def __init__(self, agenda: Agenda, waiters: int) -> None:
        self._agenda = agenda
        self._events: deque[tuple[float, Action, Any]] = deque()
        self.waiters = waiters

    def add(self, due: float, action: Action, argument: Any = None) -> None:
        """Call `action(due, argument)` when it is due."""
        self._events.append((due, action, argument))
        if due < self._agenda.set_for and self.waiters:
            self._agenda.expect(due)

    def add_waiter(self) -> None:
        """Let the events of this queue wake the process."""
        self.waiters += 1
        if self._events:
            self._agenda.expect(self._events[0][0])

    def run(self, until: float) -> None:
        """Run the events that are due by then."""
        events = self._events
        while events and events[0][0] <= until:
            due, action, argument = events.popleft()
            action(due, argument)

    def next_due(self) -> float:
        """When the process has to wake for this queue; infinite if it has not."""
        return self._events[0][0] if self._events and self.waiters else math.inf


class Agenda:
    """All queues of a link. `clock()` is the time in seconds; `wake_at(due)` sets the timer, infinite to stop it.

    The timer's callback is `run`.
    """

    def __init__(self, clock: Callable[[], float], wake_at: Callable[[float], None]) -> None:
        self.clock = clock
        self.set_for = math.inf
        self._wake_at = wake_at
        self._queues: list[EventQueue] = []

    def queue(self, waiters: int = 1) -> EventQueue:
        """A new queue, for the events of one delay."""
        self._queues.append(EventQueue(self, waiters))
        return self._queues[-1]

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
