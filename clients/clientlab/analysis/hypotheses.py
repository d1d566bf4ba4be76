"""Verdicts on claims: from figures by round to supported, contradicted or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab.analysis.decisions import rounds_for_direction, rounds_for_width
from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Ratio, paired_ratio
from clientlab.analysis.spread import FEWEST_ROUNDS as FEWEST_FOR_SPREAD
from clientlab.analysis.spread import spread_ratio
from clientlab.analysis.sweeps import Optimum, Series, optimum

ClaimVerdict = Literal["supported", "contradicted", "inconclusive"]

MATERIAL = 1.03
"""The least difference that matters. If an interval includes 1 and lies wholly within 1/1.03 and 1.03, the claim stays
inconclusive and is settled: more rounds could only show a difference that does not matter."""

MATERIAL_SPREAD = 2.0
"""The same for spreads: to know them to 3 % takes thousands of rounds."""


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim. `ratio`: b's figure over a's. `more_rounds`: how many rounds in all would settle it.

    `best`, `knee`, `knee_between`: points of a sweep, as indices.
    `material`: the least difference that matters, of a claim that one arm has less than another. `negligible`: the
    difference of an inconclusive claim is surely less than this, so more rounds are not needed. `open`: the ratios
    whose intervals leave the claim inconclusive.
    """

    verdict: ClaimVerdict
    ratio: Ratio | None
    more_rounds: int | None = None
    best: int | None = None
    knee: int | None = None
    knee_between: tuple[int, int] | None = None
    material: float | None = None
    negligible: float | None = None
    open: tuple[Ratio, ...] = ()


def less(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a has less than b: b over a is above 1. A difference below 3 % needs no further rounds."""
    return less_by(paired_ratio(b, a, confidence))


def less_by(ratio: Ratio | None) -> Finding:
    """The same from the ratio of b to a."""
    return _direction(ratio, FEWEST_ROUNDS, MATERIAL)


def spread(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a varies less over the rounds than b: b's spread over a's is above 1. Below 2, no rounds are added."""
    return _direction(spread_ratio(b, a, confidence), FEWEST_FOR_SPREAD, MATERIAL_SPREAD)


def within(ratio: Ratio | None, band: tuple[float, float]) -> Finding:
    """Whether the ratio of b to a lies in the band: its whole interval has to.

    Schuirmann (1987) requires the 90 % interval to lie inside. The 95 % interval is stricter.
    """
    if ratio is None or ratio.interval is None:
        return _unknown(ratio, FEWEST_ROUNDS)
    low, high = ratio.interval
    if band[0] <= low and high <= band[1]:
        return Finding("supported", ratio)
    if high < band[0] or low > band[1]:
        return Finding("contradicted", ratio)
    distance = min(abs(math.log(ratio.value / end)) for end in band)
    return Finding("inconclusive", ratio, rounds_for_width(ratio, distance), open=(ratio,))


def inside(series: Sequence[Series], confidence: float = CONFIDENCE) -> Finding:
    """Whether the least figure of a sweep is at neither end.

    If surely no point between the ends is 3 % less than the better end, no further rounds are needed.
    """
    if not all(series):
        return Finding("inconclusive", None)
    found = optimum(series, confidence)
    verdict: ClaimVerdict = "supported" if found.inside else "contradicted" if found.at_end else "inconclusive"
    more = negligible = None
    if verdict == "inconclusive":
        if found.ratio and found.ratio.high is not None and found.ratio.high < MATERIAL:
            negligible = MATERIAL
        else:
            more = _rounds_of(found)
    return Finding(
        verdict, found.ratio, more, found.best, found.knee, found.between, negligible=negligible, open=found.open
    )


def _direction(ratio: Ratio | None, fewest: int, material: float) -> Finding:
    if ratio is None or ratio.interval is None:
        return _unknown(ratio, fewest, material)
    low, high = ratio.interval
    if low > 1 or high < 1:
        return Finding("supported" if low > 1 else "contradicted", ratio, material=material)
    if 1 / material < low and high < material:
        return Finding("inconclusive", ratio, material=material, negligible=material, open=(ratio,))
    more = rounds_for_direction(ratio, material)
    return Finding("inconclusive", ratio, more, material=material, open=(ratio,))


def _unknown(ratio: Ratio | None, fewest: int, material: float | None = None) -> Finding:
    return Finding("inconclusive", ratio, fewest, material=material, open=(ratio,) if ratio else ())


def _rounds_of(found: Optimum) -> int | None:
    """About how many rounds decide where the optimum is, or show that the points between the ends do not matter."""
    if found.ratio is None:
        return FEWEST_ROUNDS
    sure = [rounds_for_width(ratio, abs(math.log(ratio.value))) for ratio in found.open]
    negligible = rounds_for_width(found.ratio, math.log(MATERIAL / found.ratio.value))
    known = [] if None in sure else [max(filter(None, sure), default=FEWEST_ROUNDS)]
    return min([*known, *filter(None, [negligible])], default=None)
