"""Measuring the trials of a run on a Dask cluster: each trial is one task, and a
divided trial one task per shard.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clientlab.cluster.preload import measure_trial, send_start
from clientlab.cluster.workers import DaskCluster, Worker
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.results.plan import Target
from clientlab.running.execute import Progressed, TrialInterrupted, TrialLost
from clientlab.running.trial_runner import compute_deadline
from clientlab.trial.finish import Begun
from clientlab.trial.result import PlannedTrial, Trial, utc_now
from clientlab.trial.shards import ShardReport, machine_id, merge_shards
from clientlab.workload.workload import READY_SECONDS, Workload

if TYPE_CHECKING:
    from distributed import Future

_LOOK_SECONDS, _STOP_SECONDS = 1.0, 10.0
_START_AFTER, _START_AFTER_PER_SHARD = 0.5, 0.03
"""Seconds from the moment when the last shard is ready to the agreed start.

Meanwhile, each shard learns of it and reads the servers' counters. With 0.6 s in all,
64 shards on two cores began up to 4.6 s apart; with 2.4 s, 29 ms.
"""


class ClusterMeasurement:
    """Measures the trials of one run on a cluster (see `running.execute.Measure`)."""

    def __init__(self, cluster: DaskCluster, run: Run) -> None:
        self._cluster = cluster
        self._run, self._experiment = run.run, run.experiment.name
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

        Raise TrialLost if a worker is gone, and IncompleteRun if the scheduler is.

        After an interrupt, the workers stop the trial, and TrialInterrupted is raised
        with what it had measured.
        """
        workers = self._cluster.find_workers(planned.strategy, workload.shards)
        if len(workers) < workload.shards:
            raise TrialLost(
                f"{len(workers)} of {workload.shards} workers for {planned.strategy!r}"
                " are left"
            )
        started, key = utc_now(), f"{self._run}/{planned.order}"
        futures: list[Future[Any]] = []
        try:
            for place, worker in enumerate(workers):
                shard = None if len(workers) == 1 else place
                task = (
                    measure_trial,
                    self._run,
                    self._experiment,
                    key,
                    planned,
                    workload,
                    self._target,
                    shard,
                )
                where: dict[str, Any] = {
                    "workers": [worker.address],
                    "allow_other_workers": False,
                }
                futures.append(
                    self._cluster.client.submit(
                        *task, key=f"{key}/{place}", pure=False, **where
                    )
                )
                futures[-1].add_done_callback(lambda _: self._events.put({}))
            result = self._wait(key, workers, futures, progressed)
        except KeyboardInterrupt as interrupt:
            self._stop(key, workers, futures)
            done = [
                future.result() for future in futures if future.status == "finished"
            ]
            lost = Trial(
                planned=planned, status="lost", reason="interrupted", started=started
            )
            raise TrialInterrupted(
                next((one for one in done if isinstance(one, Trial)), lost)
            ) from interrupt
        except CancelledError as error:
            raise IncompleteRun("the scheduler is gone") from error
        finally:
            self._stop(key, workers, futures)
            for future in futures:
                future.release()
        if isinstance(result, Trial):
            # The clock of another machine may be wrong, and the lab plans by this time.
            return (
                result
                if workers[0].machine == machine_id()
                else result.model_copy(update={"started": started})
            )
        begun = Begun(
            planned,
            workload,
            started,
            compute_deadline(workload, planned.concurrency, planned.link),
        )
        return merge_shards(begun, result)

    def _wait(
        self,
        key: str,
        workers: Sequence[Worker],
        futures: Sequence[Future[Any]],
        progressed: Progressed,
    ) -> Trial | list[ShardReport]:
        """Let all shards start together, and return their reports, or the trial if it
        is whole or a shard failed.

        Raise TrialLost if a worker is gone, or if a shard is not ready in time.
        """
        finished: dict[int, int] = {}  # shard to its requests so far
        ready: set[int] = set()
        results: dict[int, Trial | ShardReport] = {}
        first_ready, begun = 0.0, False
        for event in self._follow(key, workers):
            if event.get("ready"):
                first_ready = first_ready or time.monotonic()
                ready.add(event["shard"])
            elif event.get("finished") is not None:
                finished[event["shard"] or 0] = event["finished"]
            progressed(sum(finished.values()) if finished else None)
            if ready and not begun:
                if begun := len(ready) == len(workers):
                    self._start_together(key, workers)
                elif time.monotonic() - first_ready > READY_SECONDS:
                    count = f"{len(ready)} of {len(workers)} shards"
                    raise TrialLost(
                        f"{count} were ready {READY_SECONDS:g} s after the first"
                    )
            for place in [
                place
                for place, future in enumerate(futures)
                if place not in results and future.done()
            ]:
                results[place] = futures[place].result()
            if (
                trial := next(
                    (one for one in results.values() if isinstance(one, Trial)), None
                )
            ) is not None:
                return trial
            if len(results) == len(futures):
                break
        return [one for one in results.values() if isinstance(one, ShardReport)]

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
                looked, present = time.monotonic(), self._cluster.read_addresses()
                if gone := [
                    worker for worker in workers if worker.address not in present
                ]:
                    raise TrialLost(
                        f"worker {gone[0].address} on {gone[0].host} is gone"
                    )

    def _start_together(self, key: str, workers: Sequence[Worker]) -> None:
        """Agree with all shards on a start, which each worker gets with the offset of
        its clock.
        """
        offsets = [self._cluster.measure_offset(worker) for worker in workers]
        start = time.time() + _START_AFTER + _START_AFTER_PER_SHARD * len(workers)
        for offset in dict.fromkeys(offsets):
            there = [
                worker
                for worker, own in zip(workers, offsets, strict=True)
                if own == offset
            ]
            self._cluster.call(send_start, key, (start, offset), workers=there)

    def _stop(
        self, key: str, workers: Sequence[Worker], futures: Sequence[Future[Any]]
    ) -> None:
        """Stop the tasks that are not done, if their workers are left, and wait until
        their processes have ended.
        """
        # An interrupt may come before all tasks are submitted.
        unfinished = [
            one for one in zip(workers, futures, strict=False) if not one[1].done()
        ]
        with contextlib.suppress(
            IncompleteRun, TrialLost
        ):  # without its scheduler, a worker stops its trial by itself
            present = self._cluster.read_addresses() if unfinished else {}
            if left := [one for one in unfinished if one[0].address in present]:
                self._cluster.call(
                    send_start, key, None, workers=[worker for worker, _ in left]
                )
            until = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < until and not all(
                future.done() for _, future in left
            ):
                time.sleep(0.05)
