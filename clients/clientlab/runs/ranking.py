"""The standings of a run: its arms, ranked within each workload and way to an upstream."""

from __future__ import annotations

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.standings import Figures, Group, Standing, standings
from clientlab.runs.document import Arm, Run, Trial


def ranked(run: Run) -> dict[Group, list[Standing]]:
    """The finished arms of each group, the fastest first; groups in the experiment's order."""
    figures = [
        Figures(name, group, trial.round, seconds_a_request(trial), sum(trial.errors.values()))
        for group, trials in placed(run).items()
        for name, trial in trials
    ]
    return standings(figures, confidence_of(run.experiment.precision), baseline_of(run))


def baseline_of(run: Run) -> tuple[Group, str] | None:
    """The arm that the experiment measures by: its group, and what it is called there."""
    named = (arm for arm in run.experiment.arms if arm.name == run.experiment.baseline)
    return next(((_group(arm), arm.label or arm.strategy) for arm in named), None)


def _group(arm: Arm) -> Group:
    return arm.group or arm.workload, arm.upstream, arm.route


def placed(run: Run) -> dict[Group, list[tuple[str, Trial]]]:
    """The finished trials of each group, with what their arm is called in it."""
    arms = {arm.name: arm for arm in run.experiment.arms}
    found: dict[Group, list[tuple[str, Trial]]] = {_group(arm): [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.status == "done":
            arm = arms.get(trial.arm)  # None in a file of an arm that has no name of its own
            group = ((arm and arm.group) or trial.workload, trial.upstream, trial.route)
            found.setdefault(group, []).append(((arm and arm.label) or trial.strategy, trial))
    return {group: trials for group, trials in found.items() if trials}


def seconds_a_request(trial: Trial) -> float:
    """Wall seconds for a successful request of a finished trial."""
    return (trial.wall_seconds or 0.0) / (trial.requests - sum(trial.errors.values()))
