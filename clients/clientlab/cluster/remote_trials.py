"""Measuring the trials of a run on a Dask cluster.

Each trial is one task, and a divided trial one task per shard.
"""

from __future__ import annotations

import contextlib
import math
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clientlab.analysis.shards import ShardReport, machine_id, merge_shards
from clientlab.cluster.preload import measure_trial, send_start
from clientlab.cluster.workers import DaskCluster, Worker
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.results.plan import Target
from clientlab.results.trial import ClockOffset, PlannedTrial, Trial, utc_now
from clientlab.running.execute import Progressed, TrialInterrupted, TrialLost
from clientlab.running.trial_runner import begin
from clientlab.workload.workload import READY_SECONDS, Workload

if TYPE_CHECKING:
    from distributed import Future

_LOOK_SECONDS = 1.0
_STOP_SECONDS = 10.0
_START_AFTER = 0.5
_START_AFTER_PER_SHARD = 0.03
"""Seconds from the moment when the last shard is ready to the agreed start.

Meanwhile, each shard learns of it and reads the servers' counters. With 0.6 s in all,
64 shards on two cores began up to 4.6 s apart; with 2.4 s, 29 ms.
"""


class ClusterMeasurement:
    """Measures the trials of one run on a cluster (see `running.execute.Measure`)."""

    def __init__(self, cluster: DaskCluster, run: Run) -> None:
        self._cluster = cluster
        self._run = run.run
        self._experiment = run.experiment.name
        self._target = run.target or Target(testbed="compose")
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        cluster.client.subscribe_topic(
            run.run, lambda event: self._events.put(event[1])
        )

    def __call__(
        self,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,  # noqa: ARG002 - of this machine
        progressed: Progressed,
    ) -> Trial:
        """Measure a trial.

        Raise TrialLost if a worker is gone, IncompleteRun if the scheduler is, and
        TrialInterrupted with what was measured until an interrupt.
        """
        shards = workload.shards
        workers = self._cluster.find_workers(planned.strategy, shards)
        if len(workers) < shards:
            raise TrialLost(
                f"{len(workers)} of {shards} workers for {planned.strategy!r} are left"
            )
        started = utc_now()
        key = f"{self._run}/{planned.order}"
        futures: list[Future[Any]] = []
        try:
            for place, worker in enumerate(workers):
                shard = None if len(workers) == 1 else place
                future = self._submit(key, planned, workload, worker, shard)
                futures.append(future)
            result = self._wait(key, workers, futures, progressed)
        except KeyboardInterrupt as interrupt:
            self._stop(key, workers, futures)
            trial = _find_trial(futures) or Trial(
                planned=planned, status="lost", reason="interrupted", started=started
            )
            raise TrialInterrupted(trial) from interrupt
        except CancelledError as error:
            raise IncompleteRun("the scheduler is gone") from error
        finally:
            self._stop(key, workers, futures)
            for future in futures:
                future.release()
        if not isinstance(result, Trial):
            return merge_shards(begin(planned, workload, started), result)
        if workers[0].machine == machine_id():
            return result
        # The clock of another machine may be wrong; the lab plans by this time.
        return result.updated(started=started)

    def _submit(
        self,
        key: str,
        planned: PlannedTrial,
        workload: Workload,
        worker: Worker,
        shard: int | None,
    ) -> Future[Any]:
        future = self._cluster.client.submit(
            measure_trial,
            self._run,
            self._experiment,
            key,
            planned,
            workload,
            self._target,
            shard,
            key=f"{key}/{shard or 0}",
            pure=False,
            workers=[worker.address],
            allow_other_workers=False,
        )
        future.add_done_callback(lambda _: self._events.put({}))
        return future

    def _wait(
        self,
        key: str,
        workers: Sequence[Worker],
        futures: Sequence[Future[Any]],
        progressed: Progressed,
    ) -> Trial | list[ShardReport]:
        """Let all shards start together, and return their reports.

        Return the trial if it is whole or a shard failed. Raise TrialLost if a worker
        is gone, or if a shard is not ready in time.
        """
        finished: dict[int, int] = {}  # shard to its requests so far
        ready: set[int] = set()
        reports: dict[int, ShardReport] = {}
        first_ready = math.inf
        begun = False
        for event in self._follow(key, workers):
            if event.get("ready"):
                first_ready = min(first_ready, time.monotonic())
                ready.add(event["shard"])
            elif event.get("finished") is not None:
                finished[event["shard"] or 0] = event["finished"]
            progressed(sum(finished.values()) if finished else None)
            if not begun and len(ready) == len(workers):
                begun = True
                self._start_together(key, workers)
            if not begun and time.monotonic() - first_ready > READY_SECONDS:
                raise TrialLost(
                    f"{len(ready)} of {len(workers)} shards were ready"
                    f" {READY_SECONDS:g} s after the first"
                )
            for shard, future in enumerate(futures):
                if shard not in reports and future.done():
                    result = future.result()
                    if isinstance(result, Trial):
                        return result
                    reports[shard] = result
            if len(reports) == len(futures):
                break
        return list(reports.values())

    def _follow(self, key: str, workers: Sequence[Worker]) -> Iterator[dict[str, Any]]:
        """Yield the events of a trial, and an empty one at least once a second.

        Raise TrialLost if a worker is gone.
        """
        looked = time.monotonic()
        while True:
            event: dict[str, Any] = {}
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=_LOOK_SECONDS)
            yield event if event.get("key") == key else {}
            if time.monotonic() - looked > _LOOK_SECONDS:
                looked = time.monotonic()
                present = self._cluster.read_addresses()
                for worker in workers:
                    if worker.address not in present:
                        raise TrialLost(
                            f"worker {worker.address} on {worker.host} is gone"
                        )

    def _start_together(self, key: str, workers: Sequence[Worker]) -> None:
        """Agree with all shards on a start.

        Each worker gets it with the offset of its clock.
        """
        by_offset: dict[ClockOffset | None, list[Worker]] = {}
        for worker in workers:
            offset = self._cluster.measure_offset(worker)
            by_offset.setdefault(offset, []).append(worker)
        start = time.time() + _START_AFTER + _START_AFTER_PER_SHARD * len(workers)
        for offset, group in by_offset.items():
            self._cluster.call(send_start, key, (start, offset), workers=group)

    def _stop(
        self, key: str, workers: Sequence[Worker], futures: Sequence[Future[Any]]
    ) -> None:
        """Stop the tasks that are not done, and wait until their processes have ended.

        Workers that are gone are left out.
        """
        # An interrupt may come before all tasks are submitted.
        pairs = zip(workers, futures, strict=False)
        running = [(worker, future) for worker, future in pairs if not future.done()]
        if not running:
            return
        # Without its scheduler, a worker stops its trial by itself.
        with contextlib.suppress(IncompleteRun, TrialLost):
            present = self._cluster.read_addresses()
            left = [pair for pair in running if pair[0].address in present]
            stopped = [worker for worker, _ in left]
            if stopped:
                self._cluster.call(send_start, key, None, workers=stopped)
            until = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < until:
                if all(future.done() for _, future in left):
                    break
                time.sleep(0.05)


def _find_trial(futures: Sequence[Future[Any]]) -> Trial | None:
    for future in futures:
        if future.status == "finished":
            result = future.result()
            if isinstance(result, Trial):
                return result
    return None
