"""The load of an upstream after an outage, relative to the load before it: what retries add when it is back.

A thread reads the upstream's counter of requests when the outage begins, when it ends, and once more when as much time
has passed again, or when the trial is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from clientlab.errors import LabError
from clientlab.results.server_counters import ServerCounters
from clientlab.workload.delays import seconds
from clientlab.workload.link import Link

_KIND = "outage"
_LEAST_SECONDS = 0.1
"""Over less time, a rate would be one of single requests."""


class _Read(NamedTuple):
    """So many requests had reached the upstream at this moment of the monotonic clock."""

    moment: float
    requests: int

    def rate_since(self, before: _Read) -> float | None:
        """Requests per second; None over too short a time."""
        passed = self.moment - before.moment
        return None if passed < _LEAST_SECONDS else (self.requests - before.requests) / passed


class OutageWatch:
    """Watches a trial behind a link whose faults have an outage; the first one, if there are several."""

    def __init__(self, moments: tuple[float, float], reading: Callable[[], ServerCounters]) -> None:
        """`moments`: seconds from the beginning to the outage, and to its end. `reading`: as of a testbed."""
        begins, ends = moments
        self._moments = (0.0, begins, ends, 2 * ends - begins)
        self._reading = reading
        self._reads: list[_Read] = []
        self._over, self._left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """The link's faults begin now."""
        self._thread.start()

    def stop(self) -> None:
        """The trial is over. Waits until the last counter was read."""
        self._over.set()
        self._thread.join()

    def leave(self) -> None:
        """The trial was ended before. Nothing is read any more, so that the next one is not disturbed."""
        self._left.set()
        self._over.set()

    @property
    def ratio(self) -> float | None:
        """The load after the outage over that before; None if the trial ended too early, or a counter is unknown."""
        if len(self._reads) < len(self._moments):
            return None
        first, begin, end, last = self._reads
        before, after = begin.rate_since(first), last.rate_since(end)
        return None if not before or after is None else after / before

    def _watch(self) -> None:
        began = time.monotonic()
        for moment in self._moments:
            self._over.wait(max(0.0, began + moment - time.monotonic()))
            if self._left.is_set() or (self._over.is_set() and len(self._reads) < len(self._moments) - 1):
                return
            try:
                use = self._reading().upstream
            except LabError:  # the trial itself meets the same error
                return
            if use is None or use.requests is None:
                return
            self._reads.append(_Read(time.monotonic(), use.requests))


def outage_watch(link: Link | None, reading: Callable[[], ServerCounters]) -> OutageWatch | None:
    """The watch of a trial behind the link; None without an outage."""
    for fault in () if link is None or link.faults is None else link.faults.each:
        if fault.kind.name == _KIND:
            length, _, moment = fault.value.partition("@")
            return OutageWatch((seconds(moment), seconds(moment) + seconds(length)), reading)
    return None
