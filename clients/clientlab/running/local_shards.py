"""A divided trial on one machine: each shard is a process, and a thread of the lab looks after each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from clientlab.measuring.trial_handle import TICK_SECONDS, TrialFailed
from clientlab.results.shard import ShardReport
from clientlab.results.trial import Trial
from clientlab.workload.shards import READY_SECONDS

START_AFTER = 0.1
"""Seconds from the moment at which the last shard is ready to the agreed start: each has to learn of it before."""


_STOPPED = "another shard of the trial has ended"


class OtherShardEnded(TrialFailed):
    """Another shard of the trial has failed."""

    def __init__(self) -> None:
        super().__init__(_STOPPED)


class Meeting(Protocol):
    """Where the shards of a trial wait for each other."""

    def __call__(self) -> float:
        """Wait until all shards are ready; the agreed start, by the lab's clock (Unix seconds). Raises TrialFailed."""


@dataclass(frozen=True)
class ShardCallbacks:
    """What a shard calls. `progressed`: with its finished requests; raises OtherShardEnded when the trial is over."""

    meet: Meeting
    progressed: Callable[[int], None]


Measured = ShardReport | Trial
"""The report of a shard, or the trial that failed or was lost because of it."""


class LocalShards:
    """The shards of one trial. `progressed` gets the finished requests of all of them."""

    def __init__(self, shards: int, progressed: Callable[[int], None]) -> None:
        self._finished = [0] * shards
        self._progressed = progressed
        self._agreed = 0.0
        self._over = threading.Event()
        self._barrier = threading.Barrier(shards, self._agree)

    def run(self, measure: Callable[[int, ShardCallbacks], Measured]) -> list[Measured]:
        """What `measure` returns for each shard, at once. After a failure, all others are stopped.

        No process is left, after an exception either, KeyboardInterrupt included.
        """
        with ThreadPoolExecutor(len(self._finished), "shard") as pool:
            try:
                waiting: set[Future[Measured]] = {
                    pool.submit(measure, place, ShardCallbacks(self._meet, self._counter(place)))
                    for place in range(len(self._finished))
                }
                running = set(waiting)
                while running:
                    # The system may deliver a signal to any thread; its handler waits for the main thread to go on.
                    ended, running = wait(running, TICK_SECONDS, FIRST_COMPLETED)
                    if any(one.exception() or not isinstance(one.result(), ShardReport) for one in ended):
                        self._stop()
            except BaseException:
                self._stop()
                raise
        return [one.result() for one in waiting]

    def _agree(self) -> None:
        self._agreed = time.time() + START_AFTER

    def _meet(self) -> float:
        try:
            self._barrier.wait(READY_SECONDS)
        except threading.BrokenBarrierError:
            if self._over.is_set():
                raise OtherShardEnded from None
            raise TrialFailed(f"not all shards were ready within {READY_SECONDS:g} s") from None
        return self._agreed

    def _counter(self, place: int) -> Callable[[int], None]:
        def progressed(finished: int) -> None:
            if self._over.is_set():
                raise OtherShardEnded
            self._finished[place] = finished
            self._progressed(sum(self._finished))

        return progressed

    def _stop(self) -> None:
        self._over.set()
        self._barrier.abort()


def why_not(found: Sequence[Measured]) -> Trial | None:
    """The trial that a shard's failure made; None where all shards have reported. A lost server comes first."""
    ended = [one for one in found if isinstance(one, Trial)]
    return min(ended, key=lambda trial: (trial.status != "lost", _STOPPED in (trial.reason or "")), default=None)
