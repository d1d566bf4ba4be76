"""Carrying out a plan: one trial of its schedule after the other, each saved when it ends."""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from clientlab import __version__, strategies
from clientlab.errors import IncompleteRun
from clientlab.judging.differences import differences
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Resumption, Run, Surroundings
from clientlab.results.failures import failed_for_good
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.stop_rules import ended
from clientlab.workload.load import requests_in
from clientlab.workload.workload import Workload


class TrialLost(Exception):
    """The trial's worker vanished, and nothing is known of the trial. The text names the worker and the reason."""


class TrialInterrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal like it. `trial` is lost; it holds the requests that had finished."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.reason)
        self.trial = trial


class Measure(Protocol):
    """Measures one planned trial, in this process's children or in a worker's container.

    A strategy that fails is a failed trial. `folder` is the run's own; `progressed` takes how many requests
    have finished. Raises TrialLost, and IncompleteRun or OSError where the run cannot go on.
    """

    def __call__(
        self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Callable[[int], None]
    ) -> Trial: ...


class Observer(Protocol):
    """Shows what happens. It decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...

    def trial_started(self, trial: PlannedTrial, planned: int) -> None: ...

    def progressed(self, finished: int) -> None: ...

    def trial_ended(self, trial: Trial) -> None: ...


def run_name(plan: Plan) -> str:
    """A name for a run that begins now. The names of runs sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{plan.name}-{token_hex(2)}"


def new_run(name: str, plan: Plan, surroundings: Surroundings) -> Run:
    """A run of the plan that has no trial."""
    return Run(
        run=name,
        clientlab=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        experiment=plan,
        surroundings=surroundings,
    )


def resumed(run: Run, surroundings: Surroundings) -> Run:
    """A run that had stopped, as it goes on in these surroundings."""
    now = run.model_copy(update={"surroundings": surroundings, "clientlab": __version__})
    found = [f"{one.part}: {one.before or '–'} → {one.after or '–'}" for one in differences(run, now)]
    entry = Resumption(at=utc_now(), trials=len(run.trials), differences=found)
    return run.model_copy(update={"status": "running", "rounds_ended": None, "resumed": [*run.resumed, entry]})


_Due = tuple[int, str]
"""A round, and the name of an arm that has a trial in it."""


def execute(
    run: Run, measure: Measure, store: Store, observer: Observer, clock: Callable[[], float] = time.monotonic
) -> Run:
    """Carry out all trials of `run.experiment`, round by round, and return the finished run.

    Each trial is saved when it ends. A strategy that fails is a failed trial; the others go on. A run that holds
    trials already goes on behind them. Raises IncompleteRun when it is interrupted or cannot be saved: the finished
    trials are saved. The caller holds the run (`Store.hold`).
    """
    folder = store.folder / run.run
    run = run.model_copy(update={"claims": [], "cautions": []})  # those of a run that goes on were of fewer trials
    store.save(run)
    observer.run_started(run, folder)
    began, rounds, reason = clock(), _rounds_of(run), None
    due, parts = due_trials(run, rounds), (measure, store, observer)
    try:
        while reason is None:
            if due:
                run = _one_trial(run, due.popleft(), len(due), parts)
                if run.trials[-1].status == "lost":
                    due = due_trials(run, rounds)
            elif (reason := ended(run, rounds, clock() - began)) is None:
                rounds += 1
                due = due_trials(run, rounds)
    except KeyboardInterrupt as error:  # between two trials: the journal may have one more than `run`
        store.save(with_judgement(store.read(run.run).model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(f"interrupted between two trials; what was done is in {folder}") from error
    status = "incomplete" if run.experiment.left_out or failed_for_good(run) else "done"
    run = with_judgement(run.model_copy(update={"status": status, "rounds_ended": reason}))
    store.save(run)
    return run


def _one_trial(run: Run, due: _Due, left: int, parts: tuple[Measure, Store, Observer]) -> Run:
    """The run with one more trial, which is saved. `left`: so many are due behind it."""
    measure, store, observer = parts
    folder, trials, started = store.folder / run.run, len(run.trials) + 1 + left, utc_now()
    planned, workload = _planned(run, *due)
    try:
        observer.trial_started(planned, trials)
        try:
            trial = measure(planned, workload, folder, observer.progressed)
        except TrialLost as loss:
            trial = Trial.of(planned, status="lost", reason=str(loss), started=started)
        run = _with(run, trial)
        store.append(run.run, trial)
        observer.trial_ended(trial)
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        reason = str(error) or "interrupted"
        if len(run.trials) == planned.order:
            found = error.trial if isinstance(error, TrialInterrupted) else None
            run = _with(run, found or Trial.of(planned, status="lost", reason=reason, started=started))
        store.save(with_judgement(run.model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(
            f"{reason} in trial {planned.order + 1} of {trials}; what was done is in {folder}"
        ) from error
    return run


def schedule(arms: Sequence[str], rounds: int, seed: int) -> list[_Due]:
    """(round, arm) in the order of execution; rounds count from 1. `arms`: their names."""
    order: list[_Due] = []
    for number in range(1, rounds + 1):
        shuffled = list(arms)
        random.Random(f"{seed}:{number}").shuffle(shuffled)  # noqa: S311 - an order, not a secret
        order += [(number, arm) for arm in shuffled]
    return order


def _rounds_of(run: Run) -> int:
    """As many rounds as are planned, or as a run that goes on has begun."""
    return max([run.experiment.rounds, *(trial.round for trial in run.trials)])


def due_trials(run: Run, rounds: int | None = None) -> deque[_Due]:
    """What is left to measure, of so many rounds: the trials of the schedule, and behind them those to repeat.

    A lost trial is repeated once. A run that was resumed repeats what was lost or failed before, as if it had not been.
    """
    plan = run.experiment
    order = schedule([arm.name for arm in plan.arms], rounds or _rounds_of(run), plan.seed)
    present = run.trials[run.resumed[-1].trials :] if run.resumed else run.trials
    known, tried = {(trial.round, trial.arm) for trial in run.trials}, Counter((t.round, t.arm) for t in present)
    done = {(trial.round, trial.arm) for trial in run.trials if trial.status == "done"}
    lost = {(trial.round, trial.arm) for trial in present if trial.status == "lost"}
    again = [one for one in order if one in known - done and tried[one] < (2 if one in lost else 1)]
    return deque([*(one for one in order if one not in known), *again])


def _with(run: Run, trial: Trial) -> Run:
    return run.model_copy(update={"trials": [*run.trials, trial]})


def _planned(run: Run, number: int, name: str) -> tuple[PlannedTrial, Workload]:
    """The next trial of the run, and its workload."""
    arm = next(arm for arm in run.experiment.arms if arm.name == name)
    workload = run.experiment.workloads[arm.workload]
    planned = PlannedTrial(
        arm=arm.name,
        strategy=arm.strategy,
        upstream=arm.upstream,
        route=arm.route,
        workload=arm.workload,
        round=number,
        order=len(run.trials),
        concurrency=strategies.find(arm.strategy).in_flight(workload.concurrency, requests_in(workload)),
        environment=arm.environment,
    )
    return planned, workload
