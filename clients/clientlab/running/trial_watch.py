"""Ends a trial that cannot go on: its servers are gone, or its requests fail and no health check is answered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from clientlab.measuring.trial_handle import TrialFailed
from clientlab.results.trial import PlannedTrial
from clientlab.running.testbed import Testbed
from clientlab.workload.workload import Workload

LOOK_SECONDS = 2.0
"""To look at five processes of servers takes 0.2 ms of CPU time beside the trial, on two cores with Linux.

Where the kernel does not list the children of a process, psutil reads all processes of the machine: 2.2 ms of 130.
"""

FAILURES_IN_A_ROW = 5
"""So many failed requests, without a success between them, call for a health check."""


class TrialWatch:
    """Watches the servers of a running trial. Both methods are called twice a second, between its requests.

    Without it, a client would wait for the timeout of each request, which can take hours.
    """

    def __init__(
        self, testbed: Testbed, planned: PlannedTrial, workload: Workload, progressed: Callable[[int], None]
    ) -> None:
        self._testbed = testbed
        self._target = planned.upstream, planned.route, workload
        self._progressed = progressed
        self._looked = time.monotonic()
        self._asked = -math.inf
        self._trouble: str | None = None

    def progress(self, finished: int) -> None:
        """Look at the servers' processes. `finished`: requests so far. Raises ServerLost."""
        self._progressed(finished)
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._testbed.check()
            self._looked = time.monotonic()

    def failures(self, in_a_row: int) -> None:
        """Make a health check while requests fail. `in_a_row`: failed requests since the last success.

        Raises ServerLost, and TrialFailed where a health check failed and no request succeeded since. A server that
        answers with errors is measured to the end.
        """
        if in_a_row < FAILURES_IN_A_ROW:
            self._trouble = None
        elif self._trouble is not None:
            raise TrialFailed(
                f"ended after {in_a_row:,} failed requests in a row ({FAILURES_IN_A_ROW} are enough while the health "
                f"check fails, too): {self._trouble}"
            )
        elif time.monotonic() - self._asked > LOOK_SECONDS:
            self._testbed.check()  # a server that is gone is started again, and the trial measured once more
            self._trouble = self._testbed.trouble(*self._target)
            self._asked = time.monotonic()
