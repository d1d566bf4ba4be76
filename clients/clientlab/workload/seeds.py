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
    """The seed of a run for which nobody chose one."""
    return secrets.randbelow(_DRAWN_BELOW)


def in_round(workload: Workload, seed: int, number: int) -> Workload:
    """The workload as the trials of a round have it: its seed follows from the run's, its own and the round.

    So all arms of a round have the same delays, bodies and arrivals, and the next round has others. Workloads of one
    run share them too, unless the experiment gives them unlike seeds. `number`: of the round, from 1.
    """
    digest = hashlib.sha256(f"{seed}:{workload.seed}:{number}".encode()).digest()
    return replace(workload, seed=int.from_bytes(digest[:8]) >> 1)
