"""The search for the highest rate that holds: doubling until a rate does not hold, then bisection between both.

The next rate is a function of the outcomes so far, so a search that was interrupted goes on with its saved outcomes.
Rates are bisected on a logarithmic scale, since the result is as exact as a share of itself.

One disturbance of the machine can make a trial fail at a rate that holds, and would halve the result. So a rate counts
as not held after several trials failed at it in turn (`tries`). The opposite error is rare: a trial beyond the capacity
shows its growing backlog whatever else happens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_DIGITS = 4
"""Significant digits of a rate: far finer than the resolution, and short enough to read."""

_STEP = 2.0
"""Factor between two rates while one end of the bracket is missing."""

ProbeResult = tuple[float, bool]
"""A rate, and whether a trial held it."""


@dataclass(frozen=True)
class SearchBounds:
    """What a search tries. Rates per second; `resolution`: a share; `tries`: failures until a rate is not held."""

    start: float
    lowest: float
    highest: float
    resolution: float
    tries: int


@dataclass(frozen=True)
class Bracket:
    """The highest rate that was held, and the lowest one above it that was not. None: there is none yet."""

    held: float | None
    failed: float | None

    def is_narrow(self, resolution: float) -> bool:
        """Whether both ends are there, and as close as that share."""
        return self.held is not None and self.failed is not None and self.failed <= self.held * (1 + resolution)


def bracket_of(outcomes: Sequence[ProbeResult], tries: int) -> Bracket:
    """The bracket that the outcomes leave. A rate that was held once is held, however often it failed."""
    held = max((rate for rate, good in outcomes if good), default=None)
    failures = Counter(rate for rate, good in outcomes if not good)
    failed = [rate for rate, count in failures.items() if count >= tries and (held is None or rate > held)]
    return Bracket(held, min(failed, default=None))


def next_rate(outcomes: Sequence[ProbeResult], bounds: SearchBounds) -> float | None:
    """The rate to try next; None where the search is over."""
    if not outcomes:
        return bounds.start
    bracket = bracket_of(outcomes, bounds.tries)
    last, good = outcomes[-1]
    if not good and last not in (bracket.held, bracket.failed) and outcomes.count((last, False)) < bounds.tries:
        return last
    if bracket.failed is None:
        return _above(bracket.held, bounds)
    if bracket.held is None:
        return _below(bracket.failed, bounds)
    if bracket.is_narrow(bounds.resolution):
        return None
    return _rounded(math.sqrt(bracket.held * bracket.failed))


def _above(held: float | None, bounds: SearchBounds) -> float | None:
    """A higher rate than the highest held one; None where no higher one may be tried."""
    if held is None:
        return bounds.start
    return min(_rounded(held * _STEP), bounds.highest) if held < bounds.highest else None


def _below(failed: float, bounds: SearchBounds) -> float | None:
    """A lower rate than the lowest that was not held; None where no lower one may be tried."""
    return max(_rounded(failed / _STEP), bounds.lowest) if failed > bounds.lowest else None


def _rounded(rate: float) -> float:
    return float(f"{rate:.{_DIGITS}g}")
