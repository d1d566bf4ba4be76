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
from clientlab.analysis.bottleneck import describe_growth
from clientlab.results.document import Run
from clientlab.results.plan import FIRST_RATE, Conditions
from clientlab.results.trial import HighestRate, PlannedTrial, Trial
from clientlab.statistics.histogram import FEWEST_REQUESTS
from clientlab.statistics.ratios import Ratio, typical_figure
from clientlab.workload.parts import MOST_REQUESTS

USUAL_TRIALS = 15
"""About how many trials a search takes.

One on the way up, and two at each end and for each of five bisections.
"""

_RESOLUTION = 1.025
_STEP = 2.0

Outcome = tuple[float, bool]  # the rate of a trial, and whether it held the rate


def why_not_held(trial: Trial, conditions: Conditions) -> str | None:
    """Return why a trial did not hold its rate, in a phrase; None if it held it."""
    load = trial.figures.open_load
    if trial.status != "done" or load is None:
        return f"the trial {trial.status}: {trial.reason or 'unknown'}"
    achieved = load.achieved_per_second
    planned = load.planned_per_second
    if achieved < 0.95 * planned:
        return f"{units.rate(achieved)} of {units.rate(planned)} requests/s were sent"
    growth = describe_growth(trial.figures, trial.wall_seconds)
    if growth:
        return growth
    for figure, limit in conditions.limits:
        value = figure.of(trial)
        at_least = figure.is_bound([trial])
        if value is None or value >= limit or at_least:
            return f"{figure.key} {figure.text(value, at_least=at_least)}"
    return None


def bracket_of(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Return the highest rate that was held, and the lowest one above it that was not.

    A missing end is None. A rate that was held once is an end until it is decided.
    """
    decisions = {rate: _is_held(outcomes, rate) for rate, _ in outcomes}
    not_held = [rate for rate, is_held in decisions.items() if is_held is False]
    lowest = min(not_held, default=math.inf)
    held = [
        rate
        for rate, is_held in decisions.items()
        if rate < lowest and (is_held or (rate, False) not in outcomes)
    ]
    return max(held, default=None), min(not_held, default=None)


def next_rate(
    outcomes: Sequence[Outcome],
    start: float,
    lowest: float,
    highest: float,
) -> float | None:
    """Return the rate to try next; None if the search is over."""
    if not outcomes:
        return min(max(start, lowest), highest)
    last, _ = outcomes[-1]
    held, failed = bracket_of(outcomes)
    is_on_the_way_up = last == held and failed is None and last < highest
    if _is_held(outcomes, last) is None and not is_on_the_way_up:
        return last
    rate = None
    if failed is None:
        if held is not None and held < highest:
            rate = min(_rounded(held * _STEP), highest)
    elif held is None:
        if failed > lowest:
            rate = max(_rounded(failed / _STEP), lowest)
    elif _is_held(outcomes, held) is None:
        rate = held
    elif failed > held * _RESOLUTION:
        rate = _rounded(math.sqrt(held * failed))
    return rate


def _is_held(outcomes: Sequence[Outcome], rate: float) -> bool | None:
    """Return whether a rate is held, by the first two of its trials that agree.

    None if it is undecided.
    """
    trials = [is_held for tried, is_held in outcomes if tried == rate][:3]
    for is_held in (True, False):
        if trials.count(is_held) > 1:
            return is_held
    return None


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


@dataclass(frozen=True)
class Search:
    """The search of an arm in a round, as far as it is."""

    probes: Sequence[Trial]
    """Its trials."""

    conditions: Conditions

    outcomes: Sequence[Outcome]
    """Those of the trials that were not lost."""

    next_rate: float | None
    """The rate to try next.

    None if the search is over, or if its last trial was lost.
    """

    def result(self, planned: PlannedTrial) -> Trial:
        """Return the trial that stands for the search in tables and comparisons.

        It is one that held the highest rate. It is lost if the last trial was, and
        failed if no rate or every rate was held.
        """
        last = self.probes[-1]
        held, not_held = bracket_of(self.outcomes)
        lost = Trial(
            planned=planned, status="lost", reason=last.reason, started=last.started
        )
        if last.status == "lost":
            return lost
        if held is None:
            rate = last.planned.search_rate
            why = why_not_held(last, self.conditions)
            reason = f"it held no rate: at {rate:.4g} requests/s, {why}"
            return lost.updated(status="failed", reason=reason)
        if not_held is None:
            reason = f"it held even {units.rate(held)} requests/s"
            return lost.updated(status="failed", reason=reason)
        tried = [probe for probe in self.probes if probe.planned.search_rate == held]
        holding = [probe for probe in tried if not why_not_held(probe, self.conditions)]
        shown = holding[-1]
        figures = shown.figures.updated(open_load=None)
        highest = HighestRate(held=held, not_held=not_held)
        return shown.updated(planned=planned, figures=figures, highest_rate=highest)


def search_of(
    run: Run,
    arm: str,
    number: int,
    conditions: Conditions,
) -> Search:
    """Return the search of an arm in a round, as far as the run has it.

    All rates follow from the first one, which is drawn: otherwise all rounds would try
    the same rates and share their error.
    """
    of_arm = [probe for probe in run.probes if probe.planned.arm == arm]
    probes = [probe for probe in of_arm if probe.planned.round == number]
    outcomes = []
    for probe in probes:
        rate = probe.planned.search_rate
        if probe.status != "lost" and rate is not None:
            outcomes.append((rate, why_not_held(probe, conditions) is None))
    if probes and _is_over(run, probes[-1]):
        return Search(probes, conditions, outcomes, None)
    plan = run.experiment
    seed = f"{plan.seed}:{number}:{arm}"
    draw = random.Random(seed).random()  # noqa: S311 - a rate, not a secret
    start = _rounded(FIRST_RATE * _STEP ** (draw - 0.5))
    # A trial has every figure of the conditions. With fewer than 20 requests, a single
    # late one would decide.
    needed = [FEWEST_REQUESTS.get(figure.key, 0) for figure, _ in conditions.limits]
    workload_by_arm = {planned.name: planned.workload for planned in plan.arms}
    workload = plan.workloads[workload_by_arm[arm]]
    seconds = workload.load.duration or 1.0
    lowest = max(20, *needed) / seconds
    rate = next_rate(outcomes, start, lowest, MOST_REQUESTS / seconds)
    return Search(probes, conditions, outcomes, rate)


def _is_over(run: Run, last: Trial) -> bool:
    """Return whether a search is over because its last trial was lost.

    What was lost before the run was resumed, or before the arm's last result in this
    round, is measured again.
    """
    since = run.resumed[-1].trials if run.resumed else 0
    for trial in run.trials_of(last.planned.arm):
        if trial.planned.round == last.planned.round:
            since = max(since, trial.planned.order)
    return last.status == "lost" and last.planned.order >= since


def typical_rate(trials: Sequence[Trial]) -> Ratio | None:
    """Return the median of the highest rates over the rounds; None if there is none.

    Its interval covers those of the rates that held, and of the rates that did not.
    """
    rates = {
        trial.planned.round: trial.highest_rate
        for trial in trials
        if trial.highest_rate is not None
    }
    middle = typical_figure({number: rate.middle for number, rate in rates.items()})
    held = typical_figure({number: rate.held for number, rate in rates.items()})
    above = typical_figure({number: rate.not_held for number, rate in rates.items()})
    if middle is None or middle.interval is None or held is None or above is None:
        return middle
    ends = [*middle.interval, *(held.interval or ()), *(above.interval or ())]
    return replace(middle, low=min(ends), high=max(ends))
