"""Phases: after the rounds, each arm once more, with the phases of its requests recorded. Its trial is in no figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum
from pathlib import Path

import numpy as np

from clientlab import strategies
from clientlab.own_folder import OwnFolder
from clientlab.results.document import Run
from clientlab.results.part import shortened
from clientlab.results.phases import PHASES, ArmPhases, PhaseName, PhaseTimes
from clientlab.results.plan import Arm, Plan
from clientlab.running.due import DueTrial, planned_trial
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.workload import cancels


def phases_of(run: Run, runner: TrialRunner, whole: Plan) -> Iterator[ArmPhases]:
    """The phases of each arm, in their order. `whole`: the plan with the values that the run lacks."""
    for arm in run.experiment.arms:
        yield _of_arm(run, runner, whole, arm)


def _of_arm(run: Run, runner: TrialRunner, whole: Plan, arm: Arm) -> ArmPhases:
    due = DueTrial(max((trial.round for trial in run.trials), default=0) + 1, arm.name)
    planned, workload = planned_trial(run, due, run.measured, whole)
    if cancels(workload):
        return ArmPhases(arm=arm.name, reason="some of its requests are cancelled, in the middle of a phase")
    with OwnFolder("profile") as own:
        observing = replace(runner, keep_samples=False, phases=str(own.path / "phases"))
        trial = observing(planned, workload, own.path / "trials", _nothing)
        if trial.status != "done":
            return ArmPhases(arm=arm.name, reason=shortened(f"its trial {trial.status}: {trial.reason}"))
        found = dict(_phases(own.path.glob("phases-*.json")))
    if not found:
        return ArmPhases(arm=arm.name, reason=_reason(arm))
    return ArmPhases(
        arm=arm.name,
        requests=trial.requests or 0,
        requests_per_second=trial.requests_per_second,
        latency_mean_seconds=None if trial.latency_seconds is None else trial.latency_seconds.mean,
        phases=found,
    )


def _reason(arm: Arm) -> str:
    """Why an arm's trial had no phases."""
    if "processes" in strategies.executor_spec(strategies.find(arm.strategy).executor).name:
        return "its requests are sent by processes of their own, which are not observed"
    return "its library reports no phase that the lab can read"


def _phases(files: Iterable[Path]) -> Iterator[tuple[PhaseName, PhaseTimes]]:
    """Each phase that was seen, over all processes of the trial."""
    found = [json.loads(file.read_bytes()) for file in files]
    for name in PHASES:
        own = [one[name] for one in found if name in one]
        count = sum(one["count"] for one in own)
        if count:
            kept = [seconds for one in own for seconds in one["kept"]]
            p50, p99 = map(float, np.percentile(kept, [50, 99]))
            mean = fsum(one["total"] for one in own) / count
            yield name, PhaseTimes(count=count, mean=mean, least=min(kept), p50=p50, p99=p99)


def _nothing(_finished: int) -> None:
    """The trial's progress is not shown."""
