"""Finding workers for a trial: who waits for an assignment, who may do it, and how long the lab waits for them.

Only workers that get an assignment are woken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from clientlab.service.given_trial import GivenTrial
from clientlab.service.workers import Worker, Workers
from clientlab.worker.assignment import Assignment
from clientlab.workload.shard_workload import READY_SECONDS

_MOST_HEARTBEATS = 200.0
"""Per second, of all shards of a trial. A heartbeat takes the lab about a millisecond."""

_MISSED = 3
"""Heartbeats of a shard that may be late, however many shards there are."""


@dataclass(frozen=True)
class Bounds:
    """Seconds to wait for a worker of a strategy, before a generic one takes it, and for a heartbeat of a trial.

    `start`: how much longer the first heartbeat may take, while the process of the job starts.
    `ready`: how long a shard that is ready waits for the others, once all have begun.
    """

    patience: float = 30.0
    generic: float = 5.0
    lost: float = 10.0
    start: float = 10.0
    ready: float = READY_SECONDS

    def heartbeat(self, shards: int) -> float:
        """Seconds between two heartbeats of a shard."""
        return max(self.lost / 5, shards / _MOST_HEARTBEATS)

    def silence(self, shards: int, *, begun: bool) -> float:
        """Seconds without a heartbeat after which a shard is lost. `begun`: it has sent one."""
        return max(self.lost, _MISSED * self.heartbeat(shards)) + (0.0 if begun else self.start)


@dataclass(eq=False)
class Poll:
    """A worker's request that waits. `turn`: what it will be answered; None where it need not wait any more."""

    worker: Worker
    turn: asyncio.Future[Assignment | None]

    @property
    def name(self) -> str:
        return self.worker.request.worker

    def where(self) -> tuple[str, str]:
        """Its worker's host and name."""
        return self.worker.request.host, self.name


@dataclass
class Recruiter:
    """The workers that wait for an assignment, and the strategies for which they are too few."""

    bounds: Bounds
    workers: Workers
    _waiting: dict[Poll, None] = field(default_factory=dict)  # the oldest first
    _uncovered: set[str] = field(default_factory=set)  # strategies for which too few came in time
    _refused: dict[str, str] = field(default_factory=dict)  # those for which nobody will come, and the cause
    _by_name: set[str] = field(default_factory=set)  # those that have waited for a worker of their own already

    def came(self, worker: Worker) -> None:
        """A worker is new, or is there again."""
        self._uncovered = {name for name in self._uncovered if not worker.may_do(name)}
        self._refused = {name: cause for name, cause in self._refused.items() if not worker.may_do(name)}

    def refuse(self, strategy: str, cause: str) -> None:
        """Until one comes, no worker of a strategy is waited for. An empty cause takes that back."""
        if cause:
            self._refused[strategy] = cause
        else:
            self._refused.pop(strategy, None)

    @property
    def refused(self) -> dict[str, str]:
        """Strategies for which nobody will come, and the cause."""
        return dict(self._refused)

    def run_is_over(self) -> None:
        """What kept workers away was of that run, and those that are for it alone wait for nothing any more."""
        self._refused.clear()
        self.dismiss({poll.name for poll in self._waiting if poll.worker.request.run is not None})

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

    def dismiss(self, names: Collection[str] | None = None) -> None:
        """These workers, or all of them, wait for nothing any more."""
        for poll in self._waiting:
            if (names is None or poll.name in names) and not poll.turn.done():
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
        """As many requests as the trial has free slots, by the names of hosts; none where there are fewer."""
        needed = trial.lacking
        if len(self._waiting) < needed or len(found := self.able(trial, now)) < needed:
            return []
        if not all(poll.worker.named(trial.planned.strategy) for poll in found[:needed]):
            self._by_name.add(trial.planned.strategy)
        return sorted(found[:needed], key=Poll.where)

    def lack(self, trial: GivenTrial, now: float) -> str | None:
        """Why the trial fails for lack of workers; None while they may come."""
        strategy, needed = trial.planned.strategy, len(trial.slots)
        if cause := self._refused.get(strategy):
            return f"no worker for strategy {strategy!r} will come: {cause}"
        in_vain = strategy in self._uncovered and self.workers.able(strategy) < needed
        if now - max(trial.since, trial.not_before) < (0.0 if in_vain else self.bounds.patience):
            return None
        self._uncovered.add(strategy)
        within = f"came within {self.bounds.patience:g} s"
        if not trial.divided:
            return f"no worker for strategy {strategy!r} {within}; start one with 'clientlab work'"
        came = len(self.able(trial, now))
        advice = f"start {max(1, needed - came)} more with 'clientlab work', or choose fewer shards"
        return f"{came} of {needed} workers for strategy {strategy!r} {within}; {advice}"
