"""The workers that the service has heard of, and what each of them is for."""

from __future__ import annotations

import time
from collections.abc import Collection
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

    def may_do(self, strategy: str) -> bool:
        """Whether it does trials of the strategy, if only where no other does."""
        return self.named(strategy) or self.generic()


@dataclass
class Workers:
    """All of them, by the name that each has drawn."""

    _known: dict[str, Worker] = field(default_factory=dict)

    def register(self, request: AssignmentRequest) -> tuple[Worker, bool]:
        """Return the worker that polls, and whether it is new. Forget those not heard of for minutes."""
        now = time.monotonic()
        self._known = {name: one for name, one in self._known.items() if one.polls or now - one.seen < _FORGOTTEN}
        worker = self._known.get(request.worker)
        is_new = worker is None or not worker.present()
        if worker is None:
            worker = self._known[request.worker] = Worker(request, now)
        worker.seen = now
        return worker, is_new

    def heard_of(self, name: str) -> None:
        """A worker is alive, if it is known."""
        if worker := self._known.get(name):
            worker.seen = time.monotonic()

    def host(self, name: str) -> str:
        """Where a worker runs, or its name if that is not known."""
        worker = self._known.get(name)
        return worker.request.host if worker else name

    def named(self, strategy: str) -> int:
        """How many workers of the strategy's own are there."""
        return sum(worker.named(strategy) and worker.present() for worker in self._known.values())

    def able(self, strategy: str) -> int:
        """How many workers are there that may do trials of the strategy."""
        return sum(worker.may_do(strategy) and worker.present() for worker in self._known.values())

    def states(self, measuring: Collection[str]) -> list[WorkerState]:
        """Return the state of each worker. `measuring`: those that have the present trial."""
        return [
            WorkerState(
                worker=name,
                host=worker.request.host,
                strategies=worker.request.strategies,
                state="measuring" if name in measuring else "waiting" if worker.present() else "away",
            )
            for name, worker in self._known.items()
        ]
