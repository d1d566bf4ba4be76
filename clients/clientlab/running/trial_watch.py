"""Ends a trial that cannot go on: its deadline is over, its servers are gone, or its requests do not end."""

from __future__ import annotations

import math
import time

from clientlab.measuring.trial_handle import TrialFailed
from clientlab.results.trial import PlannedTrial
from clientlab.running.due import mean_delay
from clientlab.running.execute import Progressed
from clientlab.running.testbed import Testbed
from clientlab.workload.link import Link
from clientlab.workload.load import arrivals_of, is_warm, most_late, requests_in
from clientlab.workload.workload import Workload

FLOOR_SECONDS = 300.0
"""For the start of its process, its libraries, and a few long requests."""

_SHARE_OF_TIMEOUT = 0.1
"""A request that keeps the workload's timeout may on average take this share of it."""

_ROUND_TRIPS = 4
"""Of a request on a new connection: those of TCP, of TLS 1.2 (two), and its own."""


def deadline_of(workload: Workload, in_flight: int, link: Link | None = None) -> float:
    """Return the seconds from the start of its process after which a trial fails: the workload's own, or a default.

    The default is the sum of 5 minutes, twice the timeout, the duration, and for each request, those of the warm-up
    included, its mean delay, four round trips of the link, and a tenth of the timeout. Only the latter is divided by
    the requests in flight: an upstream may serve one request after the other.
    """
    if workload.deadline is not None:
        return workload.deadline
    warm_up = max(workload.warmup, in_flight) if is_warm(workload) else workload.warmup
    requests = warm_up + (requests_in(workload) or 0)
    schedule = arrivals_of(workload)
    duration = (workload.duration or 0.0) if schedule is None else schedule.length + most_late(workload)
    trips = 0.0 if link is None else _ROUND_TRIPS * link.rtt
    each = mean_delay(workload) + trips + _SHARE_OF_TIMEOUT * workload.timeout / in_flight
    return FLOOR_SECONDS + 2 * workload.timeout + duration + requests * each


LOOK_SECONDS = 2.0
"""To look at five processes of servers takes 0.2 ms of CPU time beside the trial, on two cores with Linux."""

FAILURES_IN_A_ROW = 5
"""So many failed requests, without a success between them, call for a health check."""


class TrialWatch:
    """Watches the servers of a running trial. `progress` and `failures` are called twice a second.

    Without it, a client would wait for the timeout of each request, which can take hours.
    """

    def __init__(self, testbed: Testbed, planned: PlannedTrial, workload: Workload, progressed: Progressed) -> None:
        self._testbed = testbed
        self._target = planned.upstream, planned.route, workload
        self._progressed = progressed
        self._looked = time.monotonic()
        self._asked = -math.inf
        self._trouble: str | None = None
        self.warms_up = True

    def progress(self, finished: int) -> None:
        """Look at the servers' processes. `finished`: requests so far. Raise ServerLost."""
        self._progressed(None if self.warms_up else finished)
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._testbed.check()
            self._looked = time.monotonic()

    def failures(self, in_a_row: int) -> None:
        """Make a health check while requests fail. `in_a_row`: failed requests since the last success.

        Raise ServerLost, and TrialFailed if a health check failed and no request succeeded since. A server that answers
        with errors is measured to the end.
        """
        if in_a_row < FAILURES_IN_A_ROW:
            self._trouble = None
        elif self._trouble is not None:
            raise TrialFailed(f"ended after {in_a_row:,} failed requests in a row: {self._trouble}")
        elif time.monotonic() - self._asked > LOOK_SECONDS:
            self._testbed.check()  # a server that is gone is started again, and the trial measured once more
            self._trouble = self._testbed.trouble(*self._target)
            self._asked = time.monotonic()
