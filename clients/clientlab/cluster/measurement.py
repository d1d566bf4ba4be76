"""Measuring the trials of a run on a Dask cluster: each trial is one task, a divided trial one task per shard."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clientlab.cluster import trials
from clientlab.cluster.trials import Worker
from clientlab.cluster.workers import DaskCluster
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted, TrialLost
from clientlab.running.shard_report import ShardReport, machine_id, merged_trial
from clientlab.running.trial_result import Begun
from clientlab.running.trial_watch import deadline_of
from clientlab.workload.shard_workload import READY_SECONDS
from clientlab.workload.workload import Workload

if TYPE_CHECKING:
    from distributed import Future

_LOOK_SECONDS = 1.0
_STOP_SECONDS = 10.0
_START_AFTER, _START_AFTER_PER_SHARD = 0.5, 0.03
"""Seconds from the moment when the last shard is ready to the agreed start. Meanwhile, each learns of it and reads
the counters of the servers. With 0.6 s in all, 64 shards on two cores began up to 4.6 s apart; with 2.4 s, 29 ms."""


@dataclass
class _Tasks:
    """The tasks of one trial, one per worker. `finished`: requests so far, by shard; `ready`: shards that are ready."""

    key: str
    workers: Sequence[Worker]
    futures: Sequence[Future[Any]]
    finished: dict[int, int] = field(default_factory=dict)
    ready: set[int] = field(default_factory=set)
    first_ready: float | None = None
    begun: bool = False

    def results(self) -> list[Trial | ShardReport]:
        """Return the results of the tasks that are done. Raise IncompleteRun if the scheduler has lost them."""
        try:
            return [future.result() for future in self.futures if future.done()]
        except CancelledError as error:
            raise IncompleteRun("the scheduler is gone") from error

    def trial(self) -> Trial | None:
        """Return the trial if it is done: the whole one, or one that failed because of a shard."""
        return next((one for one in self.results() if isinstance(one, Trial)), None)


class ClusterMeasurement:
    """Measures the trials of one run on a cluster (see `running.execute.Measure`)."""

    def __init__(self, cluster: DaskCluster, run: Run) -> None:
        self._cluster = cluster
        self._run, self._experiment = run.run, run.experiment.name
        self._target = run.target or Target(testbed="compose")
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        cluster.client.subscribe_topic(run.run, lambda event: self._events.put(event[1]))

    def __call__(self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial:  # noqa: ARG002 - of this machine
        """Measure a trial. Raise TrialLost if a worker is gone, and IncompleteRun if the scheduler is.

        After an interrupt, the workers end the trial, and TrialInterrupted is raised with what it had measured.
        """
        workers = self._cluster.workers_for(planned.strategy, workload.shards)
        if len(workers) < workload.shards:
            raise TrialLost(f"{len(workers)} of {workload.shards} workers for {planned.strategy!r} are left")
        started = utc_now()
        with self._submitted(planned, workload, workers) as tasks:
            try:
                self._wait(tasks, progressed)
            except KeyboardInterrupt as interrupt:
                self._stop(tasks)
                found = [future.result() for future in tasks.futures if future.status == "finished"]
                trial = next((one for one in found if isinstance(one, Trial)), None)
                lost = Trial.of(planned, status="lost", reason="interrupted", started=started)
                raise TrialInterrupted(trial or lost) from interrupt
            except TrialLost:
                self._stop(tasks)
                raise
            if (trial := tasks.trial()) is None:
                begun = Begun(planned, workload, started, deadline_of(workload, planned.concurrency, planned.link))
                return merged_trial(begun, [one for one in tasks.results() if isinstance(one, ShardReport)])
        # The clock of another machine may be wrong, and the lab plans by this time.
        return trial if workers[0].machine == machine_id() else trial.model_copy(update={"started": started})

    @contextmanager
    def _submitted(self, planned: PlannedTrial, workload: Workload, workers: Sequence[Worker]) -> Iterator[_Tasks]:
        key = f"{self._run}/{planned.order}"
        futures = []
        for place, worker in enumerate(workers):
            shard = None if len(workers) == 1 else place
            assignment = trials.Assignment(self._run, key, self._experiment, planned, workload, self._target, shard)
            where = {"workers": [worker.address], "allow_other_workers": False}
            future = self._cluster.client.submit(trials.measure, assignment, key=f"{key}/{place}", pure=False, **where)
            future.add_done_callback(lambda _: self._events.put({}))
            futures.append(future)
        try:
            yield _Tasks(key, workers, futures)
        finally:
            for future in futures:
                future.release()

    def _wait(self, tasks: _Tasks, progressed: Progressed) -> None:
        """Wait until all tasks are done, or a shard has failed. Raise TrialLost if a worker is gone."""
        looked = time.monotonic()
        while not all(future.done() for future in tasks.futures):
            self._take_events(tasks, progressed)
            if not tasks.begun and tasks.first_ready is not None:
                self._begin_when_ready(tasks, tasks.first_ready)
            if len(tasks.workers) > 1 and tasks.trial() is not None:  # a shard failed
                self._stop(tasks)
                return
            if time.monotonic() - looked > _LOOK_SECONDS:
                looked = time.monotonic()
                present = self._cluster.addresses()
                if gone := [worker for worker in tasks.workers if worker.address not in present]:
                    raise TrialLost(f"worker {gone[0].address} on {gone[0].host} is gone")

    def _take_events(self, tasks: _Tasks, progressed: Progressed) -> None:
        """Take the events that have arrived; wait for the first."""
        with contextlib.suppress(queue.Empty):
            event = self._events.get(timeout=_LOOK_SECONDS)
            while True:
                if event.get("key") == tasks.key:
                    if event.get("ready"):
                        tasks.ready.add(event["shard"])
                        tasks.first_ready = tasks.first_ready or time.monotonic()
                    elif event["finished"] is not None:
                        tasks.finished[event["shard"] or 0] = event["finished"]
                    progressed(sum(tasks.finished.values()) if tasks.finished else None)
                event = self._events.get_nowait()

    def _begin_when_ready(self, tasks: _Tasks, first_ready: float) -> None:
        """Give all shards their start when each of them is ready. Raise TrialLost if one is late."""
        if len(tasks.ready) == len(tasks.workers):
            tasks.begun = True
            offsets = [self._cluster.offset_of(worker) for worker in tasks.workers]
            start = time.time() + _START_AFTER + _START_AFTER_PER_SHARD * len(tasks.workers)
            for offset in dict.fromkeys(offsets):
                there = [worker for worker, own in zip(tasks.workers, offsets, strict=True) if own == offset]
                self._cluster.call(trials.begin, tasks.key, (start, offset), workers=there)
        elif time.monotonic() - first_ready > READY_SECONDS:
            count = f"{len(tasks.ready)} of {len(tasks.workers)} shards"
            raise TrialLost(f"{count} were ready {READY_SECONDS:g} s after the first")

    def _stop(self, tasks: _Tasks) -> None:
        """End the trial on the workers that are left, and wait until its processes have ended."""
        with contextlib.suppress(IncompleteRun, TrialLost):  # without its scheduler, a worker ends its trial by itself
            present = self._cluster.addresses()
            left = [place for place, worker in enumerate(tasks.workers) if worker.address in present]
            if left:
                self._cluster.call(trials.stop, tasks.key, workers=[tasks.workers[place] for place in left])
            until = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < until and not all(tasks.futures[place].done() for place in left):
                time.sleep(0.05)
