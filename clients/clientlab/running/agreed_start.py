"""The start on which the shards of a trial agree, where each of them is on a machine with a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from clientlab.measuring.measurement import START_AHEAD
from clientlab.results.trial import ClockOffset


@dataclass(frozen=True)
class LabClock:
    """The lab's clock, as a process of this machine knows it: Unix seconds. `offset`: None where it is this machine's.

    The system may set its clock during a trial; the difference to the monotonic clock is read once.
    """

    offset: ClockOffset | None = None
    difference: float = field(default_factory=lambda: time.time() - time.perf_counter())

    def at(self, moment: float) -> float:
        """The lab's time of a moment of the monotonic clock."""
        return moment + self.difference + (0.0 if self.offset is None else self.offset.seconds)

    def monotonic(self, lab_time: float) -> float:
        """The inverse of `at`."""
        return lab_time - self.difference - (0.0 if self.offset is None else self.offset.seconds)


class Meeting(Protocol):
    """Where the shards of a trial wait for each other."""

    def __call__(self) -> float:
        """Wait until all shards are ready; the agreed start, by the lab's clock (Unix seconds)."""


class AgreedStart:
    """The start of a shard on this host, on which all shards agree when each of them is ready.

    `read_clock`: how this machine knows the lab's clock; it is called when all shards are ready.
    """

    def __init__(self, host: str, meet: Meeting, read_clock: Callable[[], LabClock]) -> None:
        self.host = host
        self._meet = meet
        self._read_clock = read_clock
        self.clock = LabClock()
        self.agreed = 0.0

    def meet(self) -> None:
        """Wait until all shards are ready: from then on, the servers have no warm-up to count."""
        self.agreed = self._meet()
        self.clock = self._read_clock()

    def wait_almost(self) -> float:
        """Return shortly before the start, with its moment: the machine's counters are read then, without the wait."""
        moment = self.clock.monotonic(self.agreed)
        time.sleep(max(0.0, moment - START_AHEAD - time.perf_counter()))
        return moment
