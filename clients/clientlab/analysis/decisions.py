"""Whether an arm takes longer than another one, as long, or whether the rounds do not decide it yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from clientlab.analysis.ratios import FEWEST_ROUNDS, Ratio
from clientlab.analysis.typical import expected_width

EQUAL = 1.05
"""Two arms are called equal if the whole interval of their ratio lies within 1/1.05 and 1.05."""

EQUAL_SHARE = "5 %"
"""The same in a sentence."""

MOST_ROUNDS_WORTH = 100
"""If a comparison would need more rounds, to decide it is not worth it: a difference that 100 rounds hide is small."""

NOT_WORTH = f"more than {MOST_ROUNDS_WORTH} rounds at this spread: not worth it"
"""What reports say then."""

Word = Literal["slower", "faster", "equal", "undecided"]


@dataclass(frozen=True)
class Decision:
    """What an interval says of an arm. `rounds`: about how many in all would decide it.

    `rounds` is None of what is decided, and of what takes more than `MOST_ROUNDS_WORTH`.
    """

    word: Word
    rounds: int | None = None


def decision_of(ratio: Ratio | None) -> Decision:
    """What a ratio of times to another arm says: slower or faster if its interval excludes 1, equal if it is narrow."""
    if ratio is None or ratio.interval is None:
        return Decision("undecided", FEWEST_ROUNDS)
    low, high = ratio.interval
    if low > 1 or high < 1:
        return Decision("slower" if low > 1 else "faster")
    if low >= 1 / EQUAL and high <= EQUAL:
        return Decision("equal")
    return Decision("undecided", rounds_for_direction(ratio, EQUAL))


def rounds_for_direction(ratio: Ratio, material: float) -> int | None:
    """About how many rounds in all show on which side of 1 the ratio is, or that it differs by less than `material`."""
    away = abs(math.log(ratio.value))
    return rounds_for_width(ratio, max(away, math.log(material) - away))


def rounds_for_edge(ratio: Ratio, edge: float) -> int | None:
    """Return about how many rounds in all show on which side of an edge the ratio is; None if that is not worth it."""
    distance = abs(math.log(ratio.value / edge))
    return rounds_for_width(ratio, distance) if distance and ratio.interval is not None else None


def rounds_for_width(ratio: Ratio, distance: float) -> int | None:
    """About how many rounds in all make half the interval's width at most `distance` (of logarithms), at this spread.

    None if more than `MOST_ROUNDS_WORTH` are needed.
    """
    if ratio.interval is None:
        return FEWEST_ROUNDS
    low, high = ratio.interval
    if not low or math.isinf(high):
        return None
    half = math.log(high / low) / 2

    def width(rounds: int) -> float:
        """Relative to that of another number of rounds."""
        return 1 / math.sqrt(rounds) if ratio.pooled else expected_width(rounds, ratio.confidence)

    wanted = width(ratio.rounds) * min(distance / half, 1.0) if half else math.inf
    return next((more for more in range(ratio.rounds + 1, MOST_ROUNDS_WORTH + 1) if width(more) <= wanted), None)
