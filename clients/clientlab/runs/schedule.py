"""The order of trials: rounds, each with every arm once, each in a new order that the seed decides."""

from __future__ import annotations

import random
from collections.abc import Sequence

from clientlab.runs.document import Arm


def schedule(arms: Sequence[Arm], rounds: int, seed: int) -> list[tuple[int, Arm]]:
    """(round, arm) in the order of execution; rounds count from 1."""
    order: list[tuple[int, Arm]] = []
    for number in range(1, rounds + 1):
        shuffled = list(arms)
        random.Random(f"{seed}:{number}").shuffle(shuffled)  # noqa: S311 - an order, not a secret
        order += [(number, arm) for arm in shuffled]
    return order
