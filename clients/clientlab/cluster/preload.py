"""The lab's part of a Dask worker: it measures a trial or a shard, and serves metrics.

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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

from clientlab import plugins
from clientlab.analysis.shards import AgreedStart, ShardReport
from clientlab.cluster.live_metrics import RunMetrics, TrialMetrics
from clientlab.errors import IncompleteRun, LabError
from clientlab.results.plan import Target
from clientlab.results.trial import ClockOffset, PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialInterrupted
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.testbeds import Servers
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.workload.workload import READY_SECONDS, Workload, take_share

Start = tuple[float, ClockOffset | None]
"""When all shards of a trial start, and the offset of clocks.

The start is in Unix seconds by the lab's clock; the offset is that clock minus this
machine's.
"""

_published: list[RunMetrics] = []
_publishing = threading.Lock()
"""The metrics on Dask's `/metrics`, until a trial of another run begins."""

_starts: dict[str, queue.SimpleQueue[Start | None]] = {}
"""Key of a trial that is being measured → its start, or None if it has to stop."""


def send_start(key: str, start: Start | None) -> None:
    """Give the shard with this key its agreed start.

    None stops a trial: it then returns what was measured so far.
    """
    if (starts := _starts.get(key)) is not None:
        starts.put(start)


@dataclass(frozen=True)
class _Contact:
    """What a trial, or one shard of it, exchanges with the lab."""

    worker: Any
    run: str
    key: str
    shard: int | None
    starts: queue.SimpleQueue[Start | None]

    def measure(
        self,
        runner: TrialRunner,
        metrics: TrialMetrics,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,
    ) -> Trial | ShardReport:
        """Measure the trial, or its shard once all of them are ready."""
        if self.shard is None:
            measure = replace(runner, on_start=metrics.started)
            return measure(planned, workload, folder, self.report_progress)
        agree = partial(self.agree_on_start, metrics)
        start = AgreedStart(socket.gethostname(), workload.shards, agree)
        return runner.measure_shard(
            planned, workload, self.shard, folder, self.report_progress, start
        )

    def report_progress(self, finished: int | None) -> None:
        if not self.starts.empty():  # a start would have been taken: it has to stop
            raise KeyboardInterrupt
        self._report(finished=finished)

    def agree_on_start(self, metrics: TrialMetrics) -> Start:
        """Report that the shard is ready, and return its start."""
        self._report(ready=True)
        try:
            agreed = self.starts.get(timeout=2 * READY_SECONDS)
        except queue.Empty:
            raise IncompleteRun("the lab named no start for this shard") from None
        if agreed is None:
            raise KeyboardInterrupt
        start, offset = agreed
        metrics.started(start if offset is None else start - offset.seconds)
        return agreed

    def _report(self, **state: object) -> None:
        self.worker.log_event(self.run, {"key": self.key, "shard": self.shard, **state})


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
    from distributed import get_worker  # noqa: PLC0415 - an extra

    worker = get_worker()
    contact = _Contact(worker, run, key, shard, queue.SimpleQueue())
    plugins.admit([planned.strategy])
    share = workload
    planned_share = planned
    if shard is not None:
        share = take_share(workload, shard, planned.concurrency)
        planned_share = planned.updated(concurrency=share.load.concurrency)
    # Dask removes the folder of a worker that was killed.
    with tempfile.TemporaryDirectory(
        prefix="clientlab-trial-", dir=worker.local_directory
    ) as name:
        folder = Path(name)
        log = log_folder(folder, planned_share, share)
        metrics = _publish(run, experiment).begin(planned_share, workload, share, log)
        _starts[key] = contact.starts
        result: Trial | ShardReport
        try:
            runner = _make_runner(planned, target, metrics)
            result = contact.measure(runner, metrics, planned, workload, folder)
        except TrialInterrupted as interrupted:
            result = interrupted.trials[0]
        except (IncompleteRun, LabError, OSError) as error:
            result = Trial(
                planned=planned,
                status="lost" if isinstance(error, IncompleteRun) else "failed",
                reason=str(error),
                started=utc_now(),
            )
        finally:
            del _starts[key]
        metrics.settle(result.measured)
        return result


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
    # The lab has asked whether load may go there.
    external = Servers.of(target, lambda _: True).external
    return TrialRunner(
        external or ComposeTestbed(os.environ),
        links=links,
        on_end=metrics.ended,
        on_leave=partial(metrics.settle, None),
    )


def dask_teardown(_worker: Any) -> None:
    """Stop the trial that is being measured, with its processes."""
    for key in list(_starts):
        send_start(key, None)
