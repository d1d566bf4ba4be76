"""The trial runner: measures a planned trial on this machine, and reads the servers' counters before and after."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.measuring.context import OUTPUT_FILES, TrialContext
from clientlab.measuring.measurement import Callbacks, measure_by_steps, nothing, to_its_end
from clientlab.measuring.outcome import Measurement
from clientlab.measuring.trial_handle import OWN, Interpreter, TrialFailed, TrialStalled, TrialVanished
from clientlab.results import kept_samples
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, total_of
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted
from clientlab.running.shard_report import AgreedStart, ShardReport, report_of
from clientlab.running.testbed import Testbed
from clientlab.running.trial_result import Begun, finished_trial, partial_trial
from clientlab.running.trial_watch import TrialWatch, deadline_of
from clientlab.samples.log_reader import read_measured
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.link import Link
from clientlab.workload.shard_workload import ShardWorkload, share_of
from clientlab.workload.workload import Workload

_REST, _OWN_REST = 1.5, 30.0
"""Seconds for which a server keeps idle connections: gunicorn 2, uvicorn and Node.js 5; the lab's own more than 60."""

_Steps = Generator[None, None, Trial | ShardReport]


@dataclass(frozen=True)
class TrialRunner:
    """Measures trials as child processes of this one, against the upstreams of a testbed."""

    testbed: Testbed
    keep_samples: bool = False
    on_start: Callable[[], None] = nothing  # before the measured part, after the servers' counters are read
    on_end: Callable[[], None] = nothing  # after the measured part, before the servers' counters are read
    on_leave: Callable[[], None] = nothing  # before the files of a trial are removed, whatever ended it
    interpreters: Mapping[str, Interpreter] = field(default_factory=dict)  # by the names of environments
    links: Mapping[Link, Testbed] = field(default_factory=dict)  # the testbed behind each link
    placement: Placement | None = None  # the CPUs of each part; None: none is pinned

    def __call__(self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial:
        """Measure a trial, whose shards are processes of this machine.

        It has failed if its process fails, if it does not get on, or if a figure is impossible. It is lost if a server
        has ended or is frozen. Then its figures are those of the requests that had finished, and what its process wrote
        stays. Raise TrialInterrupted with such a trial, of which no file stays.
        """
        found = to_its_end(self._steps(planned, workload, folder, progressed))
        assert isinstance(found, Trial)  # noqa: S101 - without an agreed start, there is no report of a shard
        return found

    def shard(  # noqa: PLR0913, PLR0917 - a shard's particulars
        self, planned: PlannedTrial, workload: Workload, index: int, folder: Path, progressed: Progressed,
        start: AgreedStart,
    ) -> ShardReport | Trial:  # fmt: skip
        """Measure one shard when those on other machines are ready. Return the trial if it failed because of it."""
        share = share_of(workload, index, planned.concurrency)
        part = planned.model_copy(update={"concurrency": share.concurrency})
        found = to_its_end(self._steps(part, share, folder, progressed, start))
        if isinstance(found, ShardReport):
            return found
        reason = f"shard {index + 1} of {workload.shards} on {start.host}: {found.reason}"
        return _begun(planned, workload).ended("lost" if found.status == "lost" else "failed", reason)

    def by_turns(
        self, trials: Sequence[tuple[PlannedTrial, Workload]], folder: Path, progressed: Progressed
    ) -> list[Trial]:
        """Measure trials side by side: their processes live together, and measure slice by slice, by turns.

        The order of the turns is drawn anew for each slice. Raises TrialInterrupted with all of the trials.
        """
        counts: list[int | None] = [None] * len(trials)

        def count(index: int, finished: int | None) -> None:
            counts[index] = finished
            measured = [one for one in counts if one is not None]
            progressed(sum(measured) if measured else None)

        steps = [self._steps(*one, folder, partial(count, index)) for index, one in enumerate(trials)]
        with contextlib.ExitStack() as stack:
            for one in steps:
                stack.callback(one.close)
            try:
                return _take_turns(steps, trials[0][1].seed)
            except KeyboardInterrupt as interrupt:
                raise TrialInterrupted(*_interrupted(steps, interrupt)) from interrupt

    def _steps(
        self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed,
        start: AgreedStart | None = None,
    ) -> _Steps:  # fmt: skip
        """Measure a trial in steps, between which its processes wait (see `measure_by_steps`).

        An interrupt is thrown into it. `start`: of a share whose other shards are on other machines; the result is its
        report.
        """
        begun, own_folder = _begun(planned, workload), log_folder(folder, planned, workload)
        if own_folder.exists():  # of a trial that was killed with the lab: its records would count as this one's
            shutil.rmtree(own_folder)
        testbed = self.testbed if planned.link is None else self.links[planned.link]
        target = planned.upstream, planned.route
        watch = TrialWatch(testbed, planned, workload, progressed)
        counters = _Readings(self, watch, partial(testbed.reading, *target), start)
        try:
            testbed.serve(planned.upstream)
            context = TrialContext(
                strategies.find(planned.strategy), workload, testbed.base_url(*target), str(own_folder),
                testbed.address(*target), testbed.ca_file(*target), slices=planned.slices,
                rest=_OWN_REST if planned.upstream in UPSTREAMS else _REST,
            )  # fmt: skip
            measurement = yield from measure_by_steps(
                context, OWN if planned.environment is None else self.interpreters[planned.environment],
                Callbacks(counters.at_start, counters.at_end, watch.progress, watch.failures),
                begun.deadline_seconds or math.inf, () if self.placement is None else self.placement.client,
            )  # fmt: skip
            found = self._result(begun, measurement, counters, folder)
            shutil.rmtree(own_folder)
        except (ServerLost, TrialFailed) as failure:
            # The server of a trial that stalled may be gone.
            trouble = testbed.trouble(*target, workload) if isinstance(failure, TrialStalled) else None
            status: Literal["failed", "lost"] = "lost" if isinstance(failure, ServerLost | TrialVanished) else "failed"
            return self._ended_early(begun, own_folder, status, "; ".join(filter(None, (str(failure), trouble))))
        except KeyboardInterrupt as interrupt:
            trial = self._ended_early(begun, own_folder, "lost", "interrupted")
            shutil.rmtree(own_folder, ignore_errors=True)  # it may not exist yet
            raise TrialInterrupted(trial) from interrupt
        except ValidationError as error:
            return begun.impossible(error)
        finally:
            self.on_leave()
            _keep_output(own_folder)
        return found

    def _result(self, begun: Begun, measurement: Measurement, counters: _Readings, folder: Path) -> Trial | ShardReport:
        workload = begun.workload
        if counters.start is not None and isinstance(workload, ShardWorkload):
            return report_of(workload, measurement, counters.before, counters.after, counters.start)
        trial = finished_trial(begun, measurement, total_of(counters.grown), self.placement)
        if self.keep_samples and measurement.tool is None:
            kept_samples.write(folder, trial, workload, measurement.samples, measurement.outcome.began)
        return trial

    def _ended_early(self, begun: Begun, own_folder: Path, status: Literal["failed", "lost"], reason: str) -> Trial:
        """Return the trial with the figures of the requests that had finished."""
        found = read_measured(own_folder)
        trial = partial_trial(begun, found, status, reason)
        if self.keep_samples and trial.partial:
            kept_samples.write(own_folder.parent, trial, begun.workload, found, float(found.records["start"][0]))
        return trial


class _Readings:
    """Reads the servers' counters before and after the measured part of a trial, or each of its slices."""

    def __init__(
        self, runner: TrialRunner, watch: TrialWatch, reading: Callable[[], ServerCounters], start: AgreedStart | None
    ) -> None:
        self._runner, self._watch, self._reading, self.start = runner, watch, reading, start
        self.before = self.after = ServerCounters()
        self.grown: list[ServerCounters] = []

    def at_start(self) -> float | None:
        """Return the moment of the agreed start; None: at once. The warm-up is over."""
        self._watch.warms_up = False
        if self.start is not None:
            self.start.meet()
        self.before = self._reading()
        self._runner.on_start()
        return None if self.start is None else self.start.wait_almost()

    def at_end(self) -> None:
        self._runner.on_end()
        self.after = self._reading()
        self.grown.append(self.after.since(self.before))


def _take_turns(steps: Sequence[_Steps], seed: int) -> list[Trial]:
    """Return the trials. In each turn, all of them take a step, in an order of its own."""
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
    """Yield the trials that an interrupt ended. `first`: what the interrupted one raised."""
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
    """Return where the sample log of a trial, or of the share that a shard does, is written."""
    shard = f"-shard-{workload.index}" if isinstance(workload, ShardWorkload) else ""
    return folder / f"trial-{planned.order:04d}{shard}"


def _keep_output(folder: Path) -> None:
    """Remove a trial's folder, but for what its processes wrote. The sample log would fill the disk."""
    if not folder.exists():
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.match(OUTPUT_FILES) or not path.stat().st_size:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _begun(planned: PlannedTrial, workload: Workload) -> Begun:
    return Begun(planned, workload, utc_now(), deadline_of(workload, planned.concurrency, planned.link))
