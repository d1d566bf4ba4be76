"""Carrying out a plan: one trial of its schedule after the other, each saved when it ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from clientlab import __version__
from clientlab.errors import IncompleteRun
from clientlab.judging import find_max
from clientlab.judging.comparison import differences
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Resumption, Run, Surroundings, failed_for_good
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.due import DueTrial, Pace, due_trials, ended, planned_trial, rounds_of, turn_of, with_decided
from clientlab.workload.workload import Workload


class TrialLost(Exception):
    """The trial's worker vanished, and nothing is known of the trial. The text names the worker and the reason."""


class TrialInterrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal like it. `trials`, one or those of a turn, are lost; they hold the requests that finished."""

    def __init__(self, *trials: Trial) -> None:
        super().__init__(trials[0].reason)
        self.trials = trials


Progressed = Callable[[int | None], None]
"""Takes how many measured requests of a trial have finished so far, or None while it warms up."""


class Measure(Protocol):
    """Measures one planned trial, in this process's children or in a worker's container.

    A strategy that fails is a failed trial. `folder` is the run's own; `progressed` is called twice a second. Raises
    TrialLost, and IncompleteRun or OSError where the run cannot go on.
    """

    def __call__(self, planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial: ...


class MeasureByTurns(Protocol):
    """Measures planned trials side by side, slice by slice, and returns them in their order. Otherwise as `Measure`."""

    def __call__(
        self, trials: Sequence[tuple[PlannedTrial, Workload]], folder: Path, progressed: Progressed
    ) -> Sequence[Trial]: ...


class Observer(Protocol):
    """Shows what happens. It decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None: ...

    def progressed(self, finished: int | None) -> None: ...

    def trial_ended(self, trial: Trial) -> None: ...

    def round_judged(self, run: Run, rounds: int) -> None: ...


def run_name(plan: Plan) -> str:
    """A name for a run that begins now. The names of runs sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{plan.name}-{token_hex(2)}"


def new_run(name: str, plan: Plan, target: Target, surroundings: Surroundings) -> Run:
    """A run of the plan that has no trial. It holds no credentials."""
    return Run(
        run=name,
        clientlab=__version__,
        created=utc_now(),
        status="running",
        experiment=plan.masked(),
        target=target,
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
    *, whole: Plan | None = None, by_turns: MeasureByTurns | None = None,
) -> Run:  # fmt: skip
    """Carry out all trials of `run.experiment`, round by round, and return the finished run.

    Each trial is saved when it ends. A strategy that fails is a failed trial; the others go on. A run that holds
    trials already goes on behind them. Raises IncompleteRun when it is interrupted or cannot be saved: the finished
    trials are saved. The caller holds the run (`Store.hold`). `whole`: the plan with the values that the run lacks.
    `by_turns`: measures trials in slices that belong together; without it, each trial is measured apart.
    """
    folder = store.folder / run.run
    run = run.model_copy(update={"claims": [], "cautions": []})  # those of a run that goes on were of fewer trials
    store.save(run)
    observer.run_started(run, folder)
    began = last = clock()
    rounds, reason = rounds_of(run), None
    due, parts = _Queue(run, rounds), _Parts(measure, by_turns, store, observer, whole)
    waits_for_first = run.experiment.budget is not None
    try:
        while reason is None:
            if due.trials:
                due.take(run, by_turns=by_turns is not None)
                run, trials = _next_trials(run, due, parts)
                if waits_for_first:  # workers of containers may take long to come
                    waits_for_first, began = False, clock() - _seconds_since(trials[0].started)
                    last = began
                if run.experiment.find_max is not None or any(trial.status == "lost" for trial in trials):
                    due = _Queue(run, rounds)
                continue
            now, measured = clock(), max(1, len(run.experiment.arms) - len(run.decided))
            run = _looked_at(run, rounds, store, observer)
            if (reason := ended(run, rounds, Pace(now - began, (now - last) / measured))) is None:
                rounds, last = rounds + 1, now
                due = _Queue(run, rounds)
    except KeyboardInterrupt as error:  # between two trials: the journal may have one more than `run`
        store.save(with_judgement(store.read(run.run).model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(f"interrupted between two trials; what was done is in {folder}") from error
    lacks = run.experiment.left_out or failed_for_good(run)
    status = "incomplete" if lacks else "done"
    run = with_judgement(run.model_copy(update={"status": status, "rounds_ended": reason}))
    store.save(run)
    return run


def _seconds_since(moment: str) -> float:
    """`moment`: ISO 8601, by the clock of this machine or, of a worker's trial, by that of the lab."""
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())


def _looked_at(run: Run, rounds: int, store: Store, observer: Observer) -> Run:
    """The run after a round, saved where arms are decided by it: a run that goes on must not measure them again."""
    found = with_decided(run, rounds)
    if run.experiment.budget is not None:
        observer.round_judged(found, rounds)
    if found is not run:
        store.save(found)
    return found


class _Queue:
    """The trials that are due. `turn`: those that were taken. `left`: how many others, of a search about so many."""

    def __init__(self, run: Run, rounds: int) -> None:
        found = due_trials(run, rounds)
        self.trials, self.turn = deque(found.trials), list[DueTrial]()
        self._later = found.later

    def take(self, run: Run, *, by_turns: bool) -> None:
        """Take the next trial, and those that are measured side by side with it."""
        self.turn = turn_of(run, self.trials) if by_turns else [self.trials[0]]
        for one in self.turn:
            self.trials.remove(one)

    @property
    def left(self) -> int:
        return len(self.trials) + self._later


@dataclass(frozen=True)
class _Parts:
    """What `execute` works with."""

    measure: Measure
    by_turns: MeasureByTurns | None
    store: Store
    observer: Observer
    whole: Plan | None


def _next_trials(run: Run, due: _Queue, parts: _Parts) -> tuple[Run, Sequence[Trial]]:
    """The run with the trials of a turn, which are saved, and these trials."""
    folder, count, started = parts.store.folder / run.run, run.measured + len(due.turn) + due.left, utc_now()
    planned = [
        planned_trial(run, one, run.measured + index, parts.whole, by_turns=parts.by_turns is not None)
        for index, one in enumerate(due.turn)
    ]
    trials: Sequence[Trial]
    try:
        parts.observer.trials_started([trial for trial, _ in planned], count)
        try:
            first, conditions = planned[0][0], run.experiment.find_max
            if conditions is not None and first.search_rate is None:  # the search is over
                trials = [find_max.search_of(run, first.arm, first.round, conditions).result(first)]
            elif parts.by_turns is not None and len(planned) > 1:
                trials = parts.by_turns(planned, folder, parts.observer.progressed)
            else:
                trials = [parts.measure(*planned[0], folder, parts.observer.progressed)]
        except TrialLost as loss:
            trials = [Trial.of(planned[0][0], status="lost", reason=str(loss), started=started)]
        for trial in trials:
            run = run.with_trial(trial)
            parts.store.append(run.run, trial)
            parts.observer.trial_ended(trial)
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        reason = str(error) or "interrupted"
        found = {trial.order: trial for trial in error.trials} if isinstance(error, TrialInterrupted) else {}
        for one, _ in planned:
            if run.measured == one.order:
                lost = Trial.of(one, status="lost", reason=reason, started=started)
                run = run.with_trial(found.get(one.order, lost))
        store = parts.store
        store.save(with_judgement(run.model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(
            f"{reason} in trial {planned[0][0].order + 1} of {count}; what was done is in {folder}"
        ) from error
    return run, trials
