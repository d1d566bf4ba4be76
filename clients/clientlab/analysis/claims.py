"""Verdicts on claims: from figures by round to supported, contradicted or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit  # as in ratios

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Ratio, paired_ratio
from clientlab.analysis.spread import FEWEST_ROUNDS as FEWEST_FOR_SPREAD
from clientlab.analysis.spread import spread_ratio
from clientlab.analysis.sweeps import Optimum, Series, optimum

Verdict = Literal["supported", "contradicted", "inconclusive"]

MATERIAL = 1.03
"""The least difference that counts. Where an interval lies wholly within 1/1.03 and 1.03 and holds 1, the claim stays
inconclusive, and is settled: more rounds could only show a difference that counts for nothing."""

MATERIAL_SPREAD = 2.0
"""The same of spreads: to know them to 3 % takes thousands of rounds."""

MOST_ROUNDS = 1000
"""A claim that would need more is not settled by rounds."""


@dataclass(frozen=True)
class Finding:
    """What the rounds say of a claim. `ratio` is b's over a's, `more_rounds` how many in all would settle it.

    `material`: the least difference that counts, of a claim that one arm has less than another. `negligible`: an
    inconclusive claim's difference is surely less than this, and no more rounds are asked for. `open`: the ratios
    whose intervals leave it inconclusive.
    """

    verdict: Verdict
    ratio: Ratio | None
    more_rounds: int | None = None
    best: int | None = None
    knee: int | None = None
    material: float | None = None
    negligible: float | None = None
    open: tuple[Ratio, ...] = ()


def less(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a has less than b: b over a is above 1. A difference under 3 % needs no further rounds."""
    return _direction(paired_ratio(b, a, confidence), FEWEST_ROUNDS, MATERIAL)


def spread(a: Series, b: Series, confidence: float = CONFIDENCE) -> Finding:
    """Whether a varies less over the rounds than b: b's spread over a's is above 1. One under twofold needs no more."""
    return _direction(spread_ratio(b, a, confidence), FEWEST_FOR_SPREAD, MATERIAL_SPREAD)


def within(a: Series, b: Series, band: tuple[float, float], confidence: float = CONFIDENCE) -> Finding:
    """Whether b over a lies in the band: the interval inside it supports, outside it contradicts.

    Schuirmann (1987) asks the 90 % interval to lie inside; that of 95 % here is the stricter.
    """
    ratio = paired_ratio(b, a, confidence)
    if ratio is None or ratio.interval is None:
        return _unknown(ratio, FEWEST_ROUNDS)
    low, high = ratio.interval
    if band[0] <= low and high <= band[1]:
        return Finding("supported", ratio)
    if high < band[0] or low > band[1]:
        return Finding("contradicted", ratio)
    distance = min(abs(math.log(ratio.value / end)) for end in band)
    return Finding("inconclusive", ratio, _rounds_to(ratio, distance), open=(ratio,))


def inside(series: Sequence[Series], confidence: float = CONFIDENCE) -> Finding:
    """Whether the least of a sweep is at neither end.

    Where nothing between the ends is 3 % less than the better of them, surely, no further rounds are needed.
    """
    if not all(series):
        return Finding("inconclusive", None)
    found = optimum(series, confidence)
    verdict: Verdict = "supported" if found.inside else "contradicted" if found.at_end else "inconclusive"
    more = negligible = None
    if verdict == "inconclusive":
        if found.ratio and found.ratio.high is not None and found.ratio.high < MATERIAL:
            negligible = MATERIAL
        else:
            more = _rounds_of(found)
    return Finding(verdict, found.ratio, more, found.best, found.knee, negligible=negligible, open=found.open)


def _direction(ratio: Ratio | None, fewest: int, material: float) -> Finding:
    if ratio is None or ratio.interval is None:
        return _unknown(ratio, fewest, material)
    low, high = ratio.interval
    if low > 1 or high < 1:
        return Finding("supported" if low > 1 else "contradicted", ratio, material=material)
    if 1 / material < low and high < material:
        return Finding("inconclusive", ratio, material=material, negligible=material, open=(ratio,))
    away = abs(math.log(ratio.value))
    more = _rounds_to(ratio, max(away, math.log(material) - away))
    return Finding("inconclusive", ratio, more, material=material, open=(ratio,))


def _unknown(ratio: Ratio | None, fewest: int, material: float | None = None) -> Finding:
    return Finding("inconclusive", ratio, fewest, material=material, open=(ratio,) if ratio else ())


def _rounds_of(found: Optimum) -> int | None:
    """About how many rounds make a sweep's optimum sure, or show that nothing between its ends counts."""
    if found.ratio is None:
        return FEWEST_ROUNDS
    sure = [_rounds_to(ratio, abs(math.log(ratio.value))) for ratio in found.open]
    negligible = _rounds_to(found.ratio, math.log(MATERIAL / found.ratio.value))
    known = [] if None in sure else [max(filter(None, sure), default=FEWEST_ROUNDS)]
    return min([*known, *filter(None, [negligible])], default=None)


def _rounds_to(ratio: Ratio, distance: float) -> int | None:
    """About how many rounds would make the interval reach no further than `distance` (of logarithms), at this spread.

    None where not even `MOST_ROUNDS` would.
    """
    if ratio.interval is None:
        return FEWEST_ROUNDS
    more = np.arange(ratio.rounds + 1, MOST_ROUNDS + 1)
    quantile = (1 + ratio.confidence) / 2
    # Student's interval reaches t(n-1) · s / sqrt(n): s, of the rounds there are, is taken to stay as it is.
    half = math.log(ratio.interval[1] / ratio.interval[0]) / 2
    s = half * math.sqrt(ratio.rounds) / stdtrit(ratio.rounds - 1, quantile)
    enough = stdtrit(more - 1, quantile) * s / np.sqrt(more) <= distance
    return int(more[enough.argmax()]) if enough.any() else None
