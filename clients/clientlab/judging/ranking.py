"""The standings of a run: its arms, ranked within each workload, upstream, route and link."""

from __future__ import annotations

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.standings import GroupKey, Schedule, Standing, TrialCost, standings
from clientlab.results.document import Run
from clientlab.results.figures import cost_of, ranked_by, ranking_of
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.workload.load import expected_schedule

OfferedLoad = tuple[int | None, Schedule | None]
"""Requests in flight, None if concurrency does not distinguish arms; and the schedule of an open load."""


def ranked(run: Run, confidence: float | None = None) -> dict[GroupKey, list[Standing]]:
    """The arms with finished trials of each group, the fastest first; groups in the experiment's order.

    Arms of a group are ranked against arms of equal load only (`load_of`). The figure that they are ranked by is that
    of their workload (`figures.ranking_of`). `confidence`: of the intervals; None: the run's own.
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
        )
        for group, trials in finished_by_group(run).items()
        for name, trial in trials
    ]
    return standings(figures, confidence or confidence_of(run.experiment.precision), baseline_of(run))


def levels_of(run: Run) -> dict[str, float]:
    """Arm → its typical seconds, which reports show, of arms without errors."""
    of_groups = {
        (group, one.name): one.level for group, found in ranked(run).items() for one in found if not one.errors
    }
    places = {arm.name: (group_of(arm), arm.label or arm.strategy) for arm in run.experiment.arms}
    return {name: of_groups[place] for name, place in places.items() if place in of_groups}


def load_of(run: Run, trial: Trial) -> OfferedLoad:
    """The load of a trial: requests in flight, and of an open load its rate, and its stages if it has several.

    Behind a search for capacities, arms are compared at equal rates whatever their requests in flight: how many a
    strategy can have in flight is a part of its capacity. The rate is equal in all rounds, also if each draws arrivals.
    """
    concurrency = trial.concurrency if trial.search is None else None
    if trial.open_load is None:
        return concurrency, None
    workload, rate = run.experiment.workloads[trial.workload], trial.open_load.planned_per_second
    if workload.arrivals == "poisson" and (schedule := expected_schedule(workload)) is not None:
        rate = schedule.count / schedule.length
    return concurrency, (rate, workload.stages)


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


def is_least(trial: Trial) -> bool:
    """Whether the figure that a trial is ranked by is only a lower bound, because requests failed."""
    return ranked_by(ranking_of([trial])).has_bounds([trial])
