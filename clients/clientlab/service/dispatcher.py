"""Which worker gets which trial, or which shard of one. There is one trial at a time: two would measure each other.

All of it lives in the service's event loop; the run's thread waits for `give` from outside. Only the workers that get
something are woken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from clientlab.results.trial import PlannedTrial
from clientlab.running.execute import TrialLost
from clientlab.service.given_trial import GivenTrial, NoMeeting, Reported
from clientlab.service.recruiter import Bounds, Recruiter
from clientlab.service.schemas import AssignmentRequest, AssignmentResult, Heartbeat, MeetingRequest, WorkerState
from clientlab.service.workers import Worker, Workers
from clientlab.worker.assignment import Assignment
from clientlab.workload.shard_workload import READY_SECONDS
from clientlab.workload.workload import Workload

POLL_SECONDS = 20.0
_TICK = 0.5


@dataclass
class Dispatcher:
    """The present trial, and the workers that may do it. `clock`: the lab's, in Unix seconds."""

    bounds: Bounds
    clock: Callable[[], float] = time.time
    _workers: Workers = field(default_factory=Workers)
    _trial: GivenTrial | None = None
    _busy: dict[str, float] = field(default_factory=dict)  # workers that have yet to stop a trial, and until when
    _closed: bool = False

    def __post_init__(self) -> None:
        self._recruiter = Recruiter(self.bounds, self._workers)

    async def give(
        self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, progressed: Callable[[int], None]
    ) -> Reported:
        """What the workers made of the trial; a failed one where too few come in time.

        Raises TrialLost, or what `end` is given.
        """
        trial = GivenTrial(run, experiment, planned, workload, progressed, time.monotonic(), self.bounds.heartbeat)
        self._trial = trial
        self._assign()
        try:
            while not (await asyncio.wait([trial.result], timeout=_TICK))[0]:
                self._look_after(trial, time.monotonic())
            return trial.result.result()
        finally:
            self._trial = None
            for slot in trial.slots:
                if slot.begun and not slot.over and slot.worker is not None:
                    self._busy[slot.worker] = slot.seen + 2 * trial.heartbeat + 1.0

    def await_abandoned_trials(self) -> None:
        """After a restart, give no trial until the workers know by a heartbeat that theirs is not wanted any more."""
        self._busy["before the restart"] = time.monotonic() + 3 * self.bounds.heartbeat

    def end(self, reason: Exception) -> None:
        """The present trial is not to be waited for."""
        if self._trial is not None and not self._trial.result.done():
            self._trial.result.set_exception(reason)

    async def poll(self, request: AssignmentRequest, gone: Callable[[], Awaitable[object]]) -> Assignment | None:
        """An assignment, as soon as there is one; None after a while without one, or where the worker is gone.

        `gone` waits until the worker's connection has ended.
        """
        if self._closed:
            return None
        poll = self._recruiter.add(self._register(request))
        self._assign()
        leaving = asyncio.ensure_future(gone())
        either: list[asyncio.Future[Any]] = [poll.turn, leaving]
        try:
            await asyncio.wait(either, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            return poll.turn.result() if poll.turn.done() else None
        finally:
            leaving.cancel()
            self._recruiter.remove(poll)

    def heartbeat(self, heartbeat: Heartbeat) -> bool:
        """A trial, or a shard of it, is alive; whether it is wanted."""
        self._workers.heard_of(heartbeat.worker)
        trial = self._present(heartbeat.run, heartbeat.order)
        slot = None if trial is None else trial.held_by(heartbeat.worker)
        if trial is None or slot is None or trial.result.done():
            return False
        slot.begun, slot.seen = True, time.monotonic()
        trial.progress(slot, heartbeat.finished)
        return True

    async def meet(self, request: MeetingRequest) -> float | None:
        """The start on which all shards of the trial agree, by the lab's clock; None after a while.

        Raises NoMeeting, and TimeoutError where the service ends.
        """
        trial = self._present(request.run, request.order)
        slot = None if trial is None else trial.held_by(request.worker)
        if trial is None or slot is None:
            raise NoMeeting(f"trial {request.order} of run {request.run!r} is over, or another worker has it now")
        slot.begun, slot.seen = True, time.monotonic()
        return await trial.meet(slot, slot.seen, self.clock)

    def take(self, result: AssignmentResult) -> str | None:
        """Take a result. Return None, or why it is not taken."""
        run, order = result.identity
        trial = self._present(run, order)
        slot = None if trial is None else trial.held_by(result.worker)
        if trial is None or slot is None or trial.result.done():
            return f"trial {order} of run {run!r} is over, or another worker has it now"
        self._workers.heard_of(result.worker)
        trial.take(slot, result)
        return None

    def close(self) -> None:
        """The service ends: nobody waits any more."""
        self._closed = True
        self._recruiter.dismiss()
        if self._trial is not None:
            self._trial.turned.set()

    def workers(self) -> list[WorkerState]:
        """All that were heard of lately."""
        return self._workers.states({slot.worker or "" for slot in self._trial.slots} if self._trial else ())

    def _present(self, run: str, order: int) -> GivenTrial | None:
        trial = self._trial
        return trial if trial is not None and (trial.run, trial.planned.order) == (run, order) else None

    def _register(self, request: AssignmentRequest) -> Worker:
        """Note a worker that polls. If it had the present trial, it has lost it, or never got it."""
        worker, is_new = self._workers.register(request)
        self._busy.pop(request.worker, None)
        if is_new:
            self._recruiter.came(worker)
        trial = self._trial
        slot = None if trial is None else trial.held_by(request.worker)
        if trial is not None and slot is not None and not slot.over:
            slot.over = True
            self.end(
                TrialLost(
                    f"{trial.named([slot], self._workers.host)} lost its trial, and polled for another; see its log"
                )
            )
        return worker

    def _assign(self) -> None:
        """Give all slots of the present trial to workers that wait, if there are enough of them."""
        trial, now = self._trial, time.monotonic()
        if trial is None or trial.result.done() or trial.is_given:
            return
        self._busy = {name: until for name, until in self._busy.items() if now < until}
        if self._busy:
            return
        for slot, poll in zip(trial.slots, self._recruiter.chosen(trial, now), strict=False):
            slot.worker, slot.seen = poll.name, now
            poll.turn.set_result(trial.assignment(slot))

    def _look_after(self, trial: GivenTrial, now: float) -> None:
        """End a trial that no worker takes, whose workers send no heartbeat, or whose shards do not get ready."""
        if not trial.is_given:
            if reason := self._recruiter.lack(trial, now):
                trial.fail(reason)
            else:
                self._assign()  # it may be a generic worker's by now
            return
        for slot in trial.slots:
            bound = self.bounds.silence(begun=slot.begun)
            if not slot.over and now - slot.seen >= bound:
                self.end(TrialLost(f"{trial.named([slot], self._workers.host)} was not heard of for {bound:g} s"))
                slot.over = True
        since = trial.waiting_since(now)
        if since is not None and now - since >= READY_SECONDS and not trial.result.done():
            missing = trial.named([slot for slot in trial.slots if not slot.ready], self._workers.host)
            trial.fail(f"not all shards were ready within {READY_SECONDS:g} s after the first; waited for {missing}")
