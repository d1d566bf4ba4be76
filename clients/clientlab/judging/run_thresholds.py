"""Thresholds of one run: whether the plan can be judged by them, and how its figures and ratios stand."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.analysis.decisions import rounds_for_edge
from clientlab.analysis.ratios import FEWEST_ROUNDS, Ratio
from clientlab.judging.contrasts import ArmPair, environment_pairs, pair_ratio
from clientlab.judging.ranking import fell_short
from clientlab.judging.thresholds import (
    SCHEDULED,
    Threshold,
    ThresholdOutcome,
    ThresholdResult,
    beyond,
    change_threshold,
    edge_of,
    is_change,
    judge_limits,
    limit,
    lost_trials,
    outcome_of,
    too_few,
    unusable,
)
from clientlab.nearest import nearest
from clientlab.results.document import Run
from clientlab.results.figures import HIGHEST_RATE, OPEN_LOAD_FIGURES
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import Trial
from clientlab.workload.load import is_open


def check_limits(limits: Sequence[Threshold], plan: Plan) -> None:
    """Raises FieldError for a threshold of an unknown arm, of a figure that an arm will not have, or of too few rounds.

    Likewise for a change, if the arm is in one environment only, or if a schedule decides the figure.
    """
    check_arms(limits, [arm.name for arm in plan.arms])
    check_changes(limits, plan)
    for one in limits:
        if plan.rounds < FEWEST_ROUNDS and not one.figure.of_failed:
            raise unusable(
                one.text,
                f"{plan.rounds} of at least {FEWEST_ROUNDS} rounds have no interval to judge by; measure more `rounds`",
            )
        for arm in plan.arms:
            if one.applies_to(arm.name) and (why := _lacks(one, plan, arm)):
                raise unusable(one.text, f"arm {arm.name!r} {why}")


def check_arms(thresholds: Sequence[Threshold], arms: Sequence[str]) -> None:
    """Raises FieldError for a threshold of an arm that is none of these."""
    for one in thresholds:
        if one.arm is not None and one.arm not in arms:
            raise unusable(one.text, f"no arm is named {one.arm!r}{nearest(one.arm, arms)}")


def check_changes(thresholds: Sequence[Threshold], plan: Plan) -> None:
    """Raises FieldError for a change that no two environments of the plan can show."""
    pairs = environment_pairs(plan.arms)
    for one in thresholds:
        if not one.change:
            continue
        judged = [arm for arm, _ in pairs if one.applies_to(arm.name)]
        if not judged:
            where = "this run" if one.arm is None else f"arm {one.arm!r}"
            message = f"{where} has no earlier environment to compare with; name two `environments`, or write a limit"
            raise unusable(one.text, message)
        for arm in judged:
            if one.figure.scheduled and is_open(plan.workloads[arm.workload]):
                raise unusable(one.text, SCHEDULED.format(arm.name))


def _lacks(limit: Threshold, plan: Plan, arm: Arm) -> str | None:
    """Why a trial of the arm will not have the figure; None where it will."""
    figure, workload = limit.figure, plan.workloads[arm.workload]
    if figure is HIGHEST_RATE and plan.find_max is None:
        return f"will have no {figure.label}; set `find_max`"
    if not figure.is_known(workload, arm.link):
        return f"will have no {figure.label}; set `{figure.needs}`"
    if figure in OPEN_LOAD_FIGURES and not is_open(workload):
        return f"will have no {figure.label}: only an open load has it; set `rate`"
    return None


def threshold_of_run(text: str) -> Threshold:
    """A limit, as ``p99 > 50ms``, or a change between environments, as ``p99 +10%``. Raises LabError."""
    return change_threshold(text) if is_change(text) else limit(text)


def judge_run(run: Run, thresholds: Sequence[Threshold], *, strict: bool = False) -> list[ThresholdResult]:
    """Every threshold for every arm that it is for: a change for the arms of all environments but the first.

    A change fails if its whole interval is beyond the threshold; with `strict`, if its estimate is. It has the interval
    that the report shows. Those of all limits together hold the truth in 95 of 100 cases. Errors are counted: their
    shares decide. Raises LabError if there is no interval to judge by.
    """
    limits = [one for one in thresholds if not one.change]
    pairs = environment_pairs(run.experiment.arms)
    changes = [(one, pair) for one in thresholds if one.change for pair in pairs if one.applies_to(pair[0].name)]
    return [
        *judge_limits(run, limits, strict=strict),
        *(_judged(run, one, pair, strict=strict) for one, pair in changes),
    ]


def _judged(run: Run, one: Threshold, pair: ArmPair, *, strict: bool) -> ThresholdResult:
    arm = pair[0]
    trials, before = (_finished(run, each) for each in pair)
    lost = lost_trials(one, run, arm.name)
    found: float | None = None
    interval: tuple[float, float] | None = None
    ratio: Ratio | None = None
    bounded = one.figure.has_bounds(trials) or one.figure.has_bounds(before)
    if one.figure.of_failed:
        found = _difference(one, run, pair)
        outcome: ThresholdOutcome = "failed" if lost or found is None or found > one.value else "held"
    else:
        ratio = pair_ratio(run, one.figure, pair)
        found = None if ratio is None or bounded else ratio.value
        if bounded:
            surely_better = ratio is not None and ratio.high is not None and ratio.high < 1
            outcome = "held" if surely_better and not one.figure.has_bounds(trials) else "failed"
        elif any(map(fell_short, (*trials, *before))):
            outcome = "failed" if any(map(fell_short, trials)) else "not sure"
        elif ratio is None:
            outcome = _without_ratio(one, trials, before)
        elif not strict and ratio.rounds < FEWEST_ROUNDS:
            raise too_few(one, arm.name, ratio.rounds)
        else:
            outcome = outcome_of(one, ratio, strict=strict)
            interval = ratio.interval
    at_least = bounded and outcome == "failed"
    rounds = rounds_for_edge(ratio, edge_of(one)) if ratio and outcome == "not sure" and edge_of(one) > 0 else None
    return ThresholdResult(
        one, run.run, arm.name, outcome, found, lost, at_least=at_least, interval=interval, rounds=rounds
    )


def _finished(run: Run, arm: Arm) -> list[Trial]:
    return [trial for trial in run.trials_of(arm.name) if trial.status == "done"]


def _difference(one: Threshold, run: Run, pair: ArmPair) -> float | None:
    """How much larger the share is than in the first environment; None where one of them is unknown."""
    shares = [one.figure.over_rounds(run.trials_of(arm.name)) for arm in pair]
    if shares[0] is None or shares[1] is None:
        return None
    return shares[0] - shares[1]


def _without_ratio(one: Threshold, trials: list[Trial], before: list[Trial]) -> ThresholdOutcome:
    """No round has both figures above 0. Where one is 0, no percentage describes the change.

    An arm without the figure fails: it was to be measured.
    """
    these, those = one.figure.values(trials), one.figure.values(before)
    if not these or not those:
        return "failed"
    less = one.figure.less_is_better
    nearest, farthest = (min(these), max(those)) if less else (max(these), min(those))
    if beyond(nearest, farthest, less=less):
        return "failed"
    return "not sure" if beyond(max(these) if less else min(these), farthest, less=less) else "held"
