"""A clock of the tests' own, and flows through one direction of a link: when bytes leave, and when they arrive."""

from __future__ import annotations

import asyncio
import math

from clientlab.link.agenda import Agenda
from clientlab.link.lossy_flow import flow_of
from clientlab.link.one_way import OneWay

RTT = 0.1


class Sink(asyncio.Transport):
    """What arrives: bytes and times. The end is None."""

    def __init__(self, timeline):
        super().__init__()
        self._timeline = timeline
        self.arrived = []
        self.received = bytearray()

    def write(self, data):
        self.received += data
        self.arrived.append((round(self._timeline.now, 6), len(data)))

    def write_eof(self):
        self.arrived.append((round(self._timeline.now, 6), None))


class Timeline:
    """A clock that stands still, except that `run` lets it pass from event to event."""

    def __init__(self, rtt=RTT, bandwidth=None, buffer=None):
        self.now = 0.0
        self.wake_at = math.inf
        self.agenda = Agenda(lambda: self.now, self._set)
        self.direction = OneWay(self.agenda, rtt, bandwidth, buffer)

    def _set(self, due):
        self.wake_at = due

    def flow(self):
        """A flow whose handshake is done, and its sink."""
        flow = flow_of(self.direction, lambda: self.now, lambda: None)
        flow.target = sink = Sink(self)
        flow.open(self.now)
        return flow, sink

    def run(self, until=math.inf):
        """Let time pass; to the last event without `until`."""
        while self.wake_at <= until and self.wake_at != math.inf:
            self.now = max(self.now, self.wake_at)
            self.agenda.run()
        if until != math.inf:
            self.now = until
