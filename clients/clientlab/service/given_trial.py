"""The trial that workers have: a slot for each shard, who holds it, how far it is, and its result.

A trial that is not divided has one slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from clientlab.results.part import first_problem
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.merged_shards import merged_trial
from clientlab.running.trial_result import Begun
from clientlab.running.trial_watch import deadline_of
from clientlab.service.schemas import AssignmentResult
from clientlab.worker.assignment import Assignment
from clientlab.workload.workload import Workload

_HELD_SECONDS = 20.0
"""How long a shard that is ready is kept waiting for an answer."""

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
    its worker has sent its result, or is known to do something else.
    """

    number: int
    worker: str | None = None
    seen: float = 0.0
    begun: bool = False
    ready: bool = False
    over: bool = False
    finished: int = 0
    report: ShardReport | None = None


@dataclass(eq=False)
class GivenTrial:
    """A trial, and what became of it. Times are monotonic.

    `heartbeat`: seconds between two heartbeats of a slot. `turned`: set when all shards are ready, or the trial is
    over.
    """

    run: str
    experiment: str
    planned: PlannedTrial
    workload: Workload
    progressed: Callable[[int], None]
    since: float
    heartbeat: float
    result: asyncio.Future[Reported] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    slots: list[ShardSlot] = field(init=False)
    first_ready: float | None = None
    all_begun: float | None = None
    agreed: float | None = None  # the start, by the lab's clock
    turned: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.slots = [ShardSlot(number) for number in range(self.workload.shards)]
        self.result.add_done_callback(lambda _: self.turned.set())

    @property
    def divided(self) -> bool:
        return len(self.slots) > 1

    @property
    def is_given(self) -> bool:
        """Whether workers have it: all slots are given at once."""
        return self.slots[0].worker is not None

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
        return next((slot for slot in self.slots if slot.worker == worker), None)

    def progress(self, slot: ShardSlot, finished: int) -> None:
        """So many requests of a slot have finished."""
        slot.finished = finished
        self.progressed(sum(one.finished for one in self.slots))

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
        slot.ready, self.first_ready = True, self.first_ready or now
        if self.agreed is None and all(one.ready for one in self.slots):
            self.agreed = clock() + START_AFTER + START_AFTER_PER_SHARD * len(self.slots)
            self.turned.set()
        try:
            async with asyncio.timeout(_HELD_SECONDS):
                await self.turned.wait()
        except TimeoutError:
            return None
        if self.result.done():
            raise NoMeeting("the trial is over")
        if self.agreed is None:
            raise TimeoutError
        return self.agreed

    def take(self, slot: ShardSlot, result: AssignmentResult) -> None:
        """Take a result. The trial is over with the last report of a shard, and with the first shard that failed."""
        slot.over = True
        if result.shard is None:
            if result.trial is not None:
                self.result.set_result(result.trial)
            return
        slot.report = result.shard
        self.progress(slot, result.shard.counts.finished)
        reports = [one.report for one in self.slots if one.report is not None]
        if len(reports) == len(self.slots):
            self.result.set_result(reports)

    def fail(self, reason: str) -> None:
        """The trial has failed."""
        self.result.set_result(Trial.of(self.planned, status="failed", reason=reason, started=utc_now()))

    def named(self, slots: Iterable[ShardSlot], host: Callable[[str], str]) -> str:
        """Shards with their workers' hosts, as in "shard 2 of 4 on pod-1"; the host alone where there are no shards."""
        shard = f"shard {{}} of {len(self.slots)} on " if self.divided else ""
        return ", ".join(shard.format(slot.number + 1) + host(slot.worker or "") for slot in slots)


def reported_trial(planned: PlannedTrial, workload: Workload, reports: Sequence[ShardReport]) -> Trial:
    """The trial; a failed one where the reports give an impossible figure."""
    started = min(report.started for report in reports)
    begun = Begun(planned, workload, started, deadline_of(workload, planned.concurrency, planned.link))
    try:
        return merged_trial(begun, reports)
    except ValidationError as error:
        return begun.ended("failed", f"impossible figure: {first_problem(error)}")
