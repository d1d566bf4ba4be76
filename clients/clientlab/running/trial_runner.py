"""The trial runner: measures a planned trial on this machine, and reads the servers' counters before and after."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import Callbacks, measure_by_steps, to_its_end
from clientlab.measuring.outcome import Measurement
from clientlab.measuring.trial_handle import OWN, Interpreter, TrialFailed, TrialStalled, TrialVanished
from clientlab.results import kept_samples
from clientlab.results.document import Placement
from clientlab.results.part import first_problem
from clientlab.results.server_counters import ServerCounters, total_of
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted
from clientlab.running.shard_report import AgreedStart, report_of
from clientlab.running.testbed import Testbed
from clientlab.running.trial_folder import keep_output
from clientlab.running.trial_result import Begun, finished_trial, partial_trial
from clientlab.running.trial_watch import TrialWatch, deadline_of
from clientlab.samples.log_reader import read_measured
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.link import Link
from clientlab.workload.shard_workload import ShardWorkload, share_of
from clientlab.workload.workload import Workload

_Ended = Literal["failed", "lost"]


_REST, _OWN_REST = 1.5, 30.0
"""Seconds for which a server keeps idle connections: gunicorn 2, uvicorn and Node.js 5; the lab's own more than 60."""


def _nothing(*_arguments: object) -> None:
    """Default callback."""


@dataclass(frozen=True)
class TrialRunner:
    """Measures trials as child processes of this one, against the upstreams of a testbed.

    `on_start` and `on_end` are called before and after the measured part. The servers' counters are read before the
    first and behind the second. `on_leave` is called before the files of a trial are removed, whatever ended it.
    `interpreters`: name of an environment → its Python. `links`: the testbed behind each link. `placement`: the CPUs of
    each part; None: none is pinned.
    """

    testbed: Testbed
    keep_samples: bool = False
    on_start: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing
    on_leave: Callable[[], None] = _nothing
    interpreters: Mapping[str, Interpreter] = field(default_factory=dict)
    links: Mapping[Link, Testbed] = field(default_factory=dict)
    placement: Placement | None = None

    def __call__(self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial:
        """The trial with its figures. Its sample log is removed; with `keep_samples`, a compressed copy stays.

        The shards of a divided trial are processes of this machine.

        A trial has failed when its process fails, when it does not get on, or when a figure is impossible. It is lost
        where a server has ended, or is frozen. Then its figures are partial: those of the requests that had finished,
        and what its process wrote stays. Raises TrialInterrupted with such a trial, of which no file stays.
        """
        found = to_its_end(self.steps(planned, workload, folder, progressed))
        assert isinstance(found, Trial)  # noqa: S101 - without an agreed start, there is no report of a shard
        return found

    def steps(
        self,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,
        progressed: Progressed,
        start: AgreedStart | None = None,
    ) -> _Steps:
        """The same in steps, between which the trial's processes wait (see `measure_by_steps`).

        An interrupt is thrown into it. `start`: of a share whose other shards are on other machines; the result is its
        report.
        """
        begun, own_folder = _begun(planned, workload), log_folder(folder, planned, workload)
        if own_folder.exists():  # of a trial that was killed with the lab: its records would count as this one's
            shutil.rmtree(own_folder)
        testbed, target = self._testbed_of(planned), (planned.upstream, planned.route)
        watch, counters = TrialWatch(testbed, planned, workload, progressed), _Readings(self, testbed, target, start)
        with self._leaving(own_folder):
            try:
                testbed.serve(planned.upstream)
                context = TrialContext(
                    strategies.find(planned.strategy), workload, testbed.base_url(*target), str(own_folder),
                    testbed.address(*target), testbed.ca_file(*target), slices=planned.slices,
                    rest=_OWN_REST if planned.upstream in UPSTREAMS else _REST,
                )  # fmt: skip
                measurement = yield from measure_by_steps(
                    context, OWN if planned.environment is None else self.interpreters[planned.environment],
                    Callbacks(watch.before(counters.at_start), counters.at_end, watch.progress, watch.failures),
                    begun.deadline_seconds or math.inf,
                    () if self.placement is None else self.placement.client,
                )  # fmt: skip
                found = self._result(begun, measurement, counters, folder)
            except (ServerLost, TrialFailed) as failure:
                return self._ended_early(begun, own_folder, *self._why(begun, failure))
            except KeyboardInterrupt as interrupt:
                trial = self._ended_early(begun, own_folder, "lost", "interrupted")
                shutil.rmtree(own_folder, ignore_errors=True)  # it may not exist yet
                raise TrialInterrupted(trial) from interrupt
            except ValidationError as error:
                return begun.ended("failed", f"impossible figure: {first_problem(error)}")
            shutil.rmtree(own_folder)
            return found

    def by_turns(
        self, trials: Sequence[tuple[PlannedTrial, Workload]], folder: Path, progressed: Progressed
    ) -> list[Trial]:
        """The trials, measured side by side: their processes live together, and measure slice by slice, by turns.

        The order of the turns is drawn anew for each slice. Raises TrialInterrupted with all of the trials.
        """
        counts: list[int | None] = [None] * len(trials)

        def counted(index: int) -> Progressed:
            def count(finished: int | None) -> None:
                counts[index] = finished
                measured = [one for one in counts if one is not None]
                progressed(sum(measured) if measured else None)

            return count

        steps = [self.steps(*one, folder, counted(index)) for index, one in enumerate(trials)]
        with contextlib.ExitStack() as stack:
            for one in steps:
                stack.callback(one.close)
            try:
                return _by_turns(steps, trials[0][1].seed)
            except KeyboardInterrupt as interrupt:
                raise TrialInterrupted(*_interrupted(steps, interrupt)) from interrupt

    @contextmanager
    def _leaving(self, own_folder: Path) -> Iterator[None]:
        """Whatever ends the trial: of its files, only what its processes wrote stays."""
        try:
            yield
        finally:
            self.on_leave()
            keep_output(own_folder)

    def shard(  # noqa: PLR0913, PLR0917 - a shard's particulars
        self,
        planned: PlannedTrial,
        workload: Workload,
        index: int,
        folder: Path,
        progressed: Progressed,
        start: AgreedStart,
    ) -> ShardReport | Trial:
        """The report of one shard, of which the others are on other machines; or the trial that failed because of it.

        The shard waits for all others when it is ready, and begins at the moment on which they agree.
        """
        share = share_of(workload, index, planned.concurrency)
        part = planned.model_copy(update={"concurrency": share.concurrency})
        found = to_its_end(self.steps(part, share, folder, progressed, start))
        if isinstance(found, ShardReport):
            return found
        reason = f"shard {index + 1} of {workload.shards} on {start.host}: {found.reason}"
        return _begun(planned, workload).ended("lost" if found.status == "lost" else "failed", reason)

    def _result(self, begun: Begun, measurement: Measurement, counters: _Readings, folder: Path) -> Trial | ShardReport:
        workload, start = begun.workload, counters.start
        if start is not None and isinstance(workload, ShardWorkload):
            return report_of(begun, workload, measurement, (counters.before, counters.after), start)
        trial = finished_trial(begun, measurement, counters.growth, self.placement)
        if self.keep_samples and measurement.tool is None:
            kept_samples.write(folder, trial, workload, measurement.samples, measurement.outcome.began)
        return trial

    def _testbed_of(self, planned: PlannedTrial) -> Testbed:
        return self.testbed if planned.link is None else self.links[planned.link]

    def _why(self, begun: Begun, failure: ServerLost | TrialFailed) -> tuple[_Ended, str]:
        """How a trial ended that did not finish, and the reason. A trial that stalled may have lost its server."""
        trouble = None
        if isinstance(failure, TrialStalled):
            trouble = self._testbed_of(begun.planned).trouble(
                begun.planned.upstream, begun.planned.route, begun.workload
            )
        lost = isinstance(failure, ServerLost | TrialVanished)
        return "lost" if lost else "failed", "; ".join(filter(None, (str(failure), trouble)))

    def _ended_early(self, begun: Begun, own_folder: Path, status: _Ended, reason: str) -> Trial:
        """The trial with partial figures, where requests of its measured part had finished."""
        found = read_measured(own_folder)
        try:
            trial = partial_trial(begun, found, status, reason)
        except ValidationError as error:
            return begun.ended(status, f"{reason}; impossible figure: {first_problem(error)}")
        if self.keep_samples and trial.partial:
            kept_samples.write(own_folder.parent, trial, begun.workload, found, float(found.records["start"][0]))
        return trial


class _Readings:
    """Reads the servers' counters when a trial is ready, and when its measured part is over; or each of its slices."""

    def __init__(
        self, runner: TrialRunner, testbed: Testbed, target: tuple[str, str], start: AgreedStart | None
    ) -> None:
        self._runner = runner
        self._testbed = testbed
        self._target = target
        self.start = start
        self.before = self.after = ServerCounters()
        self._grown: list[ServerCounters] = []

    @property
    def growth(self) -> ServerCounters:
        """What the servers counted while the trial was measured."""
        return total_of(self._grown)

    def at_start(self) -> float | None:
        """The moment of the agreed start; None: at once. From the meeting on, the servers have no warm-up to count."""
        if self.start is not None:
            self.start.meet()
        self.before = self._testbed.reading(*self._target)
        self._runner.on_start()
        return None if self.start is None else self.start.wait_almost()

    def at_end(self) -> None:
        self._runner.on_end()
        self.after = self._testbed.reading(*self._target)
        self._grown.append(self.after.since(self.before))


_Steps = Generator[None, None, Trial | ShardReport]


def _by_turns(steps: Sequence[_Steps], seed: int) -> list[Trial]:
    """What each of them returns. In each turn, all take a step, in an order of its own."""
    found: dict[int, Trial] = {}
    turn = 0
    while len(found) < len(steps):
        waiting = [index for index in range(len(steps)) if index not in found]
        random.Random(f"{seed}:{turn}").shuffle(waiting)  # noqa: S311 - an order, not a secret
        for index in waiting:
            try:
                next(steps[index])
            except StopIteration as ended:
                found[index] = ended.value
        turn += 1
    return [found[index] for index in range(len(steps))]


def _interrupted(steps: Sequence[_Steps], first: KeyboardInterrupt) -> Iterator[Trial]:
    """The trials that an interrupt ended. `first`: what the interrupted one raised."""
    if isinstance(first, TrialInterrupted):
        yield from first.trials
    for one in steps:
        try:
            one.throw(KeyboardInterrupt())
        except TrialInterrupted as interrupted:
            yield from interrupted.trials
        except (KeyboardInterrupt, StopIteration):
            continue  # it had not begun, or had ended


def log_folder(folder: Path, planned: PlannedTrial, workload: Workload) -> Path:
    """Where the sample log of a trial, or of the share that a shard does, is written."""
    shard = f"-shard-{workload.index}" if isinstance(workload, ShardWorkload) else ""
    return folder / f"trial-{planned.order:04d}{shard}"


def _begun(planned: PlannedTrial, workload: Workload) -> Begun:
    return Begun(planned, workload, utc_now(), deadline_of(workload, planned.concurrency, planned.link))
