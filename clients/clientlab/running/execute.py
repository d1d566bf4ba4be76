"""Carrying out a plan: one trial of its schedule after the other, each saved when it ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from clientlab import __version__
from clientlab.errors import IncompleteRun
from clientlab.judging.capacity import lost_searches
from clientlab.judging.comparison import differences
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Resumption, Run, Surroundings, failed_for_good, is_probe
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.results.withheld_plan import withheld_plan
from clientlab.running.due import DueTrial, due_trials, ended, planned_trial, rounds_of
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


def new_run(name: str, plan: Plan, target: Target, surroundings: Surroundings, kept: Collection[str] = ()) -> Run:
    """A run of the plan that has no trial. It holds no secret but those of the headers and parameters `kept`."""
    return Run(
        run=name,
        clientlab=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        experiment=withheld_plan(plan, kept),
        target=target.stored(kept),
        surroundings=surroundings,
    )


def resumed(run: Run, surroundings: Surroundings) -> Run:
    """A run that had stopped, as it goes on in these surroundings."""
    now = run.model_copy(update={"surroundings": surroundings, "clientlab": __version__})
    found = [f"{one.part}: {one.before or '–'} → {one.after or '–'}" for one in differences(run, now)]
    entry = Resumption(at=utc_now(), trials=run.measured, differences=found)
    return run.model_copy(update={"status": "running", "rounds_ended": None, "resumed": [*run.resumed, entry]})


def execute(  # noqa: PLR0913 - a run's parts, and two that are seldom given
    run: Run, measure: Measure, store: Store, observer: Observer, clock: Callable[[], float] = time.monotonic,
    *, whole: Plan | None = None,
) -> Run:  # fmt: skip
    """Carry out all trials of `run.experiment`, round by round, and return the finished run.

    Each trial is saved when it ends. A strategy that fails is a failed trial; the others go on. A run that holds
    trials already goes on behind them. Raises IncompleteRun when it is interrupted or cannot be saved: the finished
    trials are saved. The caller holds the run (`Store.hold`). `whole`: the plan with the values that the run lacks.
    """
    folder = store.folder / run.run
    run = run.model_copy(update={"claims": [], "cautions": []})  # those of a run that goes on were of fewer trials
    store.save(run)
    observer.run_started(run, folder)
    began, rounds, reason = clock(), rounds_of(run), None
    due, parts = _Queue(run, rounds), (measure, store, observer)
    try:
        while reason is None:
            if due.trials:
                run, trial = _one_trial(run, due.trials.popleft(), due.left, parts, whole)
                if trial.status == "lost" or is_probe(trial):
                    due = _Queue(run, rounds)
            elif (reason := ended(run, rounds, clock() - began)) is None:
                rounds += 1
                due = _Queue(run, rounds)
    except KeyboardInterrupt as error:  # between two trials: the journal may have one more than `run`
        store.save(with_judgement(store.read(run.run).model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(f"interrupted between two trials; what was done is in {folder}") from error
    lacks = run.experiment.left_out or failed_for_good(run) or lost_searches(run)
    status = "incomplete" if lacks else "done"
    run = with_judgement(run.model_copy(update={"status": status, "rounds_ended": reason}))
    store.save(run)
    return run


class _Queue:
    """The trials that are due. `left`: how many, of a search for capacities about how many."""

    def __init__(self, run: Run, rounds: int) -> None:
        found = due_trials(run, rounds)
        self.trials = deque(found.trials)
        self._later = found.later

    @property
    def left(self) -> int:
        return len(self.trials) + self._later


def _one_trial(
    run: Run, due: DueTrial, left: int, parts: tuple[Measure, Store, Observer], whole: Plan | None
) -> tuple[Run, Trial]:
    """The run with one more trial, which is saved, and the trial. `left`: so many are due behind it."""
    measure, store, observer = parts
    folder, trials, started = store.folder / run.run, run.measured + 1 + left, utc_now()
    planned, workload = planned_trial(run, due, whole)
    try:
        observer.trial_started(planned, trials)
        try:
            trial = measure(planned, workload, folder, observer.progressed)
        except TrialLost as loss:
            trial = Trial.of(planned, status="lost", reason=str(loss), started=started)
        run = run.with_trial(trial)
        store.append(run.run, trial)
        observer.trial_ended(trial)
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        reason = str(error) or "interrupted"
        if run.measured == planned.order:
            found = error.trial if isinstance(error, TrialInterrupted) else None
            run = run.with_trial(found or Trial.of(planned, status="lost", reason=reason, started=started))
        store.save(with_judgement(run.model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(
            f"{reason} in trial {planned.order + 1} of {trials}; what was done is in {folder}"
        ) from error
    return run, trial
