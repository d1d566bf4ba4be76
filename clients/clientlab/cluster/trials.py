"""The worker's side of a Dask cluster: functions that the lab submits or calls there.

A worker measures one trial, or one shard of a trial, at a time. The measured process is a fresh interpreter, as on one
machine: the worker only starts it and reads its log.
"""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clientlab import __version__, strategies
from clientlab.cluster.live_metrics import LIVE, TrialMetrics
from clientlab.errors import IncompleteRun, LabError
from clientlab.results.document import Surroundings
from clientlab.results.part import first_problem
from clientlab.results.plan import Plan
from clientlab.results.shard import ShardReport
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.target import Target
from clientlab.results.trial import ClockOffset, PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialInterrupted
from clientlab.running.shard_report import AgreedStart, machine_id
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.strategies import plugins
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.testbeds.external import ExternalTarget
from clientlab.workload.shard_workload import READY_SECONDS, share_of
from clientlab.workload.workload import Workload

if TYPE_CHECKING:
    from distributed import Worker

Start = tuple[float, ClockOffset | None]
"""When all shards of a trial start, in Unix seconds by the lab's clock, and that clock minus this machine's."""


@dataclass(frozen=True)
class Assignment:
    """A trial for a worker. `key` names it in events; `shard`: the part to do, from 0, or None for the whole trial."""

    run: str
    key: str
    experiment: str
    planned: PlannedTrial
    workload: Workload
    target: Target
    shard: int | None = None


@dataclass(frozen=True)
class Description:
    """A worker as it describes itself. `lacks`: strategy → why the worker cannot measure it."""

    version: str
    host: str
    machine: str
    lacks: dict[str, str]


def describe(names: list[str], servers: list[tuple[str, str]], target: Target) -> Description:
    """Describe this worker to a lab that wants to measure these strategies. `servers`: upstreams with their routes."""
    plugins.admit(names)  # the lab's command line named them
    try:
        trouble = _trouble_with(servers, target)
    except (IncompleteRun, LabError) as error:
        trouble = str(error)
    reasons = {name: trouble or _lack_of(name) for name in names}
    lacks = {name: reason for name, reason in reasons.items() if reason is not None}
    return Description(__version__, socket.gethostname(), machine_id(), lacks)


def _trouble_with(servers: list[tuple[str, str]], target: Target) -> str | None:
    """Return why this worker cannot call the servers; None if they answer. An external server is checked by the lab."""
    testbed = _testbed_of(target)
    if isinstance(testbed, ExternalTarget):
        return None
    return next(filter(None, (testbed.trouble(*server, Workload()) for server in servers)), None)


def _lack_of(name: str) -> str | None:
    try:
        return strategies.unavailable(strategies.find(name))
    except LabError as error:
        return str(error)


def _testbed_of(target: Target) -> ComposeTestbed | ExternalTarget:
    """Return the servers of a run: at the addresses in this worker's environment, or at the user's URL."""
    if target.url is None:
        return ComposeTestbed(os.environ)
    # The lab has asked whether load may go there.
    return ExternalTarget(target.url, None if target.ca_file is None else Path(target.ca_file), lambda _: True)


def surroundings_here(plan: Plan, target: Target) -> Surroundings:
    """Return this machine, the versions of what the plan measures, and the addresses of the servers."""
    names = [arm.strategy for arm in plan.arms]
    servers = {} if target.url is not None else ComposeTestbed(os.environ).programs()
    return surroundings(distributions_of(names), servers | programs_of(names))


def read_clock() -> float:
    """Return this machine's time in Unix seconds."""
    return time.time()


@dataclass(frozen=True)
class _Task:
    """A task that this worker carries out. `starts` receives the agreed start."""

    stopped: threading.Event = field(default_factory=threading.Event)
    starts: queue.SimpleQueue[Start] = field(default_factory=queue.SimpleQueue)


_tasks: dict[str, _Task] = {}


def stop(key: str | None = None) -> None:
    """End the trial with this key, or all of them; a task returns what was measured so far."""
    for name, task in list(_tasks.items()):
        if key in {name, None}:
            task.stopped.set()


def begin(key: str, start: Start) -> None:
    """Give the shard with this key the agreed start."""
    if task := _tasks.get(key):
        task.starts.put(start)


def measure(assignment: Assignment) -> Trial | ShardReport:
    """Measure a trial, or a shard of one. A trial that cannot be measured is returned as failed or lost."""
    from distributed import get_worker  # noqa: PLC0415 - an extra, which a lab without a cluster lacks

    plugins.admit([assignment.planned.strategy])
    # Dask removes the folder of a worker that was killed.
    folders = tempfile.TemporaryDirectory(prefix="clientlab-trial-", dir=get_worker().local_directory)
    with _registered(assignment.key) as task, folders as folder:
        metrics = _metrics_of(assignment, Path(folder))
        LIVE.show(metrics)
        try:
            found = _measured(assignment, Path(folder), task, metrics, get_worker())
        except TrialInterrupted as interrupted:
            found = interrupted.trials[0]
        except IncompleteRun as error:
            found = Trial.of(assignment.planned, status="lost", reason=str(error), started=utc_now())
        except (LabError, OSError) as error:
            found = Trial.of(assignment.planned, status="failed", reason=str(error), started=utc_now())
        except ValidationError as error:
            reason = f"impossible figure: {first_problem(error)}"
            found = Trial.of(assignment.planned, status="failed", reason=reason, started=utc_now())
        metrics.settle(found.outcome if isinstance(found, ShardReport) else found)
        return found


@contextmanager
def _registered(key: str) -> Iterator[_Task]:
    _tasks[key] = _Task()
    try:
        yield _tasks[key]
    finally:
        del _tasks[key]


def _metrics_of(assignment: Assignment, folder: Path) -> TrialMetrics:
    planned, workload = assignment.planned, assignment.workload
    if assignment.shard is not None:
        workload = share_of(workload, assignment.shard, planned.concurrency)
        planned = planned.model_copy(update={"concurrency": workload.concurrency})
    return TrialMetrics(assignment.run, assignment.experiment, planned, workload, log_folder(folder, planned, workload))


def _measured(
    assignment: Assignment, folder: Path, task: _Task, metrics: TrialMetrics, worker: Worker
) -> Trial | ShardReport:
    planned, workload, shard = assignment.planned, assignment.workload, assignment.shard

    def tell(**event: Any) -> None:
        worker.log_event(assignment.run, {"key": assignment.key, "shard": shard, **event})

    def progressed(finished: int | None) -> None:
        if task.stopped.is_set():
            raise KeyboardInterrupt
        tell(finished=finished)

    def meet() -> Start:
        tell(ready=True)
        start, offset = _agreed_start(task)
        metrics.started(start - (0.0 if offset is None else offset.seconds), start)
        return start, offset

    runner = _runner(assignment, metrics)
    if shard is None:
        return replace(runner, on_start=metrics.started)(planned, workload, folder, progressed)
    return runner.shard(
        planned, workload, shard, folder, progressed, AgreedStart(socket.gethostname(), workload.shards, meet)
    )


def _agreed_start(task: _Task) -> Start:
    """Wait for the agreed start. Raise KeyboardInterrupt if the trial is stopped, IncompleteRun if nobody answers."""
    until = time.monotonic() + 2 * READY_SECONDS
    while time.monotonic() < until:
        if task.stopped.is_set():
            raise KeyboardInterrupt
        try:
            return task.starts.get(timeout=0.2)
        except queue.Empty:
            continue
    raise IncompleteRun("the lab named no start for this shard")


def _runner(assignment: Assignment, metrics: TrialMetrics) -> TrialRunner:
    testbed, link = _testbed_of(assignment.target), assignment.planned.link
    links = {}
    if link is not None:
        check_link(os.environ, [link])
        links = ComposeTestbed(os.environ).links()
    return TrialRunner(testbed, links=links, on_end=metrics.ended, on_leave=partial(metrics.settle, None))
