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
from clientlab.service.schemas import (
    AssignmentRequest,
    AssignmentResult,
    Heartbeat,
    MeetingRequest,
    ResultAnswer,
    WorkerState,
)
from clientlab.service.workers import Worker, Workers
from clientlab.worker.assignment import Assignment
from clientlab.workload.workload import Workload

POLL_SECONDS = 20.0
_TICK = 0.5
_MOST_HANDS = 2  # the first answer may be lost on its way; the second as well is a process that dies


@dataclass
class Dispatcher:
    """The present trial, and the workers that may do it. `clock`: the lab's, in Unix seconds."""

    bounds: Bounds
    clock: Callable[[], float] = time.time
    _workers: Workers = field(default_factory=Workers)
    _trial: GivenTrial | None = None
    _last: GivenTrial | None = None
    _busy: dict[str, float] = field(default_factory=dict)  # workers that have yet to stop a trial, and until when
    _closed: bool = False

    def __post_init__(self) -> None:
        self._recruiter = Recruiter(self.bounds, self._workers)

    async def give(  # noqa: PLR0913 - a trial's particulars
        self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, progressed: Callable[[int], None],
        *, resumed: bool,
    ) -> Reported:  # fmt: skip
        """What the workers made of the trial; a failed one where too few come in time.

        Raises TrialLost, or what `end` is given.
        """
        now, heartbeat = time.monotonic(), self.bounds.heartbeat(workload.shards)
        not_before = now + 3 * heartbeat if resumed else now
        trial = GivenTrial(run, experiment, planned, workload, progressed, resumed, now, not_before, heartbeat)
        self._trial = trial
        self._assign()
        try:
            while not (await asyncio.wait([trial.result], timeout=_TICK))[0]:
                before, now = now, time.monotonic()
                if (late := now - before - _TICK) > _TICK:  # this process was stopped, and could hear of nobody
                    trial.extend_deadlines(late, now)
                self._look_after(trial, now)
            return trial.result.result()
        finally:
            self._trial, self._last = None, trial
            for slot in trial.slots:
                if slot.begun and not slot.over and slot.worker is not None:
                    self._busy[slot.worker] = slot.seen + 2 * trial.heartbeat + 1.0

    def saved(self) -> None:
        """The trial that was given last is in the run's file."""
        if self._last is not None:
            self._last.saved = True
            self._last.settled.set()

    def over(self) -> None:
        """The run has ended: what is not saved by now never will be."""
        if self._last is not None and not self._last.saved:
            self._last.settled.set()
            self._last = None
        self._recruiter.run_is_over()

    def end(self, reason: Exception) -> None:
        """The present trial is not to be waited for."""
        if self._trial is not None and not self._trial.result.done():
            self._trial.result.set_exception(reason)

    def lose(self, host: str, cause: str) -> None:
        """The workers on a host are gone: a trial that one of them does is lost, with all its shards."""
        gone, trial = self._workers.forget(host), self._trial
        for name in gone:
            self._busy.pop(name, None)
        self._recruiter.dismiss(gone)
        slots = [] if trial is None else [one for one in trial.slots if one.worker in gone and not one.over]
        for slot in slots:
            slot.over = True  # nothing has to stop
        if trial is not None and slots:
            self.end(TrialLost(f"{trial.named(slots, lambda _: host)}: {cause}" if trial.divided else cause))

    def refuse(self, strategy: str, cause: str) -> None:
        """No worker for a strategy will come: its trials fail at once, until one does come.

        An empty cause takes that back.
        """
        self._recruiter.refuse(strategy, cause)
        if self._trial is not None:
            self._look_after(self._trial, time.monotonic())

    def refused(self) -> dict[str, str]:
        """Strategies for which no worker will come, and the cause."""
        return self._recruiter.refused

    async def poll(self, request: AssignmentRequest, gone: Callable[[], Awaitable[object]]) -> Assignment | None:
        """An assignment, as soon as there is one; None after a while without one, or where the worker is gone.

        `gone` waits until the worker's connection has ended. Raises TooManyWorkers.
        """
        if self._closed:
            return None
        worker = self._register(request)
        poll = self._recruiter.add(worker)
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
        slot = None if trial is None else trial.slot_for(heartbeat.worker, heartbeat.shard)
        if trial is None or slot is None or trial.result.done():
            return False
        trial.hold(slot, heartbeat.worker, time.monotonic())
        trial.progress(slot, heartbeat.finished)
        return True

    async def meet(self, request: MeetingRequest) -> float | None:
        """The start on which all shards of the trial agree, by the lab's clock; None after a while.

        Raises NoMeeting, and TimeoutError where the service ends.
        """
        trial = self._present(request.run, request.order)
        if trial is None:
            raise NoMeeting(f"trial {request.order} of run {request.run!r} is over")
        slot = trial.slot_for(request.worker, request.shard)
        if slot is None:
            raise NoMeeting(f"another worker has shard {request.shard + 1} of trial {request.order} now")
        trial.hold(slot, request.worker, now := time.monotonic())
        return await trial.meet(slot, now, self.clock)

    def given(self, run: str, order: int) -> bool:
        """Whether this trial is the present one, or was given last."""
        return any(trial is not None and trial.identity == (run, order) for trial in (self._trial, self._last))

    async def take(self, result: AssignmentResult) -> ResultAnswer | None:
        """Take a result once; None where it is of no trial that was given last.

        Answers when the trial is in the run's file, so that a worker lets go of nothing that is not kept. Raises
        TimeoutError where that takes too long, as where other shards go on.
        """
        found = (one for one in (self._trial, self._last) if one is not None and one.identity == result.identity)
        trial = next(found, None)
        if trial is None or not trial.expects(result):
            return None
        slot = trial.slot_of(result)
        if slot is None:
            return ResultAnswer(taken=False, message="another worker has this trial now")
        if not trial.result.done():
            self._workers.heard_of(result.worker)
            trial.take(slot, result, self.clock())
        return await trial.answer(result)

    def close(self) -> None:
        """The service ends: nobody waits any more."""
        self._closed = True
        self._recruiter.dismiss()
        for trial in (self._trial, self._last):
            if trial is not None:
                trial.close()

    def workers(self) -> list[WorkerState]:
        """All that were heard of lately."""
        trial = self._trial
        held = {} if trial is None else {slot.worker: trial.state_of(slot) for slot in trial.slots if slot.worker}
        return self._workers.states(held)

    def shards(self) -> str | None:
        """How far the shards of the present trial are; None for a trial that is not divided."""
        return None if self._trial is None else self._trial.progress_of_shards()

    def _present(self, run: str, order: int) -> GivenTrial | None:
        trial = self._trial
        return trial if trial is not None and trial.identity == (run, order) else None

    def _register(self, request: AssignmentRequest) -> Worker:
        """Note a worker that polls. If it had the present trial, it has lost it, or never got it."""
        worker, is_new = self._workers.register(request)
        self._busy.pop(request.worker, None)
        if is_new:
            self._recruiter.came(worker)
        trial = self._trial
        slot = None if trial is None else trial.held_by(request.worker)
        if trial is None or slot is None or slot.over:
            return worker
        who = trial.named([slot], self._workers.host)
        if slot.begun:
            slot.over = True
            self.end(TrialLost(f"{who} polled for an assignment during its trial"))
        elif slot.hands[request.worker] >= _MOST_HANDS:
            self.end(TrialLost(f"{who} was given it {_MOST_HANDS} times and never began; see its log"))
        else:
            trial.release(slot)  # the answer that gave it never arrived
        return worker

    def _assign(self) -> None:
        """Give all free slots of the present trial to workers that wait, if there are enough of them."""
        trial, now = self._trial, time.monotonic()
        if trial is None or trial.result.done() or now < trial.not_before or not trial.lacking or trial.half_resumed:
            return
        self._busy = {name: until for name, until in self._busy.items() if now < until}
        if self._busy:
            return
        for slot, poll in zip(trial.free, self._recruiter.chosen(trial, now), strict=False):
            trial.resumed = False  # its worker from before the restart has lost it
            trial.give(slot, poll.name, now)
            poll.turn.set_result(trial.assignment(slot))

    def _look_after(self, trial: GivenTrial, now: float) -> None:
        """End a trial that no worker takes, whose workers send no heartbeat, or whose shards do not get ready."""
        if trial.lacking and now >= trial.not_before and not trial.result.done():
            if trial.half_resumed:
                missing = trial.named(trial.free, str)
                self.end(TrialLost(f"{missing} was not heard of after the restart of the lab"))
            elif reason := self._recruiter.lack(trial, now):
                trial.fail(reason)
            else:
                self._assign()  # it may be a generic worker's by now
        for slot in trial.slots:
            bound = self.bounds.silence(len(trial.slots), begun=slot.begun)
            if slot.worker is not None and not slot.over and now - slot.seen >= bound:
                who = trial.named([slot], self._workers.host)
                self.end(TrialLost(f"{who} was not heard of for {bound:g} s"))
                slot.over = True
        since = trial.waiting_since(now)
        if since is not None and now - since >= self.bounds.ready:
            missing = trial.named([slot for slot in trial.slots if not slot.ready], self._workers.host)
            reason = f"not all shards were ready within {self.bounds.ready:g} s after the first; waited for {missing}"
            if trial.resumed:  # a shard that met the others before the restart does not meet them again
                self.end(TrialLost(reason))
            else:
                trial.fail(reason)
