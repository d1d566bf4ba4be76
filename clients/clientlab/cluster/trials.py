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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from clientlab import __version__, strategies
from clientlab.cluster.live_metrics import LIVE, TrialMetrics
from clientlab.errors import IncompleteRun, LabError
from clientlab.results.document import Surroundings
from clientlab.results.plan import Plan
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.target import Target
from clientlab.results.trial import ClockOffset, PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialInterrupted
from clientlab.running.shard_report import AgreedStart, ShardReport, machine_id
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.strategies import plugins
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.testbeds.opening import Servers
from clientlab.workload.shard_workload import READY_SECONDS, share_of
from clientlab.workload.workload import Workload

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
class Worker:
    """A worker as it describes itself. `lacks`: strategy → why it cannot measure it; `offered`: those it declares."""

    version: str
    host: str
    machine: str
    lacks: Mapping[str, str]
    address: str = ""
    offered: frozenset[str] = frozenset()

    def offers(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy, with any settings."""
        return not self.offered or not self.offered.isdisjoint({strategy, strategy.partition("?")[0]})

    def measures(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy and has what it needs."""
        return self.offers(strategy) and strategy not in self.lacks


def describe(names: list[str], servers: list[tuple[str, str]], target: Target) -> Worker:
    """Describe this worker to a lab that wants to measure these strategies. `servers`: upstreams with their routes."""
    plugins.admit(names)  # the lab's command line named them
    trouble = None
    if target.url is None:  # otherwise, the lab has checked the server
        try:
            testbed = ComposeTestbed(os.environ)
            trouble = next(filter(None, (testbed.trouble(*server, Workload()) for server in servers)), None)
        except (IncompleteRun, LabError) as error:
            trouble = str(error)
    lacks = {}
    for name in names:
        try:
            reason = trouble or strategies.unavailable(strategies.find(name))
        except LabError as error:
            reason = str(error)
        if reason is not None:
            lacks[name] = reason
    return Worker(__version__, socket.gethostname(), machine_id(), lacks)


def surroundings_here(plan: Plan, target: Target) -> Surroundings:
    """Return this machine, the versions of what the plan measures, and the addresses of the servers."""
    names = [arm.strategy for arm in plan.arms]
    servers = {} if target.url is not None else ComposeTestbed(os.environ).programs()
    return surroundings(distributions_of(names), servers | programs_of(names))


@dataclass(frozen=True)
class _Task:
    """A task that this worker carries out. `starts` receives the agreed start, or None if the task is stopped."""

    stopped: threading.Event = field(default_factory=threading.Event)
    starts: queue.SimpleQueue[Start | None] = field(default_factory=queue.SimpleQueue)


_tasks: dict[str, _Task] = {}


def stop(key: str | None = None) -> None:
    """End the trial with this key, or all of them; a task returns what was measured so far."""
    for name, task in list(_tasks.items()):
        if key in {name, None}:
            task.stopped.set()
            task.starts.put(None)


def begin(key: str, start: Start) -> None:
    """Give the shard with this key the agreed start."""
    if task := _tasks.get(key):
        task.starts.put(start)


def measure(assignment: Assignment) -> Trial | ShardReport:
    """Measure a trial, or a shard of one. A trial that cannot be measured is returned as failed or lost."""
    from distributed import get_worker  # noqa: PLC0415 - an extra, which a lab without a cluster lacks

    planned, workload = assignment.planned, assignment.workload
    plugins.admit([planned.strategy])
    if assignment.shard is not None:
        workload = share_of(workload, assignment.shard, planned.concurrency)
        planned = planned.model_copy(update={"concurrency": workload.concurrency})
    # Dask removes the folder of a worker that was killed.
    folders = tempfile.TemporaryDirectory(prefix="clientlab-trial-", dir=get_worker().local_directory)
    task = _tasks[assignment.key] = _Task()
    with folders as name:
        folder = Path(name)
        own_folder = log_folder(folder, planned, workload)
        metrics = LIVE.shown = TrialMetrics(assignment.run, assignment.experiment, planned, workload, own_folder)
        try:
            found = _measured(assignment, folder, task, metrics, get_worker())
        except TrialInterrupted as interrupted:
            found = interrupted.trials[0]
        except (IncompleteRun, LabError, OSError) as error:
            status: Literal["lost", "failed"] = "lost" if isinstance(error, IncompleteRun) else "failed"
            found = Trial.of(assignment.planned, status=status, reason=str(error), started=utc_now())
        finally:
            del _tasks[assignment.key]
        metrics.settle(found.outcome if isinstance(found, ShardReport) else found)
        return found


def _measured(
    assignment: Assignment, folder: Path, task: _Task, metrics: TrialMetrics, worker: Any
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
        try:
            agreed = task.starts.get(timeout=2 * READY_SECONDS)
        except queue.Empty:
            raise IncompleteRun("the lab named no start for this shard") from None
        if agreed is None:
            raise KeyboardInterrupt
        start, offset = agreed
        metrics.started(start - (0.0 if offset is None else offset.seconds), start)
        return start, offset

    links = {}
    if planned.link is not None:
        check_link(os.environ, [planned.link])
        links = ComposeTestbed(os.environ).links()
    external = Servers.of(assignment.target, lambda _: True).external  # the lab has asked whether load may go there
    testbed = external or ComposeTestbed(os.environ)
    runner = TrialRunner(testbed, links=links, on_end=metrics.ended, on_leave=partial(metrics.settle, None))
    if shard is None:
        return replace(runner, on_start=metrics.started)(planned, workload, folder, progressed)
    start = AgreedStart(socket.gethostname(), workload.shards, meet)
    return runner.shard(planned, workload, shard, folder, progressed, start)
