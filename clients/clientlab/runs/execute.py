"""Carrying out an experiment: each trial of its schedule in turn, saved as it ends."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from clientlab import strategies
from clientlab.analysis import samples
from clientlab.errors import IncompleteRun
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import TrialFailed, run_trial
from clientlab.runs.cautions import cautions_of
from clientlab.runs.document import Arm, Run, Trial
from clientlab.runs.figures import Reading, spent, with_figures
from clientlab.runs.schedule import schedule
from clientlab.runs.store import Store
from clientlab.workload import Workload


class Home(Protocol):
    """Where the upstreams are, and what can be read off them."""

    def base_url(self, upstream: str, route: str) -> str:
        """Scheme, host and port."""

    def address(self, upstream: str, route: str) -> Address:
        """How connections to it are told from others."""

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises LabError where a server has died."""


class Observer(Protocol):
    """Told what happens, to show it; decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...

    def trial_started(self, trial: Trial, planned: int) -> None: ...

    def progressed(self, finished: int) -> None: ...

    def trial_ended(self, trial: Trial) -> None: ...


def execute(run: Run, home: Home, store: Store, observer: Observer) -> Run:
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
            trial = _measure(planned, settings.workloads[arm.workload], home, folder, observer)
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


def _measure(planned: Trial, workload: Workload, home: Home, folder: Path, observer: Observer) -> Trial:
    """One trial with its figures; its sample logs are read and removed."""
    place = folder / f"trial-{planned.order:04d}"
    bench = TrialBench(
        strategies.find(planned.strategy),
        workload,
        home.base_url(planned.upstream, planned.route),
        str(place),
        home.address(planned.upstream, planned.route),
    )
    tail = samples.Tail(place)

    def watch() -> int:
        finished = tail.finished()
        observer.progressed(finished)
        return finished

    readings: list[Reading] = []

    def read() -> None:
        readings.append(home.reading(planned.upstream, planned.route))

    try:
        outcome = run_trial(bench, watch, read, read)
    except TrialFailed as failure:
        # Its logs and its process's last words are kept beside the run file.
        return planned.model_copy(update={"status": "failed", "reason": str(failure)})
    found = samples.read(place, outcome.began)
    trial = with_figures(planned, workload, outcome, found, spent(*readings))
    shutil.rmtree(place)
    return trial
