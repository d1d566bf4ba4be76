"""Ends a trial that cannot go on: its deadline is over, its servers are gone, or its requests keep failing."""

from __future__ import annotations

import math
import time

from clientlab.running.execute import Progressed
from clientlab.running.schedule import estimate_mean_delay
from clientlab.running.testbed import Testbed
from clientlab.trial.process_handle import TrialFailed
from clientlab.trial.result import PlannedTrial
from clientlab.workload.load import arrivals_of, is_warm, most_late, requests_in
from clientlab.workload.values import Link
from clientlab.workload.workload import Workload, stream_seconds

_FLOOR_SECONDS = 300.0  # for the start of the trial's process, its libraries, and a few long requests
_SHARE_OF_TIMEOUT = 0.1  # of the workload's timeout, which a request that succeeds may take on average
_ROUND_TRIPS = 4  # of a request on a new connection: one for TCP, two for TLS 1.2, and its own

_LOOK_SECONDS = 2.0  # to look at the processes of five servers takes 0.2 ms of CPU time beside the trial
FAILURES_IN_A_ROW = 5  # after them, without a success in between, the lab makes a health check


def compute_deadline(workload: Workload, in_flight: int, link: Link | None = None) -> float:
    """Return the seconds from the start of its process after which a trial fails: the workload's own, or a default.

    The default is 5 minutes, twice the timeout, and the duration, plus for each request, including the warm-up, its
    mean delay, four round trips of the link, and a tenth of the timeout. Only this tenth is divided by the requests in
    flight: an upstream may serve one request after the other.
    """
    if workload.deadline is not None:
        return workload.deadline
    warm_up = max(workload.warmup, in_flight) if is_warm(workload) else workload.warmup
    requests = warm_up + (requests_in(workload) or 0)
    schedule = arrivals_of(workload)
    duration = (workload.duration or 0.0) if schedule is None else schedule.length + most_late(workload)
    trips = 0.0 if link is None else _ROUND_TRIPS * link.rtt
    waits = max(estimate_mean_delay(workload), stream_seconds(workload))
    each = waits + _SHARE_OF_TIMEOUT * workload.timeout / in_flight + trips
    return _FLOOR_SECONDS + 2 * workload.timeout + duration + requests * each


class TrialWatch:
    """Watches the servers of a running trial, so that it does not wait for the timeout of each request."""

    def __init__(self, testbed: Testbed, planned: PlannedTrial, workload: Workload, progressed: Progressed) -> None:
        self._testbed, self._target = testbed, (*planned.target, workload)
        self._progressed = progressed
        self._looked, self._asked = time.monotonic(), -math.inf
        self._trouble: str | None = None
        self.warms_up = True

    def report_progress(self, finished: int) -> None:
        """Look at the servers' processes. `finished`: requests so far. Raise ServerLost."""
        self._progressed(None if self.warms_up else finished)
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._testbed.check()
            self._looked = time.monotonic()

    def check_failures(self, in_a_row: int) -> None:
        """Make a health check while requests fail. `in_a_row`: failed requests since the last success.

        Raise ServerLost, or TrialFailed if a health check failed and no request has succeeded since.
        """
        if in_a_row < FAILURES_IN_A_ROW:
            self._trouble = None
        elif self._trouble is not None:
            raise TrialFailed(f"ended after {in_a_row:,} failed requests in a row: {self._trouble}")
        elif time.monotonic() - self._asked > _LOOK_SECONDS:
            self._testbed.check()  # a server that is gone is started again, and the trial measured once more
            self._trouble = self._testbed.trouble(*self._target)
            self._asked = time.monotonic()
