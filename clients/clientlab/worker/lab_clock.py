"""The lab's clock as a worker knows it, from round trips as in NTP (RFC 5905)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from clientlab.results.trial import ClockOffset
from clientlab.running.shard_report import LabClock
from clientlab.worker.lab_client import LOST_ERRORS, LabClient, Refused, WrongToken

_FEWEST_ROUND_TRIPS = 3
_MOST_ROUND_TRIPS = 20

_EXACT_ENOUGH = 0.0005
"""Seconds of error, after which no more round trips are made."""

_PAUSE = 0.01
"""Seconds between two of them: what disturbs the first may be over before the second."""


@dataclass(frozen=True)
class RoundTrip:
    """When a request was sent and its answer came, by the worker's clock, and the time in the answer. Unix seconds."""

    sent: float
    lab: float
    received: float

    @property
    def offset(self) -> ClockOffset:
        """The lab's clock minus the worker's, if both ways took equally long."""
        return ClockOffset(
            seconds=self.lab - (self.sent + self.received) / 2, error_seconds=(self.received - self.sent) / 2
        )


def offset_of(round_trips: Iterable[RoundTrip]) -> ClockOffset:
    """The offset by the shortest round trip: the difference of its two ways is the smallest."""
    return min((one.offset for one in round_trips), key=lambda offset: offset.error_seconds)


class EstimatedClock:
    """The lab's clock, estimated anew with each `estimate`."""

    def __init__(self, lab: LabClient) -> None:
        self._lab = lab
        self.now: LabClock | None = None

    def estimate(self) -> None:
        """Estimate the offset. A lab that is away, or refuses this worker, leaves the last estimate."""
        difference = time.time() - time.perf_counter()
        made: list[RoundTrip] = []
        try:
            with self._lab.connected() as ask:
                while len(made) < _MOST_ROUND_TRIPS:
                    sent = time.perf_counter()
                    answer = ask("/api/clock")
                    made.append(RoundTrip(sent + difference, answer["seconds"], time.perf_counter() + difference))
                    if len(made) >= _FEWEST_ROUND_TRIPS and offset_of(made).error_seconds <= _EXACT_ENOUGH:
                        break
                    time.sleep(_PAUSE)
        except (*LOST_ERRORS, Refused, WrongToken):
            pass  # heartbeats and the result tell the same
        if made:
            self.now = LabClock(offset_of(made), difference)
