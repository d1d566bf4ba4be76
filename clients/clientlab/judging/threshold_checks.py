"""Whether a run that is about to begin can be judged by its thresholds: nobody should measure an hour to learn it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.judging.contrasts import environment_pairs
from clientlab.judging.thresholds import SCHEDULED, Threshold, unusable
from clientlab.results.open_load_figures import CAPACITY, OPEN_LOAD_FIGURES
from clientlab.results.plan import Arm, Plan
from clientlab.workload.load import is_open


def check_limits(limits: Sequence[Threshold], plan: Plan, *, strict: bool) -> None:
    """Raises FieldError for a threshold of an unknown arm, of a figure that an arm will not have, or of too few rounds.

    Likewise for a change, if the arm is in one environment only, or if a schedule decides the figure.
    """
    check_arms(limits, [arm.name for arm in plan.arms])
    check_changes(limits, plan)
    for one in limits:
        if plan.rounds < FEWEST_ROUNDS and not strict and not one.figure.of_failed:
            raise unusable(
                one.text,
                f"{plan.rounds} of at least {FEWEST_ROUNDS} rounds have no interval to judge by; "
                "measure more `rounds`, or judge by the estimate with `strict`",
            )
        for arm in plan.arms:
            if one.applies_to(arm.name) and (why := _lacks(one, plan, arm)):
                raise unusable(one.text, f"arm {arm.name!r} {why}")


def check_arms(thresholds: Sequence[Threshold], arms: Sequence[str]) -> None:
    """Raises FieldError for a threshold of an arm that is none of these."""
    for one in thresholds:
        if one.arm is not None and one.arm not in arms:
            near = difflib.get_close_matches(one.arm, arms, n=3, cutoff=0.3)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise unusable(one.text, f"no arm is named {one.arm!r}{hint}")


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
    if figure is CAPACITY and plan.find_max is None:
        return f"will have no {figure.label}: only a search finds it; set `find_max`"
    if not figure.is_known(workload, arm.link):
        return f"will have no {figure.label}; set `{figure.needs}`"
    if figure in OPEN_LOAD_FIGURES and not is_open(workload):
        return f"will have no {figure.label}: only an open load has it; set `rate`"
    return None
