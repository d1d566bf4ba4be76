"""Carrying out a plan: one trial of its schedule after the other, each saved when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from clientlab.running.due import DueTrial, due_trials, ended, planned_trial, rounds_of, turn_of, with_decided
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


Measure = Callable[[PlannedTrial, Workload, Path, Progressed], Trial]
"""Measures one planned trial. The folder is the run's own; `Progressed` is called twice a second.

A strategy that fails is a failed trial. Raises TrialLost, and IncompleteRun or OSError if the run cannot go on.
"""

MeasureByTurns = Callable[[Sequence[tuple[PlannedTrial, Workload]], Path, Progressed], Sequence[Trial]]
"""Measures planned trials side by side, slice by slice, and returns them in their order. Otherwise as `Measure`."""


class Observer(Protocol):
    """Shows what happens. It decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None: ...

    def progressed(self, finished: int | None) -> None: ...

    def trial_ended(self, trial: Trial) -> None: ...

    def round_judged(self, run: Run, rounds: int) -> None: ...


def run_name(plan: Plan) -> str:
    """Return a name for a run that begins now. The names of runs sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{plan.name}-{token_hex(2)}"


def new_run(name: str, plan: Plan, target: Target, surroundings: Surroundings) -> Run:
    """Return a run of the plan that has no trial. It holds no credentials."""
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
    """Return a run that had stopped, as it goes on in these surroundings."""
    now = run.model_copy(update={"surroundings": surroundings, "clientlab": __version__})
    found = [f"{one.part}: {one.before or '–'} → {one.after or '–'}" for one in differences(run, now)]
    entry = Resumption(at=utc_now(), trials=run.measured, differences=found)
    return run.model_copy(update={"status": "running", "rounds_ended": None, "resumed": [*run.resumed, entry]})


def execute(  # noqa: PLR0913 - a run's parts, and two that are seldom given
    run: Run, measure: Measure, store: Store, observer: Observer, clock: Callable[[], float] = time.monotonic,
    *, whole: Plan | None = None, by_turns: MeasureByTurns | None = None,
) -> Run:  # fmt: skip
    """Carry out all trials of `run.experiment`, round by round, and return the finished run.

    Each trial is saved when it ends. A run that has trials already goes on after them. Raise IncompleteRun if it is
    interrupted or cannot be saved: the finished trials are saved. The caller holds the run (`Store.hold`). `whole`: the
    plan with the values that the run lacks. `by_turns`: without it, each trial is measured apart.
    """
    run = run.model_copy(update={"claims": [], "cautions": []})  # those of a run that goes on were of fewer trials
    plan, folder = run.experiment, store.folder / run.run
    store.save(run)
    observer.run_started(run, folder)
    execution = _Execution(run, measure, by_turns, store, observer, whole)
    rounds, reason = rounds_of(run), None
    began = last = clock()
    try:
        while reason is None:
            due = due_trials(execution.run, rounds)
            if due.trials:
                turn = turn_of(execution.run, due.trials) if by_turns else due.trials[:1]
                execution.measure_turn(turn, len(due.trials) + due.later)
                continue
            now, measured = clock(), max(1, len(plan.arms) - len(execution.run.decided))
            execution.decide(rounds)
            if (reason := ended(execution.run, rounds, now - began, (now - last) / measured)) is None:
                rounds, last = rounds + 1, now
    except KeyboardInterrupt as error:  # between two trials: the journal may have one more than the run
        store.save(with_judgement(store.read(run.run).model_copy(update={"status": "incomplete"})))
        raise IncompleteRun(f"interrupted between two trials; what was done is in {folder}") from error
    status = "incomplete" if plan.left_out or failed_for_good(execution.run) else "done"
    run = with_judgement(execution.run.model_copy(update={"status": status, "rounds_ended": reason}))
    store.save(run)
    return run


class _Execution:
    """A run that is carried out. `run` has each trial that has ended."""

    def __init__(  # noqa: PLR0913, PLR0917 - a run's parts
        self, run: Run, measure: Measure, by_turns: MeasureByTurns | None, store: Store, observer: Observer,
        whole: Plan | None,
    ) -> None:  # fmt: skip
        self.run = run
        self._measure, self._by_turns = measure, by_turns
        self._store, self._observer, self._whole = store, observer, whole

    def decide(self, rounds: int) -> None:
        """Note after a round which arms are decided, and save it: a run that goes on must not measure them again."""
        found = with_decided(self.run, rounds)
        if found.experiment.budget is not None:
            self._observer.round_judged(found, rounds)
        if found is not self.run:
            self._store.save(found)
        self.run = found

    def measure_turn(self, turn: Sequence[DueTrial], left: int) -> None:
        """Measure and save the trials of a turn. `left`: how many are left, these included."""
        folder, started, first = self._store.folder / self.run.run, utc_now(), self.run.measured
        planned = [
            planned_trial(self.run, one, first + index, self._whole, by_turns=self._by_turns is not None)
            for index, one in enumerate(turn)
        ]
        count = first + left
        try:
            self._observer.trials_started([trial for trial, _ in planned], count)
            try:
                trials = self._measured(planned, folder)
            except TrialLost as loss:
                trials = [Trial.of(planned[0][0], status="lost", reason=str(loss), started=started)]
            for trial in trials:
                self.run = self.run.with_trial(trial)
                self._store.append(self.run.run, trial)
                self._observer.trial_ended(trial)
        except (KeyboardInterrupt, IncompleteRun, OSError) as error:
            reason = str(error) or "interrupted"
            found = {trial.order: trial for trial in error.trials} if isinstance(error, TrialInterrupted) else {}
            for one, _ in planned:
                if one.order >= self.run.measured:
                    lost = Trial.of(one, status="lost", reason=reason, started=started)
                    self.run = self.run.with_trial(found.get(one.order, lost))
            self._store.save(with_judgement(self.run.model_copy(update={"status": "incomplete"})))
            raise IncompleteRun(f"{reason} in trial {first + 1} of {count}; what was done is in {folder}") from error

    def _measured(self, planned: Sequence[tuple[PlannedTrial, Workload]], folder: Path) -> Sequence[Trial]:
        first, conditions = planned[0][0], self.run.experiment.find_max
        if conditions is not None and first.search_rate is None:  # the search is over
            return [find_max.search_of(self.run, first.arm, first.round, conditions).result(first)]
        if self._by_turns is not None and len(planned) > 1:
            return self._by_turns(planned, folder, self._observer.progressed)
        return [self._measure(*planned[0], folder, self._observer.progressed)]
