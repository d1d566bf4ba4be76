"""The search for the highest rate that holds: doubling until a rate does not hold, then bisection between both.

The next rate is a function of the outcomes so far, so a search that was interrupted goes on with its saved outcomes.
Rates are bisected on a logarithmic scale, since the result is as exact as a share of itself.

One disturbance of the machine can make a trial fail at a rate that holds, and would halve the result. So several trials
(`tries`) at a rate have to agree before it is decided: as many to hold it as to not hold it. Half of all trials hold
the rate at which both are equally likely, and the search errs to either side of it alike. A rule by which a single
success decided found a higher one: by 4.6 % where the capacity of a trial varies by 10 %.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clientlab.analysis.ratios import Ratio, typical_figure

_DIGITS = 4
"""Significant digits of a rate: far finer than the resolution, and short enough to read."""

_STEP = 2.0
"""Factor between two rates while one end of the bracket is missing."""

ProbeResult = tuple[float, bool]
"""A rate, and whether a trial held it."""


@dataclass(frozen=True)
class SearchBounds:
    """What a search tries. Rates per second; `resolution`: a share; `tries`: trials that agree decide a rate."""

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

    @property
    def middle(self) -> float | None:
        """The capacity: between both ends on the scale of the search. The lower one where there is no upper one."""
        if self.held is None or self.failed is None:
            return self.held
        return math.sqrt(self.held * self.failed)

    def is_narrow(self, resolution: float) -> bool:
        """Whether both ends are there, and as close as that share."""
        return self.held is not None and self.failed is not None and self.failed <= self.held * (1 + resolution)


def bracket_of(outcomes: Sequence[ProbeResult], tries: int) -> Bracket:
    """The bracket that the outcomes leave. A rate is decided by the first `tries` trials that agree.

    On the way up, a rate that was held by each of fewer trials is an end until it is decided.
    """
    verdicts = {rate: _verdict(outcomes, rate, tries) for rate, _ in outcomes}
    failed = min((rate for rate, good in verdicts.items() if good is False), default=None)
    below = {rate: good for rate, good in verdicts.items() if failed is None or rate < failed}
    unopposed = {rate for rate, good in below.items() if good is None and (rate, False) not in outcomes}
    return Bracket(max((rate for rate, good in below.items() if good or rate in unopposed), default=None), failed)


def _verdict(outcomes: Sequence[ProbeResult], rate: float, tries: int) -> bool | None:
    """Whether a rate is held, by the first outcome that so many of its trials have; None: it is not decided."""
    counts: Counter[bool] = Counter()
    for good in (good for tried, good in outcomes if tried == rate):
        counts[good] += 1
        if counts[good] >= tries:
            return good
    return None


def typical_capacity(brackets: Mapping[int, Bracket]) -> Ratio | None:
    """The median over the rounds (round → bracket) with its interval; None where no round held a rate.

    The interval counts the width of the brackets: it begins at that of the rates that were held, and ends at that of
    the rates that were not.
    """
    held = {number: one.held for number, one in brackets.items() if one.held is not None}
    above = {number: brackets[number].failed or rate for number, rate in held.items()}
    middles = {number: brackets[number].middle or rate for number, rate in held.items()}
    found, lower, upper = (typical_figure(rates) for rates in (middles, held, above))
    if found is None or lower is None or upper is None or found.low is None or found.high is None:
        return found
    return replace(found, low=min(found.low, lower.low or found.low), high=max(found.high, upper.high or found.high))


def jittered(start: float, key: str) -> float:
    """The rate at which a search begins: up to 1.41 times as much as `start` or as little, as the key draws it.

    All later rates follow from the first one, so rounds that began at one rate would all try the same ones: the
    distance of two of them would hide in every round alike.
    """
    return _rounded(start * _STEP ** (random.Random(key).random() - 0.5))  # noqa: S311 - a rate, not a secret


def next_rate(outcomes: Sequence[ProbeResult], bounds: SearchBounds) -> float | None:
    """The rate to try next; None where the search is over."""
    if not outcomes:
        return bounds.start
    bracket = bracket_of(outcomes, bounds.tries)
    if (again := _undecided(outcomes, bracket, bounds)) is not None:
        return again
    if bracket.failed is None:
        return _above(bracket.held, bounds)
    if bracket.held is None:
        return _below(bracket.failed, bounds)
    return None if bracket.is_narrow(bounds.resolution) else _rounded(math.sqrt(bracket.held * bracket.failed))


def _undecided(outcomes: Sequence[ProbeResult], bracket: Bracket, bounds: SearchBounds) -> float | None:
    """The rate to try again; None where none has to be.

    That is the last one, unless it was held on the way up. The end of the way up is decided when a rate above it was
    not held.
    """
    last, _ = outcomes[-1]
    if _verdict(outcomes, last, bounds.tries) is None:
        on_the_way_up = last == bracket.held and bracket.failed is None and last < bounds.highest
        return None if on_the_way_up else last
    held = bracket.held if bracket.failed is not None else None
    return held if held is not None and _verdict(outcomes, held, bounds.tries) is None else None


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
