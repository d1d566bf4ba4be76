"""The standings of a run: its arms, ranked within each workload, upstream and route."""

from __future__ import annotations

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.standings import GroupKey, Standing, TrialCost, standings
from clientlab.results.document import Run
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial


def ranked(run: Run) -> dict[GroupKey, list[Standing]]:
    """The arms with finished trials of each group, the fastest first; groups in the experiment's order.

    Arms of a group are ranked against arms of equal concurrency only.
    """
    figures = [
        TrialCost(name, group, trial.round, seconds_per_request(trial), sum(trial.errors.values()), trial.concurrency)
        for group, trials in finished_by_group(run).items()
        for name, trial in trials
    ]
    return standings(figures, confidence_of(run.experiment.precision), baseline_of(run))


def baseline_of(run: Run) -> tuple[GroupKey, str] | None:
    """The baseline of the experiment: its group, and its name in the group. None without a baseline."""
    named = (arm for arm in run.experiment.arms if arm.name == run.experiment.baseline)
    return next(((_group(arm), arm.label or arm.strategy) for arm in named), None)


def _group(arm: Arm) -> GroupKey:
    return arm.group or arm.workload, arm.upstream, arm.route


def finished_by_group(run: Run) -> dict[GroupKey, list[tuple[str, Trial]]]:
    """The finished trials of each group, each with the name of its arm in the group."""
    arms = {arm.name: arm for arm in run.experiment.arms}
    found: dict[GroupKey, list[tuple[str, Trial]]] = {_group(arm): [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.status == "done":
            arm = arms.get(trial.arm)  # None in an old file, where arms had no names
            group = ((arm and arm.group) or trial.workload, trial.upstream, trial.route)
            found.setdefault(group, []).append(((arm and arm.label) or trial.strategy, trial))
    return {group: trials for group, trials in found.items() if trials}


def seconds_per_request(trial: Trial) -> float:
    """Wall seconds per successful request of a finished trial."""
    return (trial.wall_seconds or 0.0) / (trial.requests - sum(trial.errors.values()))
