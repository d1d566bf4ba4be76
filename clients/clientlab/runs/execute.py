"""Carrying out an experiment: each trial of its schedule in turn, saved as it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from clientlab import strategies
from clientlab.errors import IncompleteRun
from clientlab.runs.cautions import cautions_of
from clientlab.runs.claims import judged
from clientlab.runs.document import Arm, Run, Trial
from clientlab.runs.failures import failed_for_good
from clientlab.runs.rounds import ended
from clientlab.runs.schedule import schedule
from clientlab.runs.store import Store
from clientlab.workload import Workload

LOST = "worker lost"
"""How the reason of a lost trial begins: it is given once more at the end of the run."""


class TrialLost(Exception):
    """Whoever measured the trial is gone, and nothing is known of it; the text says who and how."""


class Measure(Protocol):
    """Does one planned trial, here or in a worker's container, and returns it with its figures.

    A strategy that fails is a failed trial. `folder` is the run's own; `progressed` takes how many requests
    have finished. Raises TrialLost, and IncompleteRun or OSError where the run can't go on.
    """

    def __call__(
        self, planned: Trial, workload: Workload, folder: Path, progressed: Callable[[int], None]
    ) -> Trial: ...


class Observer(Protocol):
    """Told what happens, to show it; decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...

    def trial_started(self, trial: Trial, planned: int) -> None: ...

    def progressed(self, finished: int) -> None: ...

    def trial_ended(self, trial: Trial) -> None: ...


def execute(
    run: Run, measure: Measure, store: Store, observer: Observer, clock: Callable[[], float] = time.monotonic
) -> Run:
    """Carry out all trials of `run.experiment`, round by round, and return the finished run.

    Saved after every trial. A strategy that fails is a failed trial; the others go on. A run that holds
    trials already goes on behind them. Raises IncompleteRun when interrupted or when it can't be saved:
    what was done is in the file.
    """
    folder = store.folder / run.run
    run = run.model_copy(update={"claims": []})  # of a run that goes on they were judged from what it had
    store.save(run)
    observer.run_started(run, folder)
    began, rounds, reason = clock(), _rounds_of(run), None
    parts = (measure, store, observer)
    while reason is None:
        if (due := _due(run, rounds)) is not None:
            run = _one_trial(run, due, rounds, parts)
        elif (reason := ended(run, rounds, clock() - began)) is None:
            rounds += 1
    status = "incomplete" if run.experiment.left_out or failed_for_good(run) else "done"
    run = _judged(run.model_copy(update={"status": status, "rounds_ended": reason}))
    store.save(run)
    return run


def _one_trial(run: Run, planned: Trial, rounds: int, parts: tuple[Measure, Store, Observer]) -> Run:
    measure, store, observer = parts
    workload, folder = run.experiment.workloads[planned.workload], store.folder / run.run
    trials = len(order_of(run, rounds))
    try:
        observer.trial_started(planned, trials)
        try:
            trial = measure(planned, workload, folder, observer.progressed)
        except TrialLost as loss:
            trial = planned.model_copy(update={"reason": f"{LOST}: {loss}"})
        run = _with(run, trial, "running")
        store.save(run)
        observer.trial_ended(trial)
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        reason = str(error) or "interrupted"
        if len(run.trials) == planned.order:
            run = _with(run, planned.model_copy(update={"reason": reason}), "running")
        store.save(_judged(run.model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(
            f"{reason} in trial {planned.order + 1} of {trials}; what was done is in {folder}"
        ) from error
    return run


def _rounds_of(run: Run) -> int:
    """As many rounds as are planned, or as a run that goes on has begun."""
    return max([run.experiment.rounds, *(trial.round for trial in run.trials)])


def order_of(run: Run, rounds: int | None = None) -> list[tuple[int, Arm]]:
    """(round, arm) of all trials: the schedule, and behind it once more those of its trials that were lost."""
    settings = run.experiment
    arms = {arm.name: arm for arm in settings.arms}
    order = schedule(settings.arms, rounds or _rounds_of(run), settings.seed)
    lost = dict.fromkeys((trial.round, trial.arm) for trial in run.trials if _lost(trial))
    return order + [(number, arms[name]) for number, name in lost]


def _due(run: Run, rounds: int) -> Trial | None:
    """The first trial of the order that was not made; None after the last."""
    made = Counter((trial.round, trial.arm) for trial in run.trials)
    for number, arm in order_of(run, rounds):
        if not made[number, arm.name]:
            return _planned(arm, run.experiment.workloads[arm.workload], number, len(run.trials))
        made[number, arm.name] -= 1
    return None


def _lost(trial: Trial) -> bool:
    return trial.status == "failed" and (trial.reason or "").startswith(LOST)


def _judged(run: Run) -> Run:
    """The run with the verdicts on its claims, and all its cautions."""
    judged_run = run.model_copy(update={"claims": judged(run)})
    return judged_run.model_copy(update={"cautions": cautions_of(judged_run)})


def _with(run: Run, trial: Trial, status: str) -> Run:
    trials = [*run.trials, trial]
    changed = run.model_copy(update={"trials": trials, "status": status})
    return changed.model_copy(update={"cautions": cautions_of(changed)})


def _planned(arm: Arm, workload: Workload, number: int, index: int) -> Trial:
    return Trial(
        arm=arm.name,
        strategy=arm.strategy,
        upstream=arm.upstream,
        route=arm.route,
        workload=arm.workload,
        round=number,
        order=index,
        status="failed",
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        concurrency=strategies.find(arm.strategy).in_flight(workload.concurrency, workload.requests),
    )
