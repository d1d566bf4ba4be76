"""Decisions from intervals: slower or equal, verdicts on claims, more rounds.

A sequential run (`--until-precision`) stops when its intervals are narrow, never when a
difference becomes significant: sooner or later, an interval of equal arms excludes 1.
95 % intervals at such a stop contain the truth in 91 to 93 of 100 simulations, so
sequential runs have at least five rounds and intervals of nominally 97 %, which contain
it in 94 to 98. A claim of a direction gets rounds until its interval must exclude
either 1 or every difference of 3 %. At the first 97 % interval that does either, 13 to
19 of 100 equal arms would be called different.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab.statistics.ratios import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    Ratio,
    Series,
    divide_error,
    expected_width,
    paired_ratio,
    student,
)
from clientlab.statistics.sweeps import TurningPoint, find_turning_point

EQUAL = 1.05
"""Two arms are equal if the interval of their ratio lies between 1/1.05 and 1.05."""

EQUAL_SHARE = "5 %"  # the same in a sentence

MOST_ROUNDS_WORTH = 100
"""A difference that takes more rounds to show is too small to be worth them."""

NOT_WORTH = (
    f"more than {MOST_ROUNDS_WORTH} rounds at this spread; so small a difference is not"
    " worth them"
)

MATERIAL = 1.03
"""The least difference of figures that matters.

A claim whose interval includes 1 and excludes this difference is settled.
"""

MATERIAL_SPREAD = 2.0
"""The same for spreads: to know these to 3 % would take thousands of rounds."""

FEWEST_SEQUENTIAL_ROUNDS = 5

SEQUENTIAL_CONFIDENCE = 0.97
"""Level of the intervals of a sequential run.

They contain the truth as often as the 95 % intervals of other runs.
"""

DECIDED_CONFIDENCE = 0.999
"""An interval of this level that decides a claim ends its rounds, however wide.

Such an interim look hardly changes the level of the last one (Haybittle 1971, Peto et
al. 1976).
"""

_ROUNDING = 1e-12
_POWER_QUANTILE = 0.84
"""The normal quantile of 80 %."""

_POOLED_QUANTILE = 2.2
"""Student's quantile for intervals with many degrees of freedom."""

_MOST_QUANTILE = 2.5
"""The same with few degrees."""


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim, from the `ratio` of b's figure to a's."""

    verdict: Literal["supported", "contradicted", "inconclusive"]
    ratio: Ratio | None

    more_rounds: int | None = None
    """How many rounds in total would settle it."""

    turning: TurningPoint | None = None
    """The turning point of a sweep."""

    material: float | None = None
    """The least difference that matters, if one arm should have less than another."""

    negligible: float | None = None
    """The difference of an inconclusive claim is surely less than this.

    So it needs no more rounds.
    """

    open: tuple[Ratio, ...] = ()
    """The ratios whose intervals leave a sweep inconclusive."""

    @property
    def word(self) -> Literal["slower", "faster", "equal", "undecided"]:
        """The verdict on a ratio of times (see `decide`)."""
        if self.verdict == "supported":
            return "slower"
        if self.verdict == "contradicted":
            return "faster"
        if self.negligible:
            return "equal"
        return "undecided"


def decide(ratio: Ratio | None) -> Finding:
    """Decide about a ratio of times: slower, faster, equal or undecided."""
    return judge_direction(ratio, EQUAL)


def judge_direction(
    ratio: Ratio | None,
    material: float = MATERIAL,
    fewest: int = FEWEST_ROUNDS,
) -> Finding:
    """Judge whether a has less than b: the ratio of b to a is above 1.

    `fewest`: rounds that an interval needs.
    """
    if ratio is None or ratio.interval is None:
        return Finding("inconclusive", ratio, fewest, material=material)
    low, high = ratio.interval
    if low > 1:
        return Finding("supported", ratio, material=material)
    if high < 1:
        return Finding("contradicted", ratio, material=material)
    if 1 / material < low and high < material:
        return Finding("inconclusive", ratio, material=material, negligible=material)
    # More rounds show on which side of 1 the ratio is, or that it differs by less than
    # `material`.
    distance = abs(math.log(ratio.value))
    distance = max(distance, math.log(material) - distance)
    more_rounds = _rounds_for_distance(ratio, distance)
    return Finding("inconclusive", ratio, more_rounds, material=material)


def judge_band(ratio: Ratio | None, band: tuple[float, float]) -> Finding:
    """Judge whether the whole interval of b/a lies in the band.

    Schuirmann (1987) requires it of the 90 % interval.
    """
    if ratio is None or ratio.interval is None:
        return Finding("inconclusive", ratio, FEWEST_ROUNDS)
    low, high = ratio.interval
    lowest, highest = band
    if lowest <= low and high <= highest:
        return Finding("supported", ratio)
    if high < lowest or low > highest:
        return Finding("contradicted", ratio)
    distance = min(abs(math.log(ratio.value / end)) for end in band)
    more_rounds = _rounds_for_distance(ratio, distance)
    return Finding("inconclusive", ratio, more_rounds)


def judge_optimum(series: Sequence[Series], confidence: float = CONFIDENCE) -> Finding:
    """Judge whether the least figure of a sweep is at neither end.

    The sweep has three or more points. The ratio is that of the better end to the least
    point between the ends.
    """
    if not all(series):
        return Finding("inconclusive", None)
    turning = find_turning_point(series, confidence)
    figures = turning.typical
    inner = range(1, len(series) - 1)
    least = min(inner, key=figures.__getitem__)
    better = 0
    if figures[-1] < figures[0]:
        better = -1
    # The data choose which inner point and which end are tested, so the error is
    # divided among the candidates. "Less than both ends" needs no further division:
    # both must hold.
    level = divide_error(confidence, len(inner))
    least_point = series[least]
    ends = series[0], series[-1]
    over_least = [paired_ratio(end, least_point, level) for end in ends]
    level = divide_error(confidence, 2)
    better_end = series[better]
    over_end = [paired_ratio(point, better_end, level) for point in series[1:-1]]
    ratio = over_least[better]
    if all(map(_is_above_1, over_least)):
        return Finding("supported", ratio, turning=turning)
    if all(map(_is_above_1, over_end)):
        return Finding("contradicted", ratio, turning=turning)
    tested = over_end
    if turning.best in inner:
        tested = over_least
    known = filter(None, tested)
    unsure = tuple(ratio for ratio in known if not _is_above_1(ratio))
    negligible = None
    more_rounds: int | None = FEWEST_ROUNDS
    if ratio is not None and ratio.high is not None and ratio.high < MATERIAL:
        negligible = MATERIAL
        more_rounds = None
    elif ratio is not None:
        more_rounds = _rounds_for_optimum(ratio, unsure)
    return Finding(
        "inconclusive",
        ratio,
        more_rounds,
        turning,
        negligible=negligible,
        open=unsure,
    )


def _rounds_for_optimum(ratio: Ratio, unsure: Sequence[Ratio]) -> int | None:
    """Return how many rounds decide all unsure ratios of a sweep.

    Or how many show that no point between the ends matters, if these are fewer.
    """
    distance = math.log(MATERIAL / ratio.value)
    settling = [_rounds_for_distance(ratio, distance)]
    distances = [abs(math.log(ratio.value)) for ratio in unsure]
    deciding = list(map(_rounds_for_distance, unsure, distances))
    if None not in deciding:
        settling.append(max(filter(None, deciding), default=FEWEST_ROUNDS))
    return min(filter(None, settling), default=None)


def _is_above_1(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.low is not None and ratio.low > 1


def rounds_for_edge(ratio: Ratio, edge: float) -> int | None:
    """Return about how many rounds show on which side of an edge the ratio is.

    Return None if that is not worth it.
    """
    distance = abs(math.log(ratio.value / edge))
    if not distance or ratio.interval is None:
        return None
    return _rounds_for_distance(ratio, distance)


def _rounds_for_distance(ratio: Ratio, distance: float) -> int | None:
    """Return how many rounds in total decide in most runs.

    Without outliers, twice as many nearly always do. `distance`: of the ratio from the
    edge, in logarithms. An interval whose half is as wide decides in half of all runs,
    so it has to be narrower, by what its middle varies. Return None if that takes more
    than `MOST_ROUNDS_WORTH`.
    """
    if ratio.interval is None:
        return FEWEST_ROUNDS
    low, high = ratio.interval
    if not low or math.isinf(high):
        return None
    quantile = _POOLED_QUANTILE
    if not ratio.pooled:
        quantile = min(_MOST_QUANTILE, student(ratio.rounds - 1, ratio.confidence))
    distance *= quantile / (quantile + _POWER_QUANTILE)
    half = math.log(high / low) / 2
    wanted = math.inf
    if half:
        share = min(distance / half, 1.0)
        wanted = _expected_width(ratio, ratio.rounds) * share
    for rounds in range(ratio.rounds + 1, MOST_ROUNDS_WORTH + 1):
        if _expected_width(ratio, rounds) <= wanted:
            return rounds
    return None


def _expected_width(ratio: Ratio, rounds: int) -> float:
    """Return about how wide the interval of the ratio is after so many rounds."""
    if ratio.pooled:
        return 1 / math.sqrt(rounds)
    return expected_width(rounds, ratio.confidence)


def confidence_of(precision: float | None) -> float:
    """Return the nominal level of a run's intervals.

    `precision`: None for a run with a planned number of rounds.
    """
    if precision is None:
        return CONFIDENCE
    return SEQUENTIAL_CONFIDENCE


def is_narrow(ratio: Ratio, precision: float) -> bool:
    """Return whether both ends of the interval are within that share of the ratio."""
    if ratio.interval is None:
        return False
    low, high = ratio.interval
    factor = (1 + precision) * (1 + _ROUNDING)
    return ratio.value <= low * factor and high <= ratio.value * factor


def is_settled(finding: Finding, surely: Finding, precision: float) -> bool:
    """Return whether a claim needs no more rounds.

    `surely`: the finding at `DECIDED_CONFIDENCE`. More rounds do not help a claim
    without a ratio, because one of its arms fails.
    """
    if finding.ratio is None or surely.verdict != "inconclusive" or surely.negligible:
        return True
    # Such a narrow interval either excludes 1 or lies within 1/material and material.
    if finding.material is not None:
        precision = math.sqrt(finding.material) - 1
    return is_precise(finding, precision)


def is_precise(finding: Finding, precision: float) -> bool:
    """Return whether all intervals that the verdict rests on are narrow."""
    if finding.open:
        return all(is_narrow(ratio, precision) for ratio in finding.open)
    return finding.ratio is not None and is_narrow(finding.ratio, precision)
