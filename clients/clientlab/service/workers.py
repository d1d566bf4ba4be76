"""The workers that the service has heard of, and what each of them is for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from clientlab.service.schemas import MOST_NAMES_SHOWN, AssignmentRequest, ShardState, WorkerState

ANY = "*"
"""The strategy of a generic worker, which takes what no other is there for."""

MOST_WORKERS = 2048
"""Workers that the service knows at a time, twice as many as it is made for. A request of 8 KiB takes about 35 KiB."""

_PRESENT = 30.0
_FORGOTTEN = 300.0


class TooManyWorkers(Exception):
    """No more workers can wait. The text is for the worker's log."""


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
    _looked: float = field(default_factory=time.monotonic)

    def register(self, request: AssignmentRequest) -> tuple[Worker, bool]:
        """The worker that polls, and whether it was not there before. Those not heard of for minutes are forgotten.

        Where the table is full, the worker that was heard of least lately makes room. Raises TooManyWorkers where all
        of them wait.
        """
        now = time.monotonic()
        if now - self._looked > _PRESENT:
            self._looked = now
            for name in [name for name, one in self._known.items() if not one.polls and now - one.seen > _FORGOTTEN]:
                del self._known[name]
        worker = self._known.get(request.worker)
        is_new = worker is None or not worker.present()
        if worker is None:
            if len(self._known) >= MOST_WORKERS:
                self._make_room()
            worker = self._known[request.worker] = Worker(request, now)
        worker.request, worker.seen = request, now
        return worker, is_new

    def _make_room(self) -> None:
        gone = min((name for name in self._known if not self._known[name].polls), key=self._seen, default=None)
        if gone is None:
            raise TooManyWorkers(f"{len(self._known):,} workers wait already; start fewer of them")
        del self._known[gone]

    def _seen(self, name: str) -> float:
        return self._known[name].seen

    def forget(self, host: str) -> set[str]:
        """Forget the workers on a host; their names."""
        names = {name for name, worker in self._known.items() if worker.request.host == host}
        for name in names:
            del self._known[name]
        return names

    def heard_of(self, name: str) -> None:
        """A worker is alive, if it is known."""
        if worker := self._known.get(name):
            worker.seen = time.monotonic()

    def host(self, name: str) -> str:
        """Where a worker runs, or its name where that is not known."""
        worker = self._known.get(name)
        return worker.request.host if worker else name

    def named(self, strategy: str) -> int:
        """How many workers of the strategy's own are there."""
        return sum(worker.named(strategy) and worker.present() for worker in self._known.values())

    def able(self, strategy: str) -> int:
        """How many workers are there that may do trials of the strategy."""
        return sum(worker.may_do(strategy) and worker.present() for worker in self._known.values())

    def states(self, held: Mapping[str, ShardState | None]) -> list[WorkerState]:
        """All of them. `held`: the workers that have the present trial, and which shard of it."""
        return [
            WorkerState(
                worker=name,
                host=worker.request.host,
                strategies=worker.request.strategies[:MOST_NAMES_SHOWN],
                more_strategies=max(0, len(worker.request.strategies) - MOST_NAMES_SHOWN),
                state="measuring" if name in held else "waiting" if worker.present() else "away",
                shard=held.get(name),
            )
            for name, worker in self._known.items()
        ]
