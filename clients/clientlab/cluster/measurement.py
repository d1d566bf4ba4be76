"""Measuring the trials of a run on a Dask cluster: each trial is one task, a divided trial one task per shard."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clientlab.cluster import trials
from clientlab.cluster.workers import DaskCluster, Worker
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.results.shard import ShardReport
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted, TrialLost
from clientlab.running.merged_shards import merged_trial
from clientlab.running.shard_report import machine_id
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


class ClusterMeasurement:
    """Measures the trials of one run on a cluster (see `running.execute.Measure`)."""

    def __init__(self, cluster: DaskCluster, run: Run) -> None:
        self._cluster = cluster
        self._run, self._experiment = run.run, run.experiment.name
        self._target = run.target or Target(testbed="compose")
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        cluster.client.subscribe_topic(run.run, lambda event: self._events.put(event[1]))

    def __call__(self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial:  # noqa: ARG002 - of this machine
        """Measure a trial. Raise TrialLost if a worker is gone, and IncompleteRun if the scheduler is."""
        workers = self._cluster.workers_for(planned.strategy, workload.shards)
        if len(workers) < workload.shards:
            raise TrialLost(f"{len(workers)} of {workload.shards} workers for {planned.strategy!r} are left")
        started = utc_now()
        with self._tasks(planned, workload, workers) as tasks:
            found = tasks.carried_out(progressed)
        if isinstance(found, Trial):
            # The clock of another machine may be wrong, and the lab plans by this time.
            return found if workers[0].machine == machine_id() else found.model_copy(update={"started": started})
        begun = Begun(planned, workload, started, deadline_of(workload, planned.concurrency, planned.link))
        return merged_trial(begun, found)

    @contextmanager
    def _tasks(self, planned: PlannedTrial, workload: Workload, workers: Sequence[Worker]) -> Iterator[_Tasks]:
        key = f"{self._run}/{planned.order}"
        shards: list[int | None] = [None] if len(workers) == 1 else list(range(len(workers)))
        futures = []
        for worker, shard in zip(workers, shards, strict=True):
            assignment = trials.Assignment(self._run, key, self._experiment, planned, workload, self._target, shard)
            name = f"{key}/{shard or 0}"
            where = {"workers": [worker.address], "allow_other_workers": False}
            future = self._cluster.client.submit(trials.measure, assignment, key=name, pure=False, **where)
            future.add_done_callback(lambda _: self._events.put({}))
            futures.append(future)
        try:
            yield _Tasks(self._cluster, key, planned, workers, futures, self._events)
        finally:
            for future in futures:
                future.release()


class _Tasks:
    """The tasks of one trial. `futures`: one per worker."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a trial consists of
        self,
        cluster: DaskCluster,
        key: str,
        planned: PlannedTrial,
        workers: Sequence[Worker],
        futures: Sequence[Future[Any]],
        events: queue.SimpleQueue[dict[str, Any]],
    ) -> None:
        self._cluster, self._key, self._planned = cluster, key, planned
        self._workers, self._futures, self._events = workers, futures, events
        self._finished: dict[int, int] = {}
        self._ready: set[int] = set()
        self._first_ready: float | None = None
        self._begun = False

    def carried_out(self, progressed: Progressed) -> Trial | list[ShardReport]:
        """Wait for the results: the reports of all shards, or the trial. After an interrupt, the workers end it."""
        try:
            self._await_all(progressed)
        except KeyboardInterrupt as interrupt:
            self._stop()
            raise TrialInterrupted(self._interrupted()) from interrupt
        except TrialLost:
            self._stop()
            raise
        found = self._results()
        trial = next((one for one in found if isinstance(one, Trial)), None)
        return [one for one in found if isinstance(one, ShardReport)] if trial is None else trial

    def _await_all(self, progressed: Progressed) -> None:
        """Wait until all tasks are done, or a shard has failed."""
        looked = time.monotonic()
        while not all(future.done() for future in self._futures):
            self._take_events(progressed)
            self._agree_when_ready()
            if len(self._workers) > 1 and any(isinstance(one, Trial) for one in self._results()):  # a shard failed
                self._stop()
                return
            if time.monotonic() - looked > _LOOK_SECONDS:
                looked = time.monotonic()
                present = self._cluster.addresses()
                if gone := [worker for worker in self._workers if worker.address not in present]:
                    raise TrialLost(f"worker {gone[0].address} on {gone[0].host} is gone")

    def _take_events(self, progressed: Progressed) -> None:
        """Take the events that have arrived; wait for the first."""
        with contextlib.suppress(queue.Empty):
            event = self._events.get(timeout=_LOOK_SECONDS)
            while True:
                if event.get("key") == self._key:
                    self._take(event, progressed)
                event = self._events.get_nowait()

    def _take(self, event: dict[str, Any], progressed: Progressed) -> None:
        shard = event["shard"] or 0
        if event.get("ready"):
            self._ready.add(shard)
            self._first_ready = self._first_ready or time.monotonic()
        elif event["finished"] is not None:
            self._finished[shard] = event["finished"]
        progressed(sum(self._finished.values()) if self._finished else None)

    def _agree_when_ready(self) -> None:
        """Give all shards their start when each of them is ready. Raise TrialLost if one is late."""
        if self._begun or self._first_ready is None:
            return
        if len(self._ready) == len(self._workers):
            self._begun = True
            offsets = [self._cluster.offset_of(worker) for worker in self._workers]
            start = time.time() + _START_AFTER + _START_AFTER_PER_SHARD * len(self._workers)
            for offset in dict.fromkeys(offsets):
                there = [worker for worker, own in zip(self._workers, offsets, strict=True) if own == offset]
                self._cluster.call(trials.begin, self._key, (start, offset), workers=there)
        elif time.monotonic() - self._first_ready > READY_SECONDS:
            count = f"{len(self._ready)} of {len(self._workers)} shards"
            raise TrialLost(f"{count} were ready {READY_SECONDS:g} s after the first")

    def _results(self) -> list[Trial | ShardReport]:
        """Return the results of the tasks that are done. Raise IncompleteRun if the scheduler has lost them."""
        try:
            return [future.result() for future in self._futures if future.done()]
        except CancelledError as error:
            raise IncompleteRun("the scheduler is gone") from error

    def _stop(self) -> None:
        """End the trial on the workers that are left, and wait until its processes have ended."""
        with contextlib.suppress(IncompleteRun, TrialLost):  # without its scheduler, a worker ends its trial by itself
            present = self._cluster.addresses()
            left = [place for place, worker in enumerate(self._workers) if worker.address in present]
            if left:
                self._cluster.call(trials.stop, self._key, workers=[self._workers[place] for place in left])
            until = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < until and not all(self._futures[place].done() for place in left):
                time.sleep(0.05)

    def _interrupted(self) -> Trial:
        """Return what the interrupted trial had measured."""
        done = [future.result() for future in self._futures if future.status == "finished"]
        trial = next((one for one in done if isinstance(one, Trial)), None)
        return trial or Trial.of(self._planned, status="lost", reason="interrupted", started=utc_now())
