"""The change of one figure of one arm between two runs, with its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab.analysis.decisions import EQUAL
from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Estimate, unpaired_difference, unpaired_ratio
from clientlab.results.figure_definition import Figure
from clientlab.results.trial import Trial

ChangeVerdict = Literal["better", "worse", "equal", "undecided"]

EQUAL_POINTS = 0.01
"""Two shares are called equal if the whole interval of their difference lies within one percentage point."""

Trials = tuple[Sequence[Trial], Sequence[Trial]]
"""Those of one arm that count for one figure, in the baseline and in the other run."""


@dataclass(frozen=True)
class Change:
    """One figure of one arm in two runs.

    `before`, `after`: the figure over the rounds; None without a trial that has the figure. `values`: of each trial
    that has it, in both runs. `ratio`: after over before, typical of the rounds; None where a value is 0. With a ratio,
    `before` is the median of the rounds, and `after` follows from both. `difference`: after less before, from means, of
    figures that are shares. `verdict`: by the interval of either, at this `confidence`. `detectable`: the smallest
    ratio above 1 that a comparison at this noise shows in 80 of 100 cases; None if unknown. `bounds`: whether `before`
    and `after` are only lower bounds, because requests failed. `bounded`: a round of either run has a lower bound, so
    there is no ratio.
    """

    figure: Figure
    before: float | None
    after: float | None
    values: tuple[list[float], list[float]]
    ratio: Estimate | None
    difference: Estimate | None
    verdict: ChangeVerdict
    detectable: float | None = None
    bounds: tuple[bool, bool] = (False, False)
    bounded: bool = False
    confidence: float = CONFIDENCE

    @property
    def rounds(self) -> tuple[int, int]:
        """How many rounds of both runs have the figure."""
        return len(self.values[0]), len(self.values[1])

    @property
    def word(self) -> str:
        """The verdict as the figure names it: faster, slower, less, more, fewer."""
        direction = self.figure.direction
        return {"better": direction.better, "worse": direction.worse}.get(self.verdict, self.verdict)


def simultaneous(count: int) -> float:
    """Return the confidence of each of so many intervals with which all hold in 95 of 100 cases (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / max(1, count)


def has_interval(figure: Figure, trials: Trials) -> bool:
    """Return whether both runs have enough rounds with the figure."""
    return all(len(figure.values(of_run)) >= FEWEST_ROUNDS for of_run in trials)


def change_of(figure: Figure, trials: Trials, confidence: float) -> Change:
    """Return the change of a figure. `confidence`: of its interval."""
    before, after = figure.values(trials[0]), figure.values(trials[1])
    ratio = difference = detectable = None
    if figure.unit == "share":
        difference = unpaired_difference(after, before, confidence)
    elif any((*before, *after)):
        ratio, detectable = unpaired_ratio(after, before, figure.resolution, confidence)
    elif before and after:  # all are 0
        ratio = Estimate(1.0, *((1.0, 1.0) if has_interval(figure, trials) else (None, None)))
    if figure.has_bounds([*trials[0], *trials[1]]):
        return _change_of_bounds(figure, trials, ratio)
    # If a value of 0 permits no ratio, the difference decides whether there is a change.
    judged = difference or (unpaired_difference(after, before, confidence) if ratio is None else None)
    shown_before, shown_after = (figure.over_rounds(of_run) for of_run in trials)
    if ratio is not None and shown_before is not None:
        shown_after = shown_before * ratio.value
    return Change(
        figure,
        shown_before,
        shown_after,
        (before, after),
        ratio,
        difference,
        _verdict(figure, ratio, judged),
        detectable,
        confidence=confidence,
    )


def _change_of_bounds(figure: Figure, trials: Trials, least: Estimate | None) -> Change:
    """Return a change of which some values are lower bounds. `least`: the ratio of the values as they are.

    With bounds in one run only, the true ratio lies beyond `least`, on the side of the bounds. So its verdict stands if
    it speaks against the run with the bounds. Otherwise nothing is known.
    """
    before, after = trials
    bounded = figure.has_bounds(before), figure.has_bounds(after)
    against: ChangeVerdict = "better" if bounded[0] == figure.less_is_better else "worse"
    is_sure = not all(bounded) and _verdict(figure, least, None) == against
    return Change(
        figure,
        figure.over_rounds(before),
        figure.over_rounds(after),
        (figure.values(before), figure.values(after)),
        None,
        None,
        against if is_sure else "undecided",
        bounds=(figure.is_bound(before), figure.is_bound(after)),
        bounded=True,
    )


def _verdict(figure: Figure, ratio: Estimate | None, difference: Estimate | None) -> ChangeVerdict:
    estimate, neutral = (ratio, 1.0) if ratio is not None else (difference, 0.0)
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low <= neutral <= estimate.high:
        low, high = (1 / EQUAL, EQUAL) if ratio is not None else (-EQUAL_POINTS, EQUAL_POINTS)
        return "equal" if low <= estimate.low and estimate.high <= high else "undecided"
    return "better" if (estimate.high < neutral) == figure.less_is_better else "worse"
