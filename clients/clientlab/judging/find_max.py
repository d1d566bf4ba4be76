"""`--find-max`: the highest rate that an arm holds, searched anew in each round.

A rate is doubled until it does not hold, then bisected on a logarithmic scale until the
rates that held and did not hold are 2.5 % apart. The highest rate of the round is
between them. The next rate follows from the trials in the run file, so an interrupted
search goes on.

The first two trials of a rate that agree decide it, because one disturbance would
otherwise halve the result. So half of all trials hold the rate that is found. If a
single success decided, the rate would be 4.6 % higher with trials that vary by 10 %.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clientlab import units
from clientlab.results.document import Run
from clientlab.results.plan import FIRST_RATE, Conditions
from clientlab.statistics.histogram import FEWEST_REQUESTS
from clientlab.statistics.ratios import Ratio, typical_figure
from clientlab.trial.bottleneck import describe_growth
from clientlab.trial.result import HighestRate, PlannedTrial, Trial
from clientlab.workload.workload import MOST_REQUESTS

USUAL_TRIALS = 15
"""About how many trials a search takes: one on the way up, and two at each end and for
each of five bisections.
"""
_RESOLUTION = 1.025
_STEP = 2.0

Outcome = tuple[float, bool]  # the rate of a trial, and whether it held the rate


def why_not_held(trial: Trial, conditions: Conditions) -> str | None:
    """Return why a trial did not hold its rate, in a phrase; None if it held it."""
    load = trial.figures.open_load
    if trial.status != "done" or load is None:
        return f"the trial {trial.status}: {trial.reason or 'unknown'}"
    if load.achieved_per_second < 0.95 * load.planned_per_second:
        return (
            f"{units.rate(load.achieved_per_second)} of"
            f" {units.rate(load.planned_per_second)} requests/s were sent"
        )
    if growth := describe_growth(trial.figures):
        return growth
    for figure, limit in conditions.limits:
        value, at_least = figure.of(trial), figure.is_bound([trial])
        if value is None or value >= limit or at_least:
            return f"{figure.key} {figure.text(value, at_least=at_least)}"
    return None


def bracket_of(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Return the highest rate that was held, and the lowest one above it that was not;
    None for a missing end.

    A rate that was held once is an end until it is decided.
    """
    decisions = {rate: _is_held(outcomes, rate) for rate, _ in outcomes}
    failed = min(
        (rate for rate, is_held in decisions.items() if is_held is False),
        default=math.inf,
    )
    usable = (
        rate
        for rate, is_held in decisions.items()
        if rate < failed
        and (is_held or (is_held is None and (rate, False) not in outcomes))
    )
    return max(usable, default=None), None if failed == math.inf else failed


def next_rate(
    outcomes: Sequence[Outcome], start: float, lowest: float, highest: float
) -> float | None:
    """Return the rate to try next; None if the search is over."""
    if not outcomes:
        return min(max(start, lowest), highest)
    last, (held, failed) = outcomes[-1][0], bracket_of(outcomes)
    is_on_the_way_up = last == held and failed is None and last < highest
    if _is_held(outcomes, last) is None and not is_on_the_way_up:
        return last
    if failed is None:
        return (
            None
            if held is None or held >= highest
            else min(_rounded(held * _STEP), highest)
        )
    if held is None:
        return max(_rounded(failed / _STEP), lowest) if failed > lowest else None
    if _is_held(outcomes, held) is None:
        return held
    return None if failed <= held * _RESOLUTION else _rounded(math.sqrt(held * failed))


def _is_held(outcomes: Sequence[Outcome], rate: float) -> bool | None:
    """Return whether a rate is held, by the first two of its trials that agree; None if
    it is undecided.
    """
    tries = [held for tried, held in outcomes if tried == rate][:3]
    return next((held for held in (True, False) if tries.count(held) > 1), None)


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


@dataclass(frozen=True)
class Search:
    """The search of an arm in a round: its trials so far, their outcomes without lost
    ones, and the rate to try next.

    `next_rate` is None if the search is over, or if its last trial was lost.
    """

    probes: Sequence[Trial]
    conditions: Conditions
    outcomes: Sequence[Outcome]
    next_rate: float | None

    def result(self, planned: PlannedTrial) -> Trial:
        """Return the trial that stands for the search in tables and comparisons: one
        that held the highest rate.

        It is lost if the last trial was, and failed if no rate or every rate was held.
        """
        last, (held, failed) = self.probes[-1], bracket_of(self.outcomes)
        lost = Trial(
            planned=planned, status="lost", reason=last.reason, started=last.started
        )
        if last.status == "lost":
            return lost
        if held is None or failed is None:
            tried = last.planned.search_rate
            why = (
                f"it held no rate: at {tried:.4g} requests/s,"
                f" {why_not_held(last, self.conditions)}"
            )
            if held is not None:
                why = f"it held even {units.rate(held)} requests/s"
            return lost.model_copy(update={"status": "failed", "reason": why})
        at_rate = [one for one in self.probes if one.planned.search_rate == held]
        shown = [one for one in at_rate if not why_not_held(one, self.conditions)][-1]
        figures = shown.figures.model_copy(update={"open_load": None})
        rate = HighestRate(held=held, not_held=failed)
        return shown.model_copy(
            update={"planned": planned, "figures": figures, "highest_rate": rate}
        )


def search_of(run: Run, arm: str, number: int, conditions: Conditions) -> Search:
    """Return the search of an arm in a round, as far as the run has it.

    All rates follow from the first one, which is drawn: otherwise all rounds would try
    the same rates and share their error.
    """
    plan = run.experiment
    probes = [
        probe
        for probe in run.probes
        if (probe.planned.arm, probe.planned.round) == (arm, number)
    ]
    outcomes = [
        (probe.planned.search_rate, why_not_held(probe, conditions) is None)
        for probe in probes
        if probe.status != "lost" and probe.planned.search_rate is not None
    ]
    results = [
        trial.planned.order
        for trial in run.trials_of(arm)
        if trial.planned.round == number
    ]
    since = max(
        [run.resumed[-1].trials if run.resumed else 0, *results]
    )  # what was lost before is measured again
    if probes and probes[-1].status == "lost" and probes[-1].planned.order >= since:
        return Search(probes, conditions, outcomes, None)
    seconds = (
        next(
            plan.workloads[one.workload] for one in plan.arms if one.name == arm
        ).duration
        or 1.0
    )
    draw = random.Random(f"{plan.seed}:{number}:{arm}").random()  # noqa: S311 - a rate, not a secret
    start = _rounded(FIRST_RATE * _STEP ** (draw - 0.5))
    # A trial has every figure of the conditions. With fewer than 20 requests, a single
    # late one would decide.
    fewest = max(
        [20, *(FEWEST_REQUESTS.get(figure.key, 0) for figure, _ in conditions.limits)]
    )
    rate = next_rate(outcomes, start, fewest / seconds, MOST_REQUESTS / seconds)
    return Search(probes, conditions, outcomes, rate)


def typical_rate(trials: Sequence[Trial]) -> Ratio | None:
    """Return the median of the highest rates over the rounds; None if there is none.

    Its interval covers those of the rates that held, and of the rates that did not.
    """
    found = {
        trial.planned.round: trial.highest_rate
        for trial in trials
        if trial.highest_rate is not None
    }
    middle, held, above = (
        typical_figure(
            {
                number: rate
                for number, one in found.items()
                if (rate := getattr(one, name))
            }
        )
        for name in ("middle", "held", "not_held")
    )
    if middle is None or middle.interval is None or held is None or above is None:
        return middle
    ends = [*middle.interval, *(held.interval or ()), *(above.interval or ())]
    return replace(middle, low=min(ends), high=max(ends))
