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


class Measure(Protocol):
    """Does one planned trial, here or in a worker's container, and returns it with its figures.

    A strategy that fails is a failed trial. `folder` is the run's own; `progressed` takes how many requests
    have finished. Raises IncompleteRun or OSError where the run can't go on.
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

    Saved after every trial. A strategy that fails is a failed trial; the others go on. Raises
    IncompleteRun when interrupted or when it can't be saved: what was done is in the file.
    """
    folder = store.folder / run.run
    store.save(run)
    observer.run_started(run, folder)
    settings = run.experiment
    order = schedule(settings.arms, settings.rounds, settings.seed)
    for index, (number, arm) in enumerate(order):
        planned = _planned(arm, settings.workloads[arm.workload], number, index)
        try:
            observer.trial_started(planned, len(order))
            trial = measure(planned, settings.workloads[arm.workload], folder, observer.progressed)
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
    failed = any(trial.status == "failed" for trial in run.trials)
    run = run.model_copy(update={"status": "incomplete" if failed else "done"})
    store.save(run)
    return run


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
