"""The trial runner: measures a planned trial on this machine, and reads the servers' counters before and after."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.measuring.connections import Address
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import measure
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.results import kept_samples
from clientlab.results.trial import PlannedTrial, Trial, first_problem, utc_now
from clientlab.running.execute import TrialLost
from clientlab.running.trial_result import Reading, finished_trial, spent
from clientlab.workload.workload import Workload

_LOOK_SECONDS = 2.0
"""To look at all processes of the servers takes a millisecond beside the trial."""


class Testbed(Protocol):
    """The servers that a trial runs against, and their counters."""

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running. Raises IncompleteRun where it does not start."""

    def base_url(self, upstream: str, route: str) -> str:
        """Scheme, host and port."""

    def address(self, upstream: str, route: str) -> Address:
        """Which connections are connections to it."""

    def ca_file(self, upstream: str, route: str) -> str | None:
        """The PEM file of the CA that clients have to trust; None for each library's own trust store."""

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises ServerLost where a server has ended or does not answer."""

    def check(self) -> None:
        """Raises ServerLost where a server of this machine has ended, or is frozen."""


def _nothing() -> None:
    """Default callback."""


class ServerWatch:
    """Ends a trial whose servers are gone. Called with the number of finished requests, twice a second.

    Without it, a client would wait for the timeout of each request, which can take hours.
    """

    def __init__(self, testbed: Testbed, progressed: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._progressed = progressed
        self._looked = time.monotonic()

    def __call__(self, finished: int) -> None:
        """Raises ServerLost where a server has ended, or is frozen."""
        self._progressed(finished)
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._testbed.check()
            self._looked = time.monotonic()


@dataclass(frozen=True)
class TrialRunner:
    """Measures trials as child processes of this one, against the upstreams of a testbed.

    `on_start` and `on_end` are called directly before and after the measured part of each trial.
    """

    testbed: Testbed
    keep_samples: bool = False
    on_start: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing

    def __call__(
        self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Callable[[int], None]
    ) -> Trial:
        """The trial with its figures. Its sample log is removed; with `keep_samples`, a compressed copy stays.

        A trial has failed when its process fails, or when a figure is impossible. Then its log and samples stay.
        Raises TrialLost where a server has ended, or is frozen.
        """
        started = utc_now()
        self.testbed.serve(planned.upstream)
        place = folder / f"trial-{planned.order:04d}"
        readings: list[Reading] = []

        def start() -> None:
            readings.append(self.testbed.reading(planned.upstream, planned.route))
            self.on_start()

        def end() -> None:
            self.on_end()
            readings.append(self.testbed.reading(planned.upstream, planned.route))

        target = planned.upstream, planned.route
        context = TrialContext(
            strategies.find(planned.strategy),
            workload,
            self.testbed.base_url(*target),
            str(place),
            self.testbed.address(*target),
            self.testbed.ca_file(*target),
        )
        try:
            watch = ServerWatch(self.testbed, progressed)
            measurement = measure(context, on_start=start, on_end=end, on_progress=watch)
            trial = finished_trial(planned, workload, measurement, spent(*readings), started)
        except ServerLost as loss:
            raise TrialLost(str(loss)) from loss
        except TrialFailed as failure:
            return Trial.of(planned, started=started, status="failed", reason=str(failure))
        except ValidationError as error:
            reason = f"impossible figure: {first_problem(error)}"
            return Trial.of(planned, started=started, status="failed", reason=reason)
        if self.keep_samples and measurement.tool is None:
            kept_samples.write(folder, trial, workload, measurement.samples, measurement.outcome.began)
        shutil.rmtree(place)
        return trial
