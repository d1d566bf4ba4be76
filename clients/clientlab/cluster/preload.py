"""The lab's part of a Dask worker: it measures a trial, or one shard of a trial, and
serves its metrics.

A worker loads it with `dask worker --preload clientlab.cluster.preload`. It measures
one trial at a time. The measured process is a fresh interpreter, as on one machine: the
worker only starts it and reads its log.
"""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from prometheus_client import REGISTRY

from clientlab import plugins
from clientlab.cluster.live_metrics import RunMetrics, TrialMetrics
from clientlab.errors import IncompleteRun, LabError
from clientlab.results.plan import Target
from clientlab.running.execute import TrialInterrupted
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.testbeds import Servers
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.trial.result import ClockOffset, PlannedTrial, Trial, utc_now
from clientlab.trial.shards import AgreedStart, ShardReport
from clientlab.workload.workload import READY_SECONDS, Workload, take_share

Start = tuple[float, ClockOffset | None]
"""When all shards of a trial start, in Unix seconds by the lab's clock, and that clock
minus this machine's.
"""

_published: list[RunMetrics] = []
_publishing = threading.Lock()
"""The metrics on Dask's `/metrics`: those of the last run, until a trial of another one
begins.
"""

_starts: dict[str, queue.SimpleQueue[Start | None]] = {}
"""For the key of each trial that is being measured here: the agreed start of its shard,
or None if it has to stop.
"""


def send_start(key: str, start: Start | None) -> None:
    """Give the shard with this key its agreed start.

    None stops a trial: it then returns what was measured so far.
    """
    if (starts := _starts.get(key)) is not None:
        starts.put(start)


def measure_trial(  # noqa: PLR0913, PLR0917 - the particulars of a trial
    run: str,
    experiment: str,
    key: str,
    planned: PlannedTrial,
    workload: Workload,
    target: Target,
    shard: int | None,
) -> Trial | ShardReport:
    """Measure a trial or, with an index from 0, one shard of it.

    `key`: the name of the trial in events for the lab.

    A trial that cannot be measured is returned as failed or lost.
    """
    from distributed import get_worker  # noqa: PLC0415 - an extra, which a lab without a cluster lacks

    worker, starts = get_worker(), queue.SimpleQueue[Start | None]()

    def report_progress(finished: int | None) -> None:
        if not starts.empty():  # a start would have been taken: the trial has to stop
            raise KeyboardInterrupt
        worker.log_event(run, {"key": key, "shard": shard, "finished": finished})

    def agree_on_start() -> Start:
        worker.log_event(run, {"key": key, "shard": shard, "ready": True})
        try:
            agreed = starts.get(timeout=2 * READY_SECONDS)
        except queue.Empty:
            raise IncompleteRun("the lab named no start for this shard") from None
        if agreed is None:
            raise KeyboardInterrupt
        start, offset = agreed
        metrics.started(start - (0.0 if offset is None else offset.seconds))
        return start, offset

    plugins.admit([planned.strategy])
    share, own = workload, planned
    if shard is not None:
        share = take_share(workload, shard, planned.concurrency)
        own = planned.model_copy(update={"concurrency": share.concurrency})
    found: Trial | ShardReport
    # Dask removes the folder of a worker that was killed.
    with tempfile.TemporaryDirectory(
        prefix="clientlab-trial-", dir=worker.local_directory
    ) as name:
        folder = Path(name)
        of_run = _publish(run, experiment)
        metrics = of_run.begin(own, workload, share, log_folder(folder, own, share))
        _starts[key] = starts
        try:
            runner = _make_runner(planned, target, metrics)
            if shard is None:
                found = replace(runner, on_start=metrics.started)(
                    planned, workload, folder, report_progress
                )
            else:
                start = AgreedStart(
                    socket.gethostname(), workload.shards, agree_on_start
                )
                found = runner.measure_shard(
                    planned, workload, shard, folder, report_progress, start
                )
        except TrialInterrupted as interrupted:
            found = interrupted.trials[0]
        except (IncompleteRun, LabError, OSError) as error:
            status: Literal["lost", "failed"] = (
                "lost" if isinstance(error, IncompleteRun) else "failed"
            )
            found = Trial(
                planned=planned, status=status, reason=str(error), started=utc_now()
            )
        finally:
            del _starts[key]
        metrics.settle(
            found.outcome if isinstance(found, ShardReport) else found.measured
        )
        return found


def _publish(run: str, experiment: str) -> RunMetrics:
    """Return the metrics of a run, which replace those of an earlier run."""
    with _publishing:
        if not _published or _published[0].run != run:
            for previous in _published:
                REGISTRY.unregister(previous)
            _published[:] = [RunMetrics(run, experiment)]
            REGISTRY.register(_published[0])
        return _published[0]


def _make_runner(
    planned: PlannedTrial, target: Target, metrics: TrialMetrics
) -> TrialRunner:
    links = {}
    if planned.link is not None:
        check_link(os.environ, [planned.link])
        links = ComposeTestbed(os.environ).links()
    external = Servers.of(
        target, lambda _: True
    ).external  # the lab has asked whether load may go there
    testbed = external or ComposeTestbed(os.environ)
    return TrialRunner(
        testbed,
        links=links,
        on_end=metrics.ended,
        on_leave=partial(metrics.settle, None),
    )


def dask_teardown(_worker: Any) -> None:
    """Stop the trial that is being measured, with its processes."""
    for key in list(_starts):
        send_start(key, None)
