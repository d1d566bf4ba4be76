"""Shards: a trial divided over several workers, each with its part of the requests, of the concurrency and of the rate.

Shard i of n does the requests i, i + n, i + 2n, … of the workload. So request k has the same path, delay and planned
start as in a trial that is not divided, and no two shards send the same one. A remainder goes to the first shards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from clientlab.errors import FieldError
from clientlab.workload.workload import Workload

READY_SECONDS = 30.0
"""How long a shard that is ready waits for the others, before the trial has failed."""


@dataclass(frozen=True, kw_only=True)
class ShardWorkload(Workload):
    """The part of a workload that shard `index` (from 0) of `of` does: its own requests and concurrency.

    An open load keeps the number of requests and the rate of its whole schedule, of which the shard sends every
    `of`-th request from `index` on.
    """

    index: int
    of: int

    def number_of(self, k: int) -> int:
        """Return the number of the shard's request k in the whole trial. Numbers of a warm-up stay below 0."""
        return self.index + k * self.of


def share_of(workload: Workload, index: int, in_flight: int) -> ShardWorkload:
    """Return the part of a shard, of a workload with so many requests in flight in all shards together."""
    own = {field.name: getattr(workload, field.name) for field in fields(Workload)}
    if workload.requests is not None and workload.rate is None and workload.stages is None:
        own["requests"] = part_of(workload.requests, index, workload.shards)
    own["concurrency"] = part_of(in_flight, index, workload.shards)
    return ShardWorkload(**own, index=index, of=workload.shards)


def part_of(whole: int, index: int, shards: int) -> int:
    """Return the part of a whole number that a shard gets. The parts add up to the whole, and differ by 1 at most."""
    return len(range(index, whole, shards))


def check_shards(shards: int, requests: int | None, in_flight: int, strategy: str) -> None:
    """Raise FieldError if a shard would have no request, or none in flight."""
    if requests is not None and shards > requests:
        raise FieldError(["shards"], f"a trial has {requests:,} requests; write no more shards", value=shards)
    if shards > in_flight:
        message = f"strategy {strategy!r} has at most {in_flight:,} requests in flight here; write no more shards"
        raise FieldError(["shards"], message, value=shards)
