"""The standings of a run: its arms, ranked within each workload, upstream, route and link."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.standings import (
    Comparisons,
    GroupKey,
    Schedule,
    Standing,
    TrialCost,
    class_confidence,
    comparisons,
    standings,
)
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import cost_of, ranked_by
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.workload.load import expected_schedule

OfferedLoad = tuple[int | None, Schedule | None]
"""Requests in flight, None if concurrency does not distinguish arms; and the schedule of an open load."""

ArmKey = tuple[GroupKey, str]
"""The group of an arm, and its name in the group."""


def ranked(run: Run, confidence: float | None = None) -> dict[GroupKey, list[Standing]]:
    """The arms with finished trials of each group, the fastest first; groups in the experiment's order.

    Arms of a group are ranked against arms of equal load only (`load_of`). The figure that they are ranked by is that
    of their load model (`figures.ranked_by`). `confidence`: of the intervals; None: the run's own.
    """
    figures = [
        TrialCost(
            name,
            group,
            trial.round,
            cost_of(trial),
            sum(trial.errors.values()),
            *load_of(run, trial),
            is_least(trial),
            fell_short(trial),
        )
        for group, trials in finished_by_group(run).items()
        for name, trial in trials
    ]
    return standings(figures, confidence or confidence_of(run.experiment.precision), baseline_of(run))


def compared_by(run: Run, figure: Figure, confidence: float | None = None) -> dict[ArmKey, Comparisons]:
    """Return the comparisons of each arm with those it is ranked with, by a figure that does not decide the ranking.

    Arms whose figure is only a lower bound in some round, or that fell short of their concurrency, have no ratios.
    """
    found: dict[ArmKey, Comparisons] = {}
    for group, trials in finished_by_group(run).items():
        classes: dict[OfferedLoad, dict[str, list[Trial]]] = {}
        for name, trial in trials:
            classes.setdefault(load_of(run, trial), {}).setdefault(name, []).append(trial)
        level = class_confidence(classes.values(), confidence or confidence_of(run.experiment.precision))
        for arms in classes.values():
            series = {name: values for name, own in arms.items() if (values := figure_by_round(own, figure))}
            known = [
                name for name in series if not figure.has_bounds(arms[name]) and not any(map(fell_short, arms[name]))
            ]
            if known:
                of_class = comparisons(series, level, known)
                found |= {(group, name): of_class for name in series}
    return found


def figure_by_round(trials: Sequence[Trial], figure: Figure) -> dict[int, float]:
    """Return round → figure. Rounds with failed requests count only if the arm has no others."""
    clean = [trial for trial in trials if not trial.errors]
    return {trial.round: value for trial in clean or trials for value in figure.values([trial]) if value > 0}


def arm_key(arm: Arm) -> ArmKey:
    """Return the arm's group and its name there."""
    return group_of(arm), arm.label or arm.strategy


def load_of(run: Run, trial: Trial) -> OfferedLoad:
    """The load of a trial: requests in flight, and of an open load its rate, and its stages if it has several.

    Arms are compared by their highest rates whatever their requests in flight: how many a strategy can have in flight
    is a part of the rate that it holds. The rate of an open load is equal in all rounds, also if each draws arrivals.
    """
    if trial.open_load is None:
        return (trial.concurrency if trial.highest_rate is None else None), None
    workload, rate = run.experiment.workloads[trial.workload], trial.open_load.planned_per_second
    if workload.arrivals == "poisson" and (schedule := expected_schedule(workload)) is not None:
        rate = schedule.count / schedule.length
    return trial.concurrency, (rate, workload.stages)


def baseline_of(run: Run) -> tuple[GroupKey, str] | None:
    """The baseline of the experiment: its group, and its name in the group. None without a baseline."""
    named = (arm for arm in run.experiment.arms if arm.name == run.experiment.baseline)
    return next(((group_of(arm), arm.label or arm.strategy) for arm in named), None)


def group_of(arm: Arm) -> GroupKey:
    """The group of an arm: its workload in the experiment, upstream, route and link."""
    return _group(arm.group or arm.workload, arm)


def _group(workload: str, its: Arm | Trial) -> GroupKey:
    return GroupKey(workload, its.upstream, its.route, None if its.link is None else str(its.link))


def finished_by_group(run: Run) -> dict[GroupKey, list[tuple[str, Trial]]]:
    """The finished trials of each group, each with the name of its arm in the group."""
    arms = {arm.name: arm for arm in run.experiment.arms}
    found: dict[GroupKey, list[tuple[str, Trial]]] = {group_of(arm): [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.status == "done":
            arm = arms.get(trial.arm)  # None in an old file, where arms had no names
            group = _group((arm and arm.group) or trial.workload, trial)
            found.setdefault(group, []).append(((arm and arm.label) or trial.strategy, trial))
    return {group: trials for group, trials in found.items() if trials}


def fell_short(trial: Trial) -> bool:
    """Return whether a closed load had fewer requests than its concurrency, so it never had as many in flight."""
    closed = trial.open_load is None and trial.highest_rate is None
    return trial.status == "done" and closed and trial.requests < trial.concurrency


def shortfall(trials: Sequence[Trial]) -> str | None:
    """Return the reason why an arm is not ranked, from its trials; None if it reached its concurrency in all of them.

    It would be compared at a load that it never had.
    """
    short = [trial.requests for trial in trials if fell_short(trial)]
    if not short:
        return None
    finished = sum(trial.status == "done" for trial in trials)
    rounds = "" if len(short) == finished else f" in {len(short)} of {finished} rounds"
    count = f"{min(short):,}" if min(short) == max(short) else f"{min(short):,} to {max(short):,}"
    concurrency = max(trial.concurrency for trial in trials)
    return f"it sent only {count} requests per trial{rounds}, so it never had c={concurrency:,} in flight"


def is_least(trial: Trial) -> bool:
    """Whether the figure that a trial is ranked by is only a lower bound, because requests failed."""
    return ranked_by(open_load=trial.open_load is not None).has_bounds([trial])
