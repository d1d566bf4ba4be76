"""The workers that the service has heard of, and what each of them is for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from clientlab.service.schemas import AssignmentRequest, WorkerState

ANY = "*"
"""The strategy of a generic worker, which takes what no other is there for."""

_PRESENT = 30.0
_FORGOTTEN = 300.0


@dataclass
class Worker:
    """One worker. `polls`: how many of its requests wait for an assignment now."""

    request: AssignmentRequest
    seen: float
    polls: int = 0

    def present(self) -> bool:
        """Whether it waits, or was heard of lately."""
        return self.polls > 0 or time.monotonic() - self.seen < _PRESENT

    def named(self, strategy: str) -> bool:
        """Whether it was started for this strategy, settings or not."""
        return not {strategy, strategy.partition("?")[0]}.isdisjoint(self.request.strategies)

    def generic(self) -> bool:
        """Whether it takes what nobody else does."""
        return ANY in self.request.strategies


@dataclass
class Workers:
    """All of them, by the name that each has drawn."""

    _known: dict[str, Worker] = field(default_factory=dict)

    def register(self, request: AssignmentRequest) -> Worker:
        """The worker that asks; those that were not heard of for minutes are forgotten."""
        now = time.monotonic()
        old = [name for name, worker in self._known.items() if not worker.polls and now - worker.seen > _FORGOTTEN]
        for name in old:
            del self._known[name]
        worker = self._known.setdefault(request.worker, Worker(request, now))
        worker.request, worker.seen = request, now
        return worker

    def heard_of(self, name: str) -> None:
        """A worker is alive, if it is known."""
        if worker := self._known.get(name):
            worker.seen = time.monotonic()

    def host(self, name: str) -> str:
        """Where a worker runs, or its name where that is not known."""
        worker = self._known.get(name)
        return worker.request.host if worker else name

    def any_for(self, strategy: str) -> bool:
        """Whether a worker of the strategy's own is there."""
        return any(worker.named(strategy) and worker.present() for worker in self._known.values())

    def states(self, busy: str | None) -> list[WorkerState]:
        """All of them; `busy` has the present trial."""
        return [
            WorkerState(
                worker=name,
                host=worker.request.host,
                strategies=worker.request.strategies,
                state="measuring" if name == busy else "waiting" if worker.present() else "away",
            )
            for name, worker in self._known.items()
        ]
