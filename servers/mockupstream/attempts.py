"""The attempts of requests that have an identity (`?request=`), counted over all workers.

A client sends a failed request again, with the same identity, and any worker may get it. So the counts are in memory
that the master maps before it forks. Attempts of one request come one after another: no two processes write one count
at once.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

_SLOTS = 1 << 20
_CELL = 8
_NOT_IDEMPOTENT = frozenset({"POST", "PATCH"})


class Arrival(NamedTuple):
    """A request that has arrived: its attempt, from 1, and whether a repeat may do its work twice (POST, PATCH)."""

    attempt: int
    duplicate: bool


class AttemptTable:
    """Identity, a number of 64 bits, → attempts.

    The low half of an identity counts the requests of one process of a client. So those that follow each other have
    slots side by side, and a slot is taken again a million requests later.

    The memory, 16 MiB, is taken only as far as requests have identities.
    """

    def __init__(self) -> None:
        """Map fresh memory, shared with all processes forked from this one."""
        memory = memoryview(mmap.mmap(-1, 2 * _SLOTS * _CELL))
        self._identities = memory[: _SLOTS * _CELL].cast("Q")
        self._counts = memory[_SLOTS * _CELL :].cast("Q")

    def arrived(self, identity: int, method: str) -> Arrival:
        """Count an attempt of a request, whose head and body were read."""
        slot = ((identity >> 32) * 0x9E3779B1 + identity) % _SLOTS
        attempt = 1
        if self._identities[slot] == identity:
            attempt = self._counts[slot] + 1
        else:
            self._identities[slot] = identity
        self._counts[slot] = attempt
        return Arrival(attempt, attempt > 1 and method in _NOT_IDEMPOTENT)
