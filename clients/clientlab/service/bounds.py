"""How long the lab waits for workers."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.workload.shards import READY_SECONDS

_MOST_HEARTBEATS = 200.0
"""Per second, of all shards of a trial. A heartbeat takes the lab about a millisecond."""

_MISSED = 3
"""Heartbeats of a shard that may be late, however many shards there are."""


@dataclass(frozen=True)
class Bounds:
    """Seconds to wait for a worker of a strategy, before a generic one takes it, and for a heartbeat of a trial.

    `start`: how much longer the first heartbeat may take, while the process of the job starts. `ready`: how long a
    shard that is ready waits for the others.
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
