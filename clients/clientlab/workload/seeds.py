"""Seeds: one for each run, and from it one for each round, by which its delays, bodies and arrivals are drawn."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from clientlab.workload.workload import Workload

MOST_SEED = 2**63 - 1

_DRAWN_BELOW = 10**9
"""Of the seed of a new run: short enough to be typed. Two of 1,000 runs have one seed with a chance of 0.05 %."""


def new_seed() -> int:
    """Return a seed for a run for which nobody chose one."""
    return secrets.randbelow(_DRAWN_BELOW)


def in_round(workload: Workload, seed: int, number: int) -> Workload:
    """Return the workload with the seed of a round, which follows from the run's seed, its own and the round's number.

    All arms of a round have the same delays, bodies and arrivals, and the next round has others. Workloads of one run
    share them too, unless the experiment gives them different seeds. `number`: from 1.
    """
    digest = hashlib.sha256(f"{seed}:{workload.seed}:{number}".encode()).digest()
    return replace(workload, seed=int.from_bytes(digest[:8]) >> 1)
