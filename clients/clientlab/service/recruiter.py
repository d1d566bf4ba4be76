"""Finding workers for a trial: who waits for an assignment, who may do it, and how long the lab waits for them.

Only workers that get an assignment are woken.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from clientlab.service.given_trial import GivenTrial
from clientlab.service.workers import Worker, Workers
from clientlab.worker.assignment import Assignment

_START_SECONDS = 10.0
"""How much longer the first heartbeat may take, while the process of the job starts."""


@dataclass(frozen=True)
class Bounds:
    """Seconds to wait for a worker of a strategy, before a generic one takes it, and for a heartbeat of a trial."""

    patience: float
    generic: float
    lost: float

    @property
    def heartbeat(self) -> float:
        """Seconds between two heartbeats."""
        return self.lost / 5

    def silence(self, *, begun: bool) -> float:
        """Seconds without a heartbeat after which a worker is lost. `begun`: it has sent one."""
        return self.lost + (0.0 if begun else _START_SECONDS)


@dataclass(eq=False)
class Poll:
    """A worker's request that waits. `turn`: its answer; None if it need not wait any more."""

    worker: Worker
    turn: asyncio.Future[Assignment | None]

    @property
    def name(self) -> str:
        return self.worker.request.worker


@dataclass
class Recruiter:
    """The workers that wait for an assignment, and the strategies for which they are too few."""

    bounds: Bounds
    workers: Workers
    _waiting: dict[Poll, None] = field(default_factory=dict)  # the oldest first
    _uncovered: set[str] = field(default_factory=set)  # strategies for which too few came in time
    _by_name: set[str] = field(default_factory=set)  # those that have waited for a worker of their own already

    def came(self, worker: Worker) -> None:
        """A worker is new, or is there again."""
        self._uncovered = {name for name in self._uncovered if not worker.may_do(name)}

    def add(self, worker: Worker) -> Poll:
        """A request of a worker begins to wait."""
        poll = Poll(worker, asyncio.get_running_loop().create_future())
        worker.polls += 1
        self._waiting[poll] = None
        return poll

    def remove(self, poll: Poll) -> None:
        """A request is answered, or its worker is gone."""
        del self._waiting[poll]
        poll.worker.polls -= 1
        poll.worker.seen = time.monotonic()

    def dismiss(self) -> None:
        """All workers wait for nothing any more."""
        for poll in self._waiting:
            if not poll.turn.done():
                poll.turn.set_result(None)

    def able(self, trial: GivenTrial, now: float) -> list[Poll]:
        """A request of each worker that may take a slot of the trial; generic ones behind those of its strategy."""
        strategy = trial.planned.strategy
        polls = {poll.name: poll for poll in self._waiting if not poll.turn.done()}.values()
        named = [poll for poll in polls if poll.worker.named(strategy)]
        waited = strategy in self._by_name or now - trial.since >= self.bounds.generic
        if not waited or self.workers.named(strategy) >= len(trial.slots):
            return named
        return named + [poll for poll in polls if poll.worker.generic() and not poll.worker.named(strategy)]

    def chosen(self, trial: GivenTrial, now: float) -> list[Poll]:
        """Return one request per slot of the trial, ordered by host; none if there are too few."""
        needed = len(trial.slots)
        if len(self._waiting) < needed or len(found := self.able(trial, now)) < needed:
            return []
        if not all(poll.worker.named(trial.planned.strategy) for poll in found[:needed]):
            self._by_name.add(trial.planned.strategy)
        return sorted(found[:needed], key=lambda poll: (poll.worker.request.host, poll.name))

    def lack(self, trial: GivenTrial, now: float) -> str | None:
        """Why the trial fails for lack of workers; None while they may come."""
        strategy, needed = trial.planned.strategy, len(trial.slots)
        in_vain = strategy in self._uncovered and self.workers.able(strategy) < needed
        if not in_vain and now - trial.since < self.bounds.patience:
            return None
        self._uncovered.add(strategy)
        within = f"came within {self.bounds.patience:g} s"
        if not trial.divided:
            return f"no worker for strategy {strategy!r} {within}; start one with 'clientlab work'"
        came = len(self.able(trial, now))
        advice = f"start {max(1, needed - came)} more with 'clientlab work', or choose fewer shards"
        return f"{came} of {needed} workers for strategy {strategy!r} {within}; {advice}"
