"""The trial that workers have: a slot for each shard, who holds it, how far it is, and its checked result.

A trial that is not divided has one slot.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from clientlab.results.part import first_problem
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.merged_shards import merged_trial
from clientlab.running.shard_checks import contradiction_of
from clientlab.running.trial_result import Begun
from clientlab.running.trial_watch import deadline_of
from clientlab.service.schemas import AssignmentResult, ResultAnswer, ShardState
from clientlab.worker.assignment import Assignment
from clientlab.workload.shard_workload import part_of
from clientlab.workload.workload import Workload

_SAVED_WITHIN = 5.0
_HELD_SECONDS = 20.0
"""How long a shard that is ready, and one that has reported, is kept waiting for an answer."""

START_SLACK = 5.0
"""Seconds before the agreed start, or after now, at which no report may say that its shard began or ended."""

START_AFTER = 0.5
START_AFTER_PER_SHARD = 0.001
"""Seconds from the moment at which the last shard is ready to the agreed start: each has to learn of it before."""

Reported = Trial | list[ShardReport]
"""Of a trial that workers have done: the trial, or the reports of all its shards."""


class NoMeeting(Exception):
    """The trial is over. The text is for the worker's log."""


@dataclass(eq=False)
class ShardSlot:
    """One shard of a trial, or all of a trial that is not divided.

    `begun`: its worker has sent a heartbeat. `ready`: it waits for the other shards, or has waited for them. `over`:
    its worker has sent its result, or is known to do something else. `hands`: by worker, how often it was given the
    slot.
    """

    number: int
    worker: str | None = None
    seen: float = 0.0
    begun: bool = False
    ready: bool = False
    over: bool = False
    finished: int = 0
    hands: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class GivenTrial:
    """A trial, and what became of it. Times are monotonic.

    `resumed`: workers may have it already, from before the lab's restart; nobody is given it before `not_before`.
    `heartbeat`: seconds between two heartbeats of a slot. `turned`: set when all shards are ready, or the trial is
    over. `settled`: set when it is in the run's file (`saved`), or never will be.
    """

    run: str
    experiment: str
    planned: PlannedTrial
    workload: Workload
    progressed: Callable[[int], None]
    resumed: bool
    since: float
    not_before: float
    heartbeat: float
    result: asyncio.Future[Reported] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    slots: list[ShardSlot] = field(init=False)
    finished: int = 0
    first_ready: float | None = None
    all_begun: float | None = None
    agreed: float | None = None  # the start, by the lab's clock
    turned: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    saved: bool = False

    def __post_init__(self) -> None:
        self.slots = [ShardSlot(number) for number in range(self.workload.shards)]
        self._free = dict(enumerate(self.slots))
        self._held: dict[str, ShardSlot] = {}
        self._ready: set[int] = set()
        self._reports: dict[int, ShardReport] = {}
        self.result.add_done_callback(self._ended)

    @property
    def identity(self) -> tuple[str, int]:
        return self.run, self.planned.order

    @property
    def divided(self) -> bool:
        return len(self.slots) > 1

    @property
    def free(self) -> list[ShardSlot]:
        """The slots that nobody holds."""
        return [self._free[number] for number in sorted(self._free)]

    @property
    def lacking(self) -> int:
        """How many slots nobody holds."""
        return len(self._free)

    @property
    def half_resumed(self) -> bool:
        """Whether some of its shards went on over the lab's restart, and others were not heard of yet."""
        return self.resumed and 0 < self.lacking < len(self.slots)

    def assignment(self, slot: ShardSlot) -> Assignment:
        """What the worker that gets a slot has to do."""
        return Assignment(
            run=self.run,
            experiment=self.experiment,
            trial=self.planned,
            workload=self.workload,
            shard=slot.number if self.divided else None,
            heartbeat_seconds=self.heartbeat,
        )

    def held_by(self, worker: str) -> ShardSlot | None:
        """The slot that a worker holds."""
        return self._held.get(worker)

    def give(self, slot: ShardSlot, worker: str, now: float) -> None:
        """A worker is given a slot, and has yet to begin."""
        self.hold(slot, worker, now)
        slot.begun = False
        slot.hands[worker] += 1

    def hold(self, slot: ShardSlot, worker: str, now: float) -> None:
        """A worker has a slot, and was heard of."""
        slot.worker, slot.seen, slot.begun = worker, now, True
        self._held[worker] = slot
        self._free.pop(slot.number, None)

    def release(self, slot: ShardSlot) -> None:
        """The worker that was given a slot does not know of it."""
        if slot.worker is not None:
            del self._held[slot.worker]
        slot.worker, self._free[slot.number] = None, slot

    def slot_for(self, worker: str, shard: int | None) -> ShardSlot | None:
        """The slot that a worker holds, or had before the lab's restart; None where it can't be that worker's."""
        if (shard is not None) != self.divided or (shard or 0) >= len(self.slots):
            return None
        slot = self.slots[shard or 0]
        return slot if slot.worker == worker or self._may_have(slot, worker) else None

    def _may_have(self, slot: ShardSlot, worker: str) -> bool:
        """Whether a worker may have been given a free slot before the lab's restart. It has no other slot then."""
        return self.resumed and slot.worker is None and worker not in self._held

    def progress(self, slot: ShardSlot, finished: int) -> None:
        """So many requests of a slot have finished."""
        self.finished += finished - slot.finished
        slot.finished = finished
        self.progressed(self.finished)

    def extend_deadlines(self, late: float, now: float) -> None:
        """Extend all deadlines: while the service was suspended, no heartbeat could arrive."""
        self.since = min(now, self.since + late)
        for slot in self.slots:
            slot.seen = min(now, slot.seen + late)
        if self.first_ready is not None:
            self.first_ready = min(now, self.first_ready + late)
        if self.all_begun is not None:
            self.all_begun = min(now, self.all_begun + late)

    def waiting_since(self, now: float) -> float | None:
        """Since when shards that are ready wait for others that have begun; None where they do not.

        A job that has yet to start has a limit of its own, which is longer: then the trial is lost, and repeated.
        """
        if self.all_begun is None and all(slot.begun for slot in self.slots):
            self.all_begun = now
        if self.agreed is not None or self.first_ready is None or self.all_begun is None:
            return None
        return max(self.first_ready, self.all_begun)

    async def meet(self, slot: ShardSlot, now: float, clock: Callable[[], float]) -> float | None:
        """The start on which all shards agree, by `clock`; None after a while, while some are not ready.

        Raises NoMeeting, and TimeoutError where the service ends.
        """
        if not self.result.done():
            slot.ready, self.first_ready = True, self.first_ready or now
            self._ready.add(slot.number)
            if self.agreed is None and len(self._ready) == len(self.slots):
                self.agreed = clock() + START_AFTER + START_AFTER_PER_SHARD * len(self.slots)
                self.turned.set()
        try:
            async with asyncio.timeout(_HELD_SECONDS):
                await self.turned.wait()
        except TimeoutError:
            return None
        if self.result.done():
            raise NoMeeting(f"the trial is over: {self.why()}")
        if self.agreed is None:
            raise TimeoutError
        return self.agreed

    def expects(self, result: AssignmentResult) -> bool:
        """Whether it can be a result of this trial: of all of it, of one of its shards, or why one has ended it."""
        if result.shard is None:
            trial = result.trial
            return trial is not None and not (self.divided and trial.status == "done") and self._same(trial)
        index = result.shard.index
        share = part_of(self.planned.concurrency, index, len(self.slots))
        return self.divided and index < len(self.slots) and self._same(result.shard.planned, concurrency=share)

    def slot_of(self, result: AssignmentResult) -> ShardSlot | None:
        """The slot that a result is of; None where another worker has it."""
        if result.shard is not None:
            return self.slot_for(result.worker, result.shard.index)
        free = (slot for slot in self.free if self._may_have(slot, result.worker))
        return self.held_by(result.worker) or next(free, None)

    def take(self, slot: ShardSlot, result: AssignmentResult, now: float) -> None:
        """Take a result. The trial is over with the last report of a shard, and with the first shard that failed.

        `now`: by the lab's clock. A report of another time fails the trial.
        """
        self.hold(slot, result.worker, slot.seen)
        slot.over = True
        if result.shard is None:
            if result.trial is not None:
                self.result.set_result(result.trial)
            return
        if why := self._wrong_time(result.shard, now):
            self.fail(f"shard {slot.number + 1} of {len(self.slots)} on {result.shard.host}: {why}")
            return
        self._reports[slot.number] = result.shard
        self.progress(slot, result.shard.counts.finished)
        if len(self._reports) == len(self.slots):
            self.result.set_result([self._reports[number] for number in sorted(self._reports)])

    def _wrong_time(self, report: ShardReport, now: float) -> str | None:
        """Why a shard can't have been measured when its report says so. After a restart, the start is not known."""
        began, ended = report.outcome.began, report.outcome.began + report.outcome.wall_seconds
        if self.agreed is not None and began < self.agreed - START_SLACK:
            return f"it began {self.agreed - began:,.0f} s before the agreed start by its report"
        return f"it ended {ended - now:,.0f} s after its report arrived" if ended > now + START_SLACK else None

    async def answer(self, result: AssignmentResult) -> ResultAnswer:
        """The answer to a result, when the trial is in the run's file.

        Raises TimeoutError where that takes too long, as where other shards go on.
        """
        async with asyncio.timeout(_SAVED_WITHIN if result.shard is None else _HELD_SECONDS):
            await self.settled.wait()
        if not self.result.done() or (self.result.exception() is None and not self.saved):
            raise TimeoutError
        if self.result.exception() is not None or (result.shard is not None and self.reports is None):
            return ResultAnswer(taken=False, message=f"the trial was given up before: {self.why()}")
        return ResultAnswer(taken=True, message="taken")

    @property
    def reports(self) -> list[ShardReport] | None:
        """Of all its shards, as its result; None where that is something else."""
        outcome = self.result.result()
        return None if isinstance(outcome, Trial) else outcome

    def why(self) -> str:
        """Why the trial, which is over, has no other result."""
        if (error := self.result.exception()) is not None:
            return str(error)
        outcome = self.result.result()
        return outcome.reason or outcome.status if isinstance(outcome, Trial) else "all its shards have reported"

    def fail(self, reason: str) -> None:
        """The trial has failed, if it is not over."""
        if not self.result.done():
            self.result.set_result(Trial.of(self.planned, status="failed", reason=reason, started=utc_now()))

    def close(self) -> None:
        """The service ends: nobody waits any more."""
        self.turned.set()
        self.settled.set()

    def state_of(self, slot: ShardSlot) -> ShardState | None:
        """How far a shard is; None for a trial that is not divided."""
        if not self.divided:
            return None
        if slot.over:
            phase = "done"
        elif self.agreed is not None:
            phase = "measuring"
        else:
            phase = "ready" if slot.ready else "preparing"
        return ShardState.model_validate(
            {"index": slot.number, "of": len(self.slots), "finished": slot.finished, "phase": phase}
        )

    def progress_of_shards(self) -> str | None:
        """One line about all shards; None for a trial that is not divided."""
        if not self.divided:
            return None
        if self._free:
            return f"it waits for {self.lacking} of {len(self.slots)} workers"
        if self.agreed is None:
            return f"{len(self._ready)} of {len(self.slots)} shards are ready"
        return f"{sum(slot.over for slot in self.slots)} of {len(self.slots)} shards have reported"

    def named(self, slots: Iterable[ShardSlot], host: Callable[[str], str]) -> str:
        """Shards with their workers' hosts, as in "shard 2 of 4 on pod-1"; the host alone where there are no shards."""
        return ", ".join(
            " on ".join(
                [
                    *([f"shard {slot.number + 1} of {len(self.slots)}"] if self.divided else []),
                    *([host(slot.worker)] if slot.worker is not None else []),
                ]
            )
            for slot in slots
        )

    def _same(self, done: PlannedTrial, **other: int) -> bool:
        """Whether a trial is the planned one. `other`: fields whose values are not the planned ones."""
        fields = {name: getattr(self.planned, name) for name in PlannedTrial.model_fields} | other
        return all(getattr(done, name) == value for name, value in fields.items())

    def _ended(self, result: asyncio.Future[Reported]) -> None:
        self.turned.set()
        if result.cancelled() or result.exception() is not None:
            self.settled.set()


def checked_trial(planned: PlannedTrial, workload: Workload, trial: Trial, now: float) -> Trial:
    """The trial of one worker; a failed one where it contradicts itself. `now`: Unix seconds, by the lab's clock."""
    why = contradiction_of(trial, workload, now)
    return trial if why is None else Trial.of(planned, status="failed", reason=why, started=utc_now())


def reported_trial(planned: PlannedTrial, workload: Workload, reports: Sequence[ShardReport]) -> Trial:
    """The trial; a failed one where the reports give an impossible figure."""
    started = min(report.started for report in reports)
    begun = Begun(planned, workload, started, deadline_of(workload, planned.concurrency, planned.link))
    try:
        return merged_trial(begun, reports)
    except ValidationError as error:
        return begun.ended("failed", f"impossible figure: {first_problem(error)}")
