"""A clock of the tests' own, and flows through one direction of a link: when bytes leave, and when they arrive."""

from __future__ import annotations

import asyncio
import math

from clientlab.link.agenda import Agenda
from clientlab.link.path import OneWay
from clientlab.link.relay import Flow

RTT = 0.1


class Sink(asyncio.Transport):
    """What arrives: bytes and times. The end is None."""

    def __init__(self, timeline):
        super().__init__()
        self._timeline = timeline
        self.arrived = []
        self.received = bytearray()
        self.reading = True

    def write(self, data):
        self.received += data
        self.arrived.append((round(self._timeline.now, 6), len(data)))

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def write_eof(self):
        self.arrived.append((round(self._timeline.now, 6), None))


class Timeline:
    """A clock that stands still, except that `run` lets it pass from event to event."""

    def __init__(self, rtt=RTT, bandwidth=None):
        self.now = 0.0
        self.wake_at = math.inf
        self.agenda = Agenda(lambda: self.now)
        self.agenda.set_timer = self._set
        self.direction = OneWay(self.agenda, rtt, bandwidth)

    def _set(self, due):
        self.wake_at = math.inf if due is None else due

    def flow(self, *, is_open=True):
        """A flow and its sink. `is_open`: its handshake is done."""
        flow = Flow(self.direction)
        flow.target = sink = Sink(self)
        flow.arrived_end = sink.write_eof
        if is_open:
            flow.open(self.now)
        return flow, sink

    def run(self, until=math.inf):
        """Let time pass; to the last event without `until`."""
        while self.wake_at <= until and self.wake_at != math.inf:
            self.now = max(self.now, self.wake_at)
            self.agenda.run()
        if until != math.inf:
            self.now = until
