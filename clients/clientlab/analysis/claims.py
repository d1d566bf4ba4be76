"""Verdicts on claims: from figures by round to supported, contradicted or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Ratio, paired_ratio
from clientlab.analysis.spread import FEWEST_ROUNDS as FEWEST_FOR_SPREAD
from clientlab.analysis.spread import spread_ratio
from clientlab.analysis.sweeps import Series, optimum

Verdict = Literal["supported", "contradicted", "inconclusive"]

MATERIAL = 1.03
"""The least difference that counts. An interval wholly below it, and not wholly above 1, shows that there is none
of that size: a claim of a difference is then contradicted, and need not wait for rounds without end."""


@dataclass(frozen=True)
class Finding:
    """What the rounds say of a claim. `ratio` is b's over a's, `more_rounds` how many in all would settle it."""

    verdict: Verdict
    ratio: Ratio | None
    more_rounds: int | None = None
    best: int | None = None
    knee: int | None = None


def less(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a has less than b: b over a is above 1. "None of 3 %" contradicts as well."""
    return _direction(paired_ratio(b, a, confidence), FEWEST_ROUNDS)


def spread(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a varies less over the rounds than b: b's spread over a's is above 1."""
    return _direction(spread_ratio(b, a, confidence), FEWEST_FOR_SPREAD)


def within(a: Series, b: Series, band: tuple[float, float], confidence: float = CONFIDENCE) -> Finding:
    """Whether b over a lies in the band: the interval inside it supports, outside it contradicts.

    Schuirmann (1987) asks the 90 % interval to lie inside; that of 95 % here is the stricter.
    """
    ratio = paired_ratio(b, a, confidence)
    if ratio is None or ratio.interval is None:
        return Finding("inconclusive", ratio, FEWEST_ROUNDS)
    low, high = ratio.interval
    if band[0] <= low and high <= band[1]:
        return Finding("supported", ratio)
    if high < band[0] or low > band[1]:
        return Finding("contradicted", ratio)
    return Finding("inconclusive", ratio, _rounds_to(ratio, min(abs(math.log(ratio.value / end)) for end in band)))


def inside(series: Sequence[Series], confidence: float = CONFIDENCE) -> Finding:
    """Whether the least of a sweep is at neither end."""
    if not all(series):
        return Finding("inconclusive", None)
    found = optimum(series, confidence)
    verdict: Verdict = "supported" if found.inside else "contradicted" if found.at_end else "inconclusive"
    more = None
    if verdict == "inconclusive":
        more = _rounds_to(found.ratio, abs(math.log(found.ratio.value))) if found.ratio else FEWEST_ROUNDS
    return Finding(verdict, found.ratio, more, found.best, found.knee)


def _direction(ratio: Ratio | None, fewest: int) -> Finding:
    if ratio is None or ratio.interval is None:
        return Finding("inconclusive", ratio, fewest)
    low, high = ratio.interval
    if low > 1:
        return Finding("supported", ratio)
    if high < MATERIAL:
        return Finding("contradicted", ratio)
    return Finding(
        "inconclusive", ratio, _rounds_to(ratio, max(math.log(ratio.value), math.log(MATERIAL / ratio.value)))
    )


def _rounds_to(ratio: Ratio, distance: float) -> int | None:
    """About how many rounds would make the interval reach less than `distance` (of logarithms), at this spread.

    An interval is as wide as 1/sqrt(rounds). None where no number of them would.
    """
    if ratio.interval is None:
        return FEWEST_ROUNDS
    half = math.log(ratio.interval[1] / ratio.interval[0]) / 2
    return None if distance <= 0 else max(ratio.rounds + 1, math.ceil(ratio.rounds * (half / distance) ** 2))
