"""Which worker gets which trial. One trial at a time over all workers: two would measure each other.

All of it lives in the service's event loop; the run's thread waits for `give` from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialLost
from clientlab.service.schemas import AssignmentRequest, AssignmentResult, Heartbeat, ResultAnswer, WorkerState
from clientlab.service.workers import Worker, Workers
from clientlab.worker.assignment import Assignment
from clientlab.workload.workload import Workload

POLL_SECONDS = 20.0
_TICK = 0.5
_SAVED_WITHIN = 5.0
_MOST_HANDS = 2  # the first answer may be lost on its way; the second as well is a process that dies


@dataclass(frozen=True)
class Bounds:
    """Seconds to wait for a worker of a strategy, before a generic one takes it, and for a heartbeat of a trial.

    `start`: how much longer the first heartbeat may take, while the process of the job starts.
    """

    patience: float = 30.0
    generic: float = 5.0
    lost: float = 10.0
    start: float = 10.0

    @property
    def heartbeat(self) -> float:
        return self.lost / 5


@dataclass
class _Trial:
    run: str
    experiment: str
    planned: PlannedTrial
    workload: Workload
    progressed: Callable[[int], None]
    result: asyncio.Future[Trial]
    since: float
    not_before: float  # a worker that has it already, from before a restart, is heard of until then
    worker: str | None = None
    seen: float = 0.0
    beaten: bool = False
    hands: Counter[str] = field(default_factory=Counter)  # by worker, how often it was given the trial
    saved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def identity(self) -> tuple[str, int]:
        return self.run, self.planned.order


@dataclass
class Dispatcher:
    """The present trial, and the workers that may do it."""

    bounds: Bounds
    _workers: Workers = field(default_factory=Workers)
    _trial: _Trial | None = None
    _last: _Trial | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _uncovered: set[str] = field(default_factory=set)  # strategies for which nobody came in time
    _by_name: set[str] = field(default_factory=set)  # those that have waited for a worker of their own already
    _closed: bool = False

    async def give(  # noqa: PLR0913 - a trial's particulars
        self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, progressed: Callable[[int], None],
        *, resumed: bool,
    ) -> Trial:  # fmt: skip
        """The trial, done by a worker; a failed one where none comes in time.

        Raises TrialLost, or what `end` is given.
        """
        now = time.monotonic()
        result: asyncio.Future[Trial] = asyncio.get_running_loop().create_future()
        not_before = now + 3 * self.bounds.heartbeat if resumed else now
        trial = _Trial(run, experiment, planned, workload, progressed, result, now, not_before)
        self._trial = trial
        self._tell()
        try:
            while not (await asyncio.wait([result], timeout=_TICK))[0]:
                before, now = now, time.monotonic()
                if (late := now - before - _TICK) > _TICK:  # this process was stopped, and could hear of nobody
                    trial.since, trial.seen = min(now, trial.since + late), min(now, trial.seen + late)
                self._look_after(trial)
            return result.result()
        finally:
            self._trial, self._last = None, trial

    def saved(self) -> None:
        """The trial that was given last is in the run's file."""
        if self._last is not None:
            self._last.saved.set()

    def over(self) -> None:
        """The run has ended: what is not saved by now never will be."""
        if self._last is not None and not self._last.saved.is_set():
            self._last = None

    def end(self, reason: Exception) -> None:
        """The present trial is not to be waited for."""
        if self._trial is not None and not self._trial.result.done():
            self._trial.result.set_exception(reason)

    async def poll(self, request: AssignmentRequest, gone: Callable[[], Awaitable[bool]]) -> Assignment | None:
        """An assignment, as soon as there is one; None after a while without one, or where the worker is gone."""
        worker = self._register(request)
        worker.polls += 1
        deadline = time.monotonic() + POLL_SECONDS
        try:
            while not self._closed and not await gone():
                if self._trial is not None and self._may(worker, self._trial):
                    return self._hand(self._trial, worker)
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                changed = self._changed
                with contextlib.suppress(TimeoutError):  # looked at again above
                    async with asyncio.timeout(left):
                        await changed.wait()
            return None
        finally:
            worker.polls -= 1
            worker.seen = time.monotonic()

    def heartbeat(self, heartbeat: Heartbeat) -> bool:
        """A trial is alive; whether it is wanted."""
        trial, now = self._trial, time.monotonic()
        self._workers.heard_of(heartbeat.worker)
        if (
            trial is None
            or trial.identity != (heartbeat.run, heartbeat.order)
            or trial.worker not in (None, heartbeat.worker)
        ):
            return False
        trial.worker, trial.seen, trial.beaten = heartbeat.worker, now, True
        trial.progressed(heartbeat.finished)
        return True

    def given(self, run: str, order: int) -> bool:
        """Whether this trial is the present one, or was given last."""
        return any(trial is not None and trial.identity == (run, order) for trial in (self._trial, self._last))

    async def take(self, result: AssignmentResult) -> ResultAnswer | None:
        """Take a result once; None where it is of no trial that was given last.

        Answers when it is in the run's file, so that a worker lets go of nothing that is not kept. Raises
        TimeoutError where that takes too long.
        """
        for trial in (self._trial, self._last):
            if trial is None or trial.identity != (result.run, result.trial.order):
                continue
            if not _same(trial.planned, result.trial):
                return None
            if trial.worker not in (None, result.worker):
                return ResultAnswer(taken=False, message="another worker has this trial now")
            if not trial.result.done():
                trial.worker = result.worker
                trial.result.set_result(result.trial)
            if trial.result.exception() is not None:
                return ResultAnswer(taken=False, message=f"the trial was given up before: {trial.result.exception()}")
            async with asyncio.timeout(_SAVED_WITHIN):
                await trial.saved.wait()
            return ResultAnswer(taken=True, message="taken")
        return None

    def close(self) -> None:
        """The service ends: no poll waits any more."""
        self._closed = True
        self._tell()

    def workers(self) -> list[WorkerState]:
        """All that were heard of lately."""
        return self._workers.states(self._trial.worker if self._trial else None)

    def _register(self, request: AssignmentRequest) -> Worker:
        worker, trial = self._workers.register(request), self._trial
        self._uncovered = {name for name in self._uncovered if not (worker.named(name) or worker.generic())}
        if trial is not None and trial.worker == request.worker:
            if trial.beaten:
                self.end(TrialLost(f"{request.host} polled for an assignment during its trial"))
            elif trial.hands[request.worker] >= _MOST_HANDS:
                self.end(TrialLost(f"{request.host} was given it {_MOST_HANDS} times and never began; see its log"))
            else:
                trial.worker = None  # the answer that gave it never arrived
        return worker

    def _may(self, worker: Worker, trial: _Trial) -> bool:
        now, strategy = time.monotonic(), trial.planned.strategy
        if trial.worker is not None or trial.result.done() or now < trial.not_before:
            return False
        if worker.named(strategy):
            return True
        waited = strategy in self._by_name or now - trial.since >= self.bounds.generic
        return worker.generic() and waited and not self._workers.any_for(strategy)

    def _hand(self, trial: _Trial, worker: Worker) -> Assignment:
        if not worker.named(trial.planned.strategy):
            self._by_name.add(trial.planned.strategy)
        trial.worker, trial.seen, trial.beaten = worker.request.worker, time.monotonic(), False
        trial.hands[trial.worker] += 1
        return Assignment(
            run=trial.run,
            experiment=trial.experiment,
            trial=trial.planned,
            workload=trial.workload,
            heartbeat_seconds=self.bounds.heartbeat,
        )

    def _look_after(self, trial: _Trial) -> None:
        """End a trial that nobody does, or whose worker is not heard of."""
        now, strategy = time.monotonic(), trial.planned.strategy
        if trial.result.done():
            return
        if trial.worker is None:
            patience = 0.0 if strategy in self._uncovered else self.bounds.patience
            if now - max(trial.since, trial.not_before) >= patience:
                self._uncovered.add(strategy)
                came = f"no worker for strategy {strategy!r} came within {self.bounds.patience:g} s"
                reason = f"{came}; start one with 'clientlab work'"
                trial.result.set_result(Trial.of(trial.planned, status="failed", reason=reason, started=utc_now()))
            else:
                self._tell()  # it may be a generic worker's by now
        else:
            bound = self.bounds.lost + (0.0 if trial.beaten else self.bounds.start)
            if now - trial.seen >= bound:
                host = self._workers.host(trial.worker)
                self.end(TrialLost(f"{host} was not heard of for {bound:g} s"))

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _same(planned: PlannedTrial, done: Trial) -> bool:
    return all(getattr(planned, name) == getattr(done, name) for name in PlannedTrial.model_fields)
