"""`--find-max`: the highest rate that an arm holds, searched anew in each round.

A rate is doubled until it does not hold, then bisected on a logarithmic scale until the rates that held and did not
hold are 2.5 % apart. The highest rate of the round is between them. The next rate follows from the trials in the run
file, so an interrupted search goes on.

A rate is decided by the first two of its trials that agree, because one disturbance would otherwise halve the result.
So half of all trials hold the rate that is found. If a single success decided, the rate would be 4.6 % higher with
trials that vary by 10 %.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clientlab import units
from clientlab.analysis.ratios import Ratio, typical_figure
from clientlab.judging.backlog import growth_in
from clientlab.results.conditions import FIRST_RATE, Conditions
from clientlab.results.document import Run
from clientlab.results.trial import HighestRate, PlannedTrial, Trial
from clientlab.workload.workload import MOST_REQUESTS

USUAL_TRIALS = 15
"""About how many trials a search takes: one on the way up, and two at each end and for each of five bisections."""
_RESOLUTION = 1.025
_STEP = 2.0

Outcome = tuple[float, bool]  # the rate of a trial, and whether it held the rate


def why_not_held(trial: Trial, conditions: Conditions) -> str | None:
    """Return why a trial did not hold its rate, in a phrase; None if it held it."""
    load = trial.open_load
    if trial.status != "done" or load is None:
        return f"the trial {trial.status}: {trial.reason or 'unknown'}"
    if load.achieved_per_second < 0.95 * load.planned_per_second:
        return f"{units.rate(load.achieved_per_second)} of {units.rate(load.planned_per_second)} requests/s were sent"
    if growth := growth_in(trial):
        return growth
    for figure, limit in conditions.limits:
        value, at_least = figure.of(trial), figure.is_bound([trial])
        if value is None or value >= limit or at_least:
            return f"{figure.key} {figure.text(value, at_least=at_least)}"
    return None


def bracket_of(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Return the highest rate that was held, and the lowest one above it that was not; None for a missing end.

    A rate that was held once is an end until it is decided.
    """
    verdicts = {rate: _verdict(outcomes, rate) for rate, _ in outcomes}
    failed = min((rate for rate, held in verdicts.items() if held is False), default=math.inf)
    unopposed = {rate for rate, held in verdicts.items() if held is None and (rate, False) not in outcomes}
    held = max((rate for rate, good in verdicts.items() if rate < failed and (good or rate in unopposed)), default=None)
    return held, None if failed == math.inf else failed


def next_rate(outcomes: Sequence[Outcome], start: float, lowest: float, highest: float) -> float | None:
    """Return the rate to try next; None if the search is over."""
    if not outcomes:
        return min(max(start, lowest), highest)
    last, (held, failed) = outcomes[-1][0], bracket_of(outcomes)
    on_the_way_up = last == held and failed is None and last < highest
    if _verdict(outcomes, last) is None and not on_the_way_up:
        return last
    if failed is None:
        return None if held is None or held >= highest else min(_rounded(held * _STEP), highest)
    if held is None:
        return max(_rounded(failed / _STEP), lowest) if failed > lowest else None
    if _verdict(outcomes, held) is None:
        return held
    return None if failed <= held * _RESOLUTION else _rounded(math.sqrt(held * failed))


def _verdict(outcomes: Sequence[Outcome], rate: float) -> bool | None:
    """Return whether a rate is held, by the first two of its trials that agree; None: undecided."""
    tries = [held for tried, held in outcomes if tried == rate][:3]
    return next((held for held in (True, False) if tries.count(held) > 1), None)


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


@dataclass(frozen=True)
class Search:
    """The search of an arm in a round: its trials so far, and the rate to try next.

    `outcomes`: without lost trials. `next_rate`: None if the search is over, or its last trial was lost.
    """

    probes: Sequence[Trial]
    conditions: Conditions
    outcomes: Sequence[Outcome]
    next_rate: float | None

    def result(self, planned: PlannedTrial) -> Trial:
        """Return the trial that stands for the search in tables and comparisons: one that held the highest rate.

        It is lost if the last trial was, and failed if no rate was held, or each one.
        """
        last, (held, failed) = self.probes[-1], bracket_of(self.outcomes)
        if last.status == "lost":
            return Trial.of(planned, status="lost", reason=last.reason, started=last.started)
        if held is None:
            why = f"it held no rate: at {last.search_rate:.4g} requests/s, {why_not_held(last, self.conditions)}"
            return Trial.of(planned, status="failed", reason=why, started=last.started)
        if failed is None:
            why = f"it held even {units.rate(held)} requests/s"
            return Trial.of(planned, status="failed", reason=why, started=last.started)
        shown = [one for one in self.probes if one.search_rate == held and not why_not_held(one, self.conditions)][-1]
        own = {"order": planned.order, "search_rate": None, "open_load": None}
        return shown.model_copy(update={**own, "highest_rate": HighestRate(held=held, not_held=failed)})


def search_of(run: Run, arm: str, number: int, conditions: Conditions) -> Search:
    """Return the search of an arm in a round, as far as the run has it.

    All rates follow from the first one, so that is drawn: rounds that try the same rates all hide the same distance.
    """
    plan = run.experiment
    probes = [probe for probe in run.probes if (probe.arm, probe.round) == (arm, number)]
    outcomes = [
        (probe.search_rate, why_not_held(probe, conditions) is None)
        for probe in probes
        if probe.status != "lost" and probe.search_rate is not None
    ]
    since = max(  # what was lost before is measured again
        [run.resumed[-1].trials if run.resumed else 0]
        + [trial.order for trial in run.trials_of(arm) if trial.round == number]
    )
    if probes and probes[-1].status == "lost" and probes[-1].order >= since:
        return Search(probes, conditions, outcomes, None)
    seconds = next(plan.workloads[one.workload] for one in plan.arms if one.name == arm).duration or 1.0
    draw = random.Random(f"{plan.seed}:{number}:{arm}").random()  # noqa: S311 - a rate, not a secret
    start = _rounded(FIRST_RATE * _STEP ** (draw - 0.5))
    rate = next_rate(outcomes, start, conditions.fewest_requests / seconds, MOST_REQUESTS / seconds)
    return Search(probes, conditions, outcomes, rate)


def typical_rate(trials: Sequence[Trial]) -> Ratio | None:
    """Return the median of the highest rates over the rounds; None without one.

    Its interval reaches from that of the rates that held to that of the rates that did not.
    """
    found = {trial.round: trial.highest_rate for trial in trials if trial.highest_rate is not None}
    middle, held, above = (
        typical_figure({number: rate for number, one in found.items() if (rate := getattr(one, name))})
        for name in ("middle", "held", "not_held")
    )
    if middle is None or middle.interval is None or held is None or above is None:
        return middle
    ends = [*middle.interval, *(held.interval or ()), *(above.interval or ())]
    return replace(middle, low=min(ends), high=max(ends))
