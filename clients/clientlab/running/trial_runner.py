"""The trial runner: measures a planned trial on this machine, and reads the servers' counters before and after."""

from __future__ import annotations

import math
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from pydantic import ValidationError

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.measuring.connections import Address
from clientlab.measuring.context import TrialContext
from clientlab.measuring.interpreter import OWN, Interpreter
from clientlab.measuring.measurement import Measurement, measure
from clientlab.measuring.trial_handle import TrialFailed, TrialStalled
from clientlab.results import kept_samples
from clientlab.results.ceiling import Ceiling, ceiling_of
from clientlab.results.document import Placement
from clientlab.results.part import first_problem
from clientlab.results.shard import Reading, ShardReport
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.deadline import deadline_of
from clientlab.running.execute import TrialInterrupted
from clientlab.running.local_shards import LocalShards, Meeting, ShardCallbacks, why_not
from clientlab.running.merged_shards import merged_trial
from clientlab.running.redacted_texts import redact_texts
from clientlab.running.shard_report import LabClock, ShardPlace, report_of
from clientlab.running.trial_folder import keep_output
from clientlab.running.trial_result import Begun, finished_trial, partial_trial, spent
from clientlab.running.trial_watch import Servers, TrialWatch
from clientlab.samples.log_reader import read_measured
from clientlab.workload.link import Link
from clientlab.workload.shards import Share, share_of
from clientlab.workload.workload import Workload


class Testbed(Servers, Protocol):
    """The servers that a trial runs against, and their counters."""

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running. Raises IncompleteRun where it does not start.

        Raises ServerLost where a server that the lab did not start does not answer.
        """

    def base_url(self, upstream: str, route: str) -> str:
        """Scheme, host and port."""

    def address(self, upstream: str, route: str) -> Address:
        """Which connections are connections to it."""

    def ca_file(self, upstream: str, route: str) -> str | None:
        """The PEM file of the CA that clients have to trust; None for each library's own trust store."""

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises ServerLost where a server has ended or does not answer."""


_AHEAD = 0.05
"""Seconds before the start at which a shard reads the machine's counters."""

_Ended = Literal["failed", "lost"]


def _nothing(*_arguments: object) -> None:
    """Default callback."""


@dataclass(frozen=True)
class ShardHost:
    """Where a shard is measured, and how that machine knows the lab's clock: `clock` is read when all are ready."""

    host: str
    clock: Callable[[], LabClock]


class AgreedStart:
    """The start of a shard, on which all shards agree when each of them is ready."""

    def __init__(self, meet: Meeting, clock: Callable[[], LabClock]) -> None:
        self._meet = meet
        self._read_clock = clock
        self.clock = LabClock()
        self.agreed = 0.0

    def meet(self) -> None:
        """Wait until all shards are ready: from then on, the servers have no warm-up to count. Raises TrialFailed."""
        self.agreed = self._meet()
        self.clock = self._read_clock()

    def wait_almost(self) -> None:
        """Return shortly before the start: the machine's counters are read then, and leave the wait out."""
        self._sleep_until(self.agreed - _AHEAD)

    def wait(self) -> None:
        """Return at the start."""
        self._sleep_until(self.agreed)

    def _sleep_until(self, lab_time: float) -> None:
        time.sleep(max(0.0, self.clock.monotonic(lab_time) - time.perf_counter()))


@dataclass(frozen=True)
class TrialRunner:
    """Measures trials as child processes of this one, against the upstreams of a testbed.

    `on_ready` is called behind the warm-up, `on_start` and `on_end` before and after the measured part, `on_resume` in
    the moment before it. The servers' counters are read between the first two, and behind `on_end`. `on_measured` gets
    the trial, its measurement and these readings. `on_leave` is called before the files of a trial that was ended early
    are removed, whatever ended it.
    `interpreters`: name of an environment → its Python. `links`: the testbed behind each link. `ceilings`: those that
    were measured before the first trial. `placement`: the CPUs of each part; None: none is pinned.
    """

    testbed: Testbed
    keep_samples: bool = False
    on_ready: Callable[[], None] = _nothing
    on_start: Callable[[], None] = _nothing
    on_resume: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing
    on_measured: Callable[[Trial, Measurement, Sequence[Reading]], None] = _nothing
    on_leave: Callable[[], None] = _nothing
    interpreters: Mapping[str, Interpreter] = field(default_factory=dict)
    links: Mapping[Link, Testbed] = field(default_factory=dict)
    ceilings: Sequence[Ceiling] = ()
    placement: Placement | None = None

    def __call__(
        self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Callable[[int], None]
    ) -> Trial:
        """The trial with its figures. Its sample log is removed; with `keep_samples`, a compressed copy stays.

        A trial has failed when its process fails, when it does not get on, or when a figure is impossible. It is lost
        where a server has ended, or is frozen. Then its figures are partial: those of the requests that had finished,
        and what its process wrote stays. Raises TrialInterrupted with such a trial, of which no file stays.
        """
        if workload.shards > 1 and not isinstance(workload, Share):
            return self._divided(planned, workload, folder, progressed)
        begun = _begun(planned, workload)
        testbed = self._testbed_of(planned)
        try:
            testbed.serve(planned.upstream)
        except ServerLost as loss:
            return begun.trial(status="lost", reason=str(loss))
        place = log_folder(folder, planned, workload)
        if place.exists():  # of a trial that was killed with the lab: its records would count as this one's
            shutil.rmtree(place)
        try:
            return self._measured(begun, testbed, place, progressed)
        finally:
            self.on_leave()
            keep_output(place)

    def _measured(self, begun: Begun, testbed: Testbed, place: Path, progressed: Callable[[int], None]) -> Trial:
        """The trial, whose files are in the folder `place`."""
        planned, workload, folder = begun.planned, begun.workload, place.parent
        readings: list[Reading] = []

        def start() -> None:
            self.on_ready()
            readings.append(testbed.reading(planned.upstream, planned.route))
            self.on_start()

        def end() -> None:
            self.on_end()
            readings.append(testbed.reading(planned.upstream, planned.route))

        target = planned.upstream, planned.route
        context = TrialContext(
            strategies.find(planned.strategy),
            workload,
            testbed.base_url(*target),
            str(place),
            testbed.address(*target),
            testbed.ca_file(*target),
        )
        watch = TrialWatch(testbed, planned, workload, progressed)
        python = OWN if planned.environment is None else self.interpreters[planned.environment]
        try:
            measurement = measure(
                context, interpreter=python, on_start=start, on_resume=self.on_resume, on_end=end,
                on_progress=watch.progress, on_failures=watch.failures, deadline=begun.deadline_seconds or math.inf,
                cpus=() if self.placement is None else self.placement.client,
            )  # fmt: skip
            ceiling = ceiling_of(planned, self.ceilings)
            trial = finished_trial(begun, measurement, spent(*readings), ceiling, self.placement)
            self.on_measured(trial, measurement, readings)
        except (ServerLost, TrialFailed) as failure:
            return self._ended_early(begun, place, *self._why(begun, failure))
        except KeyboardInterrupt as interrupt:
            trial = self._ended_early(begun, place, "lost", "interrupted")
            shutil.rmtree(place, ignore_errors=True)  # it may not exist yet
            raise TrialInterrupted(trial) from interrupt
        except ValidationError as error:
            return begun.trial(status="failed", reason=f"impossible figure: {first_problem(error)}")
        if self.keep_samples and measurement.tool is None:
            kept_samples.write(folder, trial, workload, measurement.samples, measurement.outcome.began)
        shutil.rmtree(place)
        return trial

    def shard(  # noqa: PLR0913, PLR0917 - a shard's particulars
        self,
        planned: PlannedTrial,
        workload: Workload,
        place: int,
        folder: Path,
        callbacks: ShardCallbacks,
        at: ShardHost,
    ) -> ShardReport | Trial:
        """The report of one shard of a divided trial; or the trial that failed, or was lost, because of it.

        The shard waits for all others when it is ready, and begins at the moment on which they agree.
        """
        share = share_of(workload, place, planned.concurrency)
        start = AgreedStart(callbacks.meet, at.clock)
        reports: list[ShardReport] = []

        def almost() -> None:
            self.on_start()
            start.wait_almost()

        def measured(trial: Trial, measurement: Measurement, readings: Sequence[Reading]) -> None:
            where = ShardPlace(at.host, start.clock, start.agreed)
            reports.append(report_of(trial, share, measurement, readings, where))

        steps = {"on_ready": start.meet, "on_start": almost, "on_resume": start.wait, "on_measured": measured}
        runner = replace(self, ceilings=(), **steps)  # type: ignore[arg-type]
        part = planned.model_copy(update={"concurrency": share.concurrency})
        trial = runner(part, share, folder, callbacks.progressed)
        if reports:
            return reports[0]
        reason = f"shard {place + 1} of {workload.shards} on {at.host}: {trial.reason}"
        return _begun(planned, workload).trial(status=trial.status, reason=reason)

    def _divided(
        self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Callable[[int], None]
    ) -> Trial:
        """The trial, whose shards are processes of this machine."""
        begun, at = _begun(planned, workload), ShardHost(platform.node(), LabClock)
        try:
            self._testbed_of(planned).serve(planned.upstream)  # once, before any shard looks for it
        except ServerLost as loss:
            return begun.trial(status="lost", reason=str(loss))
        try:
            found = LocalShards(workload.shards, progressed).run(
                lambda place, callbacks: self.shard(planned, workload, place, folder, callbacks, at)
            )
            reports = [one for one in found if isinstance(one, ShardReport)]
            return why_not(found) or merged_trial(begun, reports, ceiling_of(planned, self.ceilings), self.placement)
        except KeyboardInterrupt as interrupt:
            for place in range(workload.shards):
                share = share_of(workload, place, planned.concurrency)
                shutil.rmtree(log_folder(folder, planned, share), ignore_errors=True)  # most have none any more
            raise TrialInterrupted(begun.trial(status="lost", reason="interrupted")) from interrupt
        except ValidationError as error:
            return begun.trial(status="failed", reason=f"impossible figure: {first_problem(error)}")

    def _testbed_of(self, planned: PlannedTrial) -> Testbed:
        return self.testbed if planned.link is None else self.links[planned.link]

    def _why(self, begun: Begun, failure: ServerLost | TrialFailed) -> tuple[_Ended, str]:
        """How a trial ended that did not finish, and the reason. A trial that stalled may have lost its server."""
        trouble = None
        if isinstance(failure, TrialStalled):
            trouble = self._testbed_of(begun.planned).trouble(
                begun.planned.upstream, begun.planned.route, begun.workload
            )
        return "lost" if isinstance(failure, ServerLost) else "failed", "; ".join(filter(None, (str(failure), trouble)))

    def _ended_early(self, begun: Begun, place: Path, status: _Ended, reason: str) -> Trial:
        """The trial with partial figures, where requests of its measured part had finished."""
        found = read_measured(place)
        redact_texts(place, begun.workload)
        try:
            trial = partial_trial(begun, found, status, reason)
        except ValidationError as error:
            return begun.trial(status=status, reason=f"{reason}; impossible figure: {first_problem(error)}")
        if self.keep_samples and trial.partial:
            kept_samples.write(place.parent, trial, begun.workload, found, float(found.records["start"][0]))
        return trial


def log_folder(folder: Path, planned: PlannedTrial, workload: Workload) -> Path:
    """Where the sample log of a trial, or of the share that a shard does, is written."""
    shard = f"-shard-{workload.place}" if isinstance(workload, Share) else ""
    return folder / f"trial-{planned.order:04d}{shard}"


def _begun(planned: PlannedTrial, workload: Workload) -> Begun:
    return Begun(planned, workload, utc_now(), deadline_of(workload, planned.concurrency, planned.link))
