"""The trial runner: measures a planned trial on this machine.

It reads the servers' counters before and after. It ends a trial that cannot go on: its
deadline is over, its servers are gone, or its requests keep failing.
"""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from pydantic import ValidationError

from clientlab import strategies, units
from clientlab.analysis import kept_samples
from clientlab.analysis.finish import Begun, finish_trial
from clientlab.analysis.shards import AgreedStart, ShardReport, make_shard_report
from clientlab.errors import ERROR_OTHER, FieldError, LabError, ServerLost
from clientlab.observing.measurement import (
    TrialEvents,
    measure,
    measure_by_steps,
    nothing,
    take_steps,
)
from clientlab.observing.process_handle import (
    OWN,
    Interpreter,
    TrialFailed,
    TrialStalled,
    TrialVanished,
)
from clientlab.observing.samples import read_measured
from clientlab.results.plan import Plan
from clientlab.results.server_counters import (
    FaultCounts,
    ServerCounters,
    combine_counters,
)
from clientlab.results.trial import Placement, PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted
from clientlab.running.schedule import estimate_mean_delay
from clientlab.settings import UPSTREAMS, find_upstream
from clientlab.trial.context import OUTPUT_FILES, PeerAddress, TrialContext
from clientlab.trial.sample_log import RECORD_SIZE
from clientlab.workload.faults import Faults
from clientlab.workload.load import (
    arrivals_of,
    count_warm_up,
    expected_requests,
    most_late,
    requests_in,
)
from clientlab.workload.parts import Load
from clientlab.workload.values import Link
from clientlab.workload.workload import (
    ShardWorkload,
    Workload,
    stream_seconds,
    take_share,
)

# Seconds for which a server surely keeps idle connections: gunicorn 2, uvicorn and
# Node.js 5; the lab's own over 60.
_REST = 1.5
_OWN_REST = 30.0

# For the start of the trial's process, its libraries, and a few long requests.
_FLOOR_SECONDS = 300.0
# Of the workload's timeout, which a request that succeeds may take on average.
_SHARE_OF_TIMEOUT = 0.1
# Of a request on a new connection: one for TCP, two for TLS 1.2, and its own.
_ROUND_TRIPS = 4

# To look at the processes of five servers takes 0.2 ms of CPU time beside the trial.
_LOOK_SECONDS = 2.0
# After them, without a success in between, the lab makes a health check.
FAILURES_IN_A_ROW = 5
OUTAGE_SECONDS = 15.0
"""For which a server of the user may not answer before its trial ends, or before the
next one begins.
"""

_Steps = Generator[None, None, Trial | ShardReport]
"""Return a report if other shards are on other machines."""


class FaultControl(Protocol):
    """What sets the faults of an upstream."""

    def begin(self, faults: Faults | None, seed: int) -> None:
        """Let the upstream begin with these faults. Raise ServerLost."""

    def read(self) -> FaultCounts:
        """Return what it counted since then. Raise ServerLost."""


class Testbed(Protocol):
    """The servers that a trial runs against.

    Upstream and route are the names that the experiment uses.
    """

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it runs.

        Raise IncompleteRun, or ServerLost if somebody else starts it.
        """

    def address(self, upstream: str, route: str) -> PeerAddress:
        """Return where clients send their requests."""

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """Return the counters now.

        Raise ServerLost if a server has ended or does not answer.
        """

    def faults_of(self, upstream: str) -> FaultControl:
        """Return what sets the faults of the upstream. Raise LabError without any."""

    def check(self) -> None:
        """Raise ServerLost if a server of this machine has ended."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Return why a health check over this route fails now, or None."""


@dataclass(frozen=True)
class TrialRunner:
    """Measures trials as child processes, against the upstreams of a testbed."""

    testbed: Testbed
    keep_samples: bool = False

    on_start: Callable[[], None] = nothing
    """Before the measured part, after the servers' counters are read."""

    on_end: Callable[[], None] = nothing
    """After the measured part, before the servers' counters are read."""

    on_leave: Callable[[], None] = nothing
    """Before the files of a trial are removed, whatever ended it."""

    interpreters: Mapping[str, Interpreter] = field(default_factory=dict)
    """By the names of environments."""

    links: Mapping[Link, Testbed] = field(default_factory=dict)
    """The testbed behind each link."""

    placement: Placement | None = None
    """The CPUs of each part. None pins nothing."""

    def __call__(
        self,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,
        progressed: Progressed,
    ) -> Trial:
        """Measure a trial, whose shards are processes on this machine.

        Raise TrialInterrupted.

        It has failed if its process fails or stalls, or if a figure is impossible; it
        is lost if a server has ended. Then it has the figures of the finished requests,
        and the output of its process is kept.
        """
        steps = self._steps(planned, workload, folder, progressed)
        return cast("Trial", take_steps(steps))

    def measure_shard(  # noqa: PLR0913, PLR0917 - a shard's particulars
        self,
        planned: PlannedTrial,
        workload: Workload,
        index: int,
        folder: Path,
        progressed: Progressed,
        start: AgreedStart,
    ) -> ShardReport | Trial:
        """Measure one shard when those on other machines are ready.

        Return the trial if it failed because of it.
        """
        share = take_share(workload, index, planned.concurrency)
        part = planned.updated(concurrency=share.load.concurrency)
        result = take_steps(self._steps(part, share, folder, progressed, start))
        if isinstance(result, ShardReport):
            return result
        place = f"shard {index + 1} of {workload.shards} on {start.host}"
        whole = begin(planned, workload, utc_now())
        return whole.end(
            "lost" if result.status == "lost" else "failed",
            f"{place}: {result.reason}",
        )

    def by_turns(
        self,
        trials: Sequence[tuple[PlannedTrial, Workload]],
        folder: Path,
        progressed: Progressed,
    ) -> list[Trial]:
        """Measure trials whose processes live side by side and take turns.

        They have a new order for each slice. Raise TrialInterrupted with all of the
        trials.
        """
        counts: dict[int, int] = {}

        def count(place: int, finished: int | None) -> None:
            if finished is not None:
                counts[place] = finished
            progressed(sum(counts.values()) if counts else None)

        steps = [
            self._steps(planned, workload, folder, partial(count, place))
            for place, (planned, workload) in enumerate(trials)
        ]
        ended: dict[int, Any] = {}
        order = random.Random(trials[0][1].seed)  # noqa: S311 - an order, not a secret
        with contextlib.ExitStack() as stack:
            for steps_of_trial in steps:
                stack.callback(steps_of_trial.close)
            try:
                while len(ended) < len(steps):
                    waiting = [
                        place for place in range(len(steps)) if place not in ended
                    ]
                    order.shuffle(waiting)
                    for place in waiting:
                        try:
                            next(steps[place])
                        except StopIteration as end:
                            ended[place] = end.value
            except KeyboardInterrupt as interrupt:
                raise TrialInterrupted(*_interrupt_all(steps, interrupt)) from interrupt
        return [ended[place] for place in range(len(steps))]

    def _steps(
        self,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,
        progressed: Progressed,
        start: AgreedStart | None = None,
    ) -> _Steps:
        """Measure a trial in steps (see `measure_by_steps`).

        The caller may throw KeyboardInterrupt into it.
        """
        begun = begin(planned, workload, utc_now())
        own_folder = log_folder(folder, planned, workload)
        if own_folder.exists():
            # The lab was killed in a trial, whose records would count as this one's.
            shutil.rmtree(own_folder)
        try:
            result = yield from self._measure(begun, own_folder, progressed, start)
            shutil.rmtree(own_folder)
        except (ServerLost, TrialFailed) as failure:
            is_lost = isinstance(failure, ServerLost | TrialVanished)
            status: Literal["lost", "failed"] = "lost" if is_lost else "failed"
            reason = self._explain(failure, begun)
            return self._end_early(begun, own_folder, status, reason)
        except KeyboardInterrupt as interrupt:
            trial = self._end_early(begun, own_folder, "lost", "interrupted")
            shutil.rmtree(own_folder, ignore_errors=True)  # it may not exist yet
            raise TrialInterrupted(trial) from interrupt
        except ValidationError as error:
            return begun.refuse(error)
        finally:
            self.on_leave()
            _keep_output(own_folder)
        return result

    def _measure(
        self,
        begun: Begun,
        own_folder: Path,
        progressed: Progressed,
        start: AgreedStart | None,
    ) -> _Steps:
        planned, workload = begun.planned, begun.workload
        testbed, target = self._testbed_of(planned), planned.target
        watch = ServerWatch(testbed, planned, workload, progressed)
        readings: list[ServerCounters] = []  # before and after each slice

        def read_before() -> float | None:
            watch.warms_up = False
            if start is not None:
                start.meet()
            readings.append(testbed.reading(*target))
            if workload.faults is not None:
                testbed.faults_of(target[0]).begin(workload.faults, workload.seed)
            self.on_start()
            return None if start is None else start.wait_almost()

        def read_after() -> None:
            self.on_end()
            readings.append(testbed.reading(*target))

        testbed.serve(target[0])
        if workload.faults is not None:
            # The warm-up meets none, although its requests have numbers, too.
            testbed.faults_of(target[0]).begin(None, workload.seed)
        context = TrialContext(
            strategies.find(planned.strategy),
            workload,
            testbed.address(*target),
            str(own_folder),
            slices=planned.slices,
            least_waves=planned.least_waves,
            rest=_find_rest(planned.upstream),
        )
        measurement = yield from measure_by_steps(
            context,
            TrialEvents(read_before, read_after, watch.look),
            interpreter=self._interpreter_of(planned.environment),
            deadline=begun.deadline_seconds or math.inf,
            cpus=() if self.placement is None else self.placement.client,
        )
        if start is not None and isinstance(workload, ShardWorkload):
            before, after = readings
            return make_shard_report(workload, measurement, before, after, start)
        faults = None
        if workload.faults is not None:
            faults = testbed.faults_of(target[0]).read()
        growth = _sum_growth(readings)
        trial = finish_trial(begun, measurement, growth, self.placement, faults=faults)
        if self.keep_samples and measurement.tool is None:
            kept_samples.write(
                own_folder.parent,
                trial,
                workload,
                measurement.samples,
                measurement.outcome.began,
            )
        return trial

    def _testbed_of(self, planned: PlannedTrial) -> Testbed:
        return self.testbed if planned.link is None else self.links[planned.link]

    def _interpreter_of(self, environment: str | None) -> Interpreter:
        return OWN if environment is None else self.interpreters[environment]

    def _explain(self, failure: Exception, begun: Begun) -> str:
        """Return why a trial failed, and what ails its server if it stalled."""
        reason = str(failure)
        if isinstance(failure, TrialStalled):
            planned = begun.planned
            testbed = self._testbed_of(planned)
            trouble = testbed.trouble(*planned.target, begun.workload)
            if trouble:
                reason += f"; {trouble}"
            if begun.workload.faults is not None:
                reason += f"; its faults: {begun.workload.faults}"
        return reason

    def _end_early(
        self,
        begun: Begun,
        own_folder: Path,
        status: Literal["failed", "lost"],
        reason: str,
    ) -> Trial:
        samples = read_measured(own_folder)
        trial = begun.end(status, reason, samples)
        if self.keep_samples and trial.partial:
            began = float(samples.records["start"][0])
            kept_samples.write(own_folder.parent, trial, begun.workload, samples, began)
        return trial


def begin(planned: PlannedTrial, workload: Workload, started: str) -> Begun:
    """Return a trial that was started at this time (ISO 8601), with its deadline."""
    deadline = compute_deadline(workload, planned.concurrency, planned.link)
    return Begun(planned, workload, started, deadline)


def compute_deadline(
    workload: Workload, in_flight: int, link: Link | None = None
) -> float:
    """Return the seconds after which a trial fails, from the start of its process.

    They are the workload's own, or a default: 5 minutes, twice the timeout, and the
    duration, plus for each request, including the warm-up, its mean delay, four round
    trips of the link, and a tenth of the timeout. Only this tenth is divided by the
    requests in flight: an upstream may serve one request after the other.
    """
    if workload.limits.deadline is not None:
        return workload.limits.deadline
    warm_up = count_warm_up(workload, in_flight) or workload.load.warmup
    requests = warm_up + (requests_in(workload) or 0)
    schedule = arrivals_of(workload)
    duration = workload.load.duration or 0.0
    if schedule is not None:
        duration = schedule.length + most_late(workload)
    trips = 0.0 if link is None else _ROUND_TRIPS * link.rtt
    timeout = workload.limits.timeout
    waits = max(estimate_mean_delay(workload), stream_seconds(workload))
    each = waits + _SHARE_OF_TIMEOUT * timeout / in_flight + trips
    return _FLOOR_SECONDS + 2 * timeout + duration + requests * each


class ServerWatch:
    """Looks after the servers of a running trial, so that it does not wait for the
    timeout of each request.
    """

    def __init__(
        self,
        testbed: Testbed,
        planned: PlannedTrial,
        workload: Workload,
        progressed: Progressed,
    ) -> None:
        self._testbed = testbed
        self._target = (*planned.target, workload)
        self._progressed = progressed
        self._looked = time.monotonic()
        self._asked = -math.inf
        self._trouble: str | None = None
        self._troubled_since = 0.0
        self._patience = 0.0 if _is_own(planned.upstream) else OUTAGE_SECONDS
        self.warms_up = True

    def look(self, finished: int, failed_in_a_row: int) -> None:
        """Report progress, look at the servers' processes, and make a health check
        while requests fail (see `TrialEvents.on_progress`).

        Raise ServerLost, or TrialFailed if health checks failed for as long as the
        server may not answer, and no request has succeeded since.
        """
        self._progressed(None if self.warms_up else finished)
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._testbed.check()
            self._looked = time.monotonic()
        if failed_in_a_row < FAILURES_IN_A_ROW:
            self._trouble = None
        else:
            self._check_health(failed_in_a_row)

    def _check_health(self, failed_in_a_row: int) -> None:
        now = time.monotonic()
        if self._trouble is not None and now - self._troubled_since >= self._patience:
            raise TrialFailed(
                f"ended after {failed_in_a_row:,} failed requests in a row:"
                f" {self._trouble}"
            )
        if now - self._asked > _LOOK_SECONDS:
            # A server that is gone is started again, and the trial measured once more.
            self._testbed.check()
            trouble = self._testbed.trouble(*self._target)
            if self._trouble is None:
                self._troubled_since = now
            self._trouble = trouble
            self._asked = time.monotonic()


def check_disk(plan: Plan, folder: Path) -> None:
    """Raise FieldError if the records of a trial do not fit on the results' disk."""
    requests = max(
        expected_requests(workload) or 0 for workload in plan.workloads.values()
    )
    needed = requests * RECORD_SIZE
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise FieldError(
            ["requests"],
            f"the records of a trial take {units.memory(needed)}, and {folder} has"
            f" {units.memory(free)} free; write fewer requests",
            value=f"{requests:,}",
        )


def try_functions(
    plan: Plan, testbed: Testbed, interpreters: Mapping[str, Interpreter]
) -> None:
    """Send two requests with each function of a user's file, before a run.

    Each is tried in each of its environments. The requests use two event loops, so a
    function that keeps something of a loop fails now. Raise LabError if a function
    returns no response, or raises an error other than a connection's.
    """
    used = {
        (strategies.find(arm.strategy).client, arm.environment): arm
        for arm in reversed(plan.arms)
    }
    for (client, environment), arm in used.items():
        if not strategies.client_spec(client).url_only:
            continue
        workload = replace(
            plan.workloads[arm.workload],
            delay=None,
            faults=None,
            load=Load(requests=1, concurrency=1, connections="cold", warmup=1),
            shards=1,
        )
        testbed.serve(arm.target[0])
        interpreter = OWN if environment is None else interpreters[environment]
        with tempfile.TemporaryDirectory() as folder:
            context = TrialContext(
                strategies.find(client),
                workload,
                testbed.address(*arm.target),
                str(Path(folder) / "trial"),
            )
            try:
                measurement = measure(context, interpreter=interpreter)
            except TrialFailed as failure:
                raise LabError(f"strategy {arm.strategy!r}: {failure}") from failure
        for kind, raised in measurement.samples.examples.items():
            if kind == "tls" or kind.startswith(ERROR_OTHER):
                text = f"strategy {arm.strategy!r}: its first request raised {raised}"
                if "loop" in raised:
                    text += (
                        "; what asyncio keeps belongs to one event loop, which a class"
                        " opens and closes"
                    )
                raise LabError(text)


def _is_own(upstream: str) -> bool:
    """Return whether an upstream is one of the lab's, not a server of the user."""
    return upstream.partition("?")[0] in UPSTREAMS


def _find_rest(upstream: str) -> float:
    """Return the seconds for which servers surely keep idle connections.

    The servers are the upstream, and a proxy before it.
    """
    if upstream in UPSTREAMS:
        return _OWN_REST
    if not _is_own(upstream):
        return _REST
    own = find_upstream(upstream)
    kept = min(own.keep_alive or _OWN_REST, own.proxy_idle)
    return min(_REST, 0.75 * kept)


def _sum_growth(readings: Sequence[ServerCounters]) -> ServerCounters:
    """Return the growth of counters, which were read before and after each slice."""
    pairs = zip(readings[::2], readings[1::2], strict=True)
    return combine_counters([after.since(before) for before, after in pairs], sum)


def _interrupt_all(
    steps: Sequence[_Steps], first: KeyboardInterrupt
) -> Iterator[Trial]:
    """Interrupt all trials, and yield them.

    `first`: what the one that was interrupted first has raised.
    """
    if isinstance(first, TrialInterrupted):
        yield from first.trials
    for steps_of_trial in steps:
        try:
            steps_of_trial.throw(KeyboardInterrupt())
        except TrialInterrupted as interrupted:
            yield from interrupted.trials
        except (KeyboardInterrupt, StopIteration):
            continue  # it had not begun, or had ended


def log_folder(folder: Path, planned: PlannedTrial, workload: Workload) -> Path:
    """Return where the sample log of a trial, or of one of its shards, is written."""
    shard = f"-shard-{workload.index}" if isinstance(workload, ShardWorkload) else ""
    return folder / f"trial-{planned.order:04d}{shard}"


def _keep_output(folder: Path) -> None:
    """Remove a trial's folder except for the output of its processes.

    The sample log would fill the disk.
    """
    for path in folder.glob("*"):  # the folder may not exist
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.match(OUTPUT_FILES) or not path.stat().st_size:
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()  # if it is empty
