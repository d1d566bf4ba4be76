"""Carrying out an experiment: each trial of its schedule in turn, saved as it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from clientlab import strategies
from clientlab.errors import IncompleteRun
from clientlab.runs.cautions import cautions_of
from clientlab.runs.document import Arm, Run, Trial
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


def execute(run: Run, measure: Measure, store: Store, observer: Observer) -> Run:
    """Carry out all trials of `run.experiment` and return the finished run.

    Saved after every trial. A strategy that fails is a failed trial; the others go on. A run that holds
    trials already goes on behind them. Raises IncompleteRun when interrupted or when it can't be saved:
    what was done is in the file.
    """
    folder = store.folder / run.run
    store.save(run)
    observer.run_started(run, folder)
    settings = run.experiment
    while (index := len(run.trials)) < len(order := order_of(run)):
        number, arm = order[index]
        planned = _planned(arm, settings.workloads[arm.workload], number, index)
        try:
            observer.trial_started(planned, len(order))
            try:
                trial = measure(planned, settings.workloads[arm.workload], folder, observer.progressed)
            except TrialLost as loss:
                trial = planned.model_copy(update={"reason": f"{LOST}: {loss}"})
            run = _with(run, trial, "running")
            store.save(run)
            observer.trial_ended(trial)
        except (KeyboardInterrupt, IncompleteRun, OSError) as error:
            reason = str(error) or "interrupted"
            if len(run.trials) == index:
                run = _with(run, planned.model_copy(update={"reason": reason}), "running")
            store.save(run.model_copy(update={"status": "incomplete"}))
            raise IncompleteRun(
                f"{reason} in trial {index + 1} of {len(order)}; what was done is in {folder}"
            ) from error
    run = run.model_copy(update={"status": "incomplete" if _missing(run) else "done"})
    store.save(run)
    return run


def order_of(run: Run) -> list[tuple[int, Arm]]:
    """(round, arm) of all trials: the schedule, and behind it once more those of its trials that were lost."""
    settings = run.experiment
    order = schedule(settings.arms, settings.rounds, settings.seed)
    return order + [order[trial.order] for trial in run.trials[: len(order)] if _lost(trial)]


def _lost(trial: Trial) -> bool:
    return trial.status == "failed" and (trial.reason or "").startswith(LOST)


def _missing(run: Run) -> bool:
    """Whether a trial has failed and was not made good later."""
    good = {(trial.arm, trial.round) for trial in run.trials if trial.status == "done"}
    return any(trial.status == "failed" and (trial.arm, trial.round) not in good for trial in run.trials)


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
