"""Carrying out a run: its trials, one after the other, each saved when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from clientlab import __version__
from clientlab.errors import IncompleteRun
from clientlab.judging import find_max
from clientlab.judging.comparison import compare_surroundings
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import (
    Resumption,
    RoundsEnded,
    Run,
    Surroundings,
    failed_for_good,
)
from clientlab.results.plan import Plan, Target
from clientlab.results.store import Store
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.schedule import (
    count_rounds,
    decide_arms,
    find_due,
    find_end,
    plan_turn,
)
from clientlab.workload.workload import Workload


class TrialLost(Exception):
    """The trial's worker vanished, so its result is unknown.

    The text names the worker and the reason.
    """


class TrialInterrupted(KeyboardInterrupt):
    """Ctrl-C or a similar signal.

    `trials` are lost; they hold the requests that had finished.
    """

    def __init__(self, *trials: Trial) -> None:
        super().__init__(trials[0].reason)
        self.trials = trials


Progressed = Callable[[int | None], None]
"""Takes how many measured requests of a trial have finished so far, or None while it
warms up.
"""

Measure = Callable[[PlannedTrial, Workload, Path, Progressed], Trial]
"""Measures a trial in the folder of its run, and calls `Progressed` twice a second.

A failed trial is returned as such.

Raises TrialLost, and IncompleteRun or OSError if the run cannot go on.
"""

MeasureByTurns = Callable[
    [Sequence[tuple[PlannedTrial, Workload]], Path, Progressed], Sequence[Trial]
]
"""Measures trials side by side, slice by slice, and returns them in the same order.

Otherwise like `Measure`.
"""


class Observer(Protocol):
    """Shows what happens. It decides nothing."""

    def run_started(self, run: Run, folder: Path) -> None: ...
    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None: ...
    def progressed(self, finished: int | None) -> None: ...
    def trial_ended(self, trial: Trial) -> None: ...
    def round_judged(self, run: Run, rounds: int) -> None: ...


def name_run(plan: Plan) -> str:
    """Return a name for a run that begins now. Names sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{plan.name}-{token_hex(2)}"


def create_run(
    name: str, plan: Plan, target: Target, surroundings: Surroundings
) -> Run:
    """Return a run of the plan, without trials. No file of it holds credentials."""
    return Run(
        run=name,
        clientlab=__version__,
        created=utc_now(),
        status="running",
        experiment=plan.masked(),
        target=target.masked(),
        surroundings=surroundings,
    )


def resume_run(run: Run, surroundings: Surroundings) -> Run:
    """Return a run that had stopped, ready to go on in these surroundings."""
    now = run.updated(surroundings=surroundings, clientlab=__version__)
    differences = [
        f"{difference.part}: {difference.before or '–'} → {difference.after or '–'}"
        for difference in compare_surroundings(run, now)
    ]
    entry = Resumption(at=utc_now(), trials=run.measured, differences=differences)
    return run.updated(
        status="running", rounds_ended=None, resumed=[*run.resumed, entry]
    )


def execute(
    run: Run,
    measure: Measure,
    store: Store,
    observer: Observer,
    by_turns: MeasureByTurns | None = None,
) -> Run:
    """Measure all trials that a run plans, round by round, and return the finished run.

    Each trial is saved when it ends. A run that has trials already goes on after them.
    The caller holds the run (see `Store.hold`). `by_turns`: measures trials that are
    compared with each other side by side; without it, each trial is measured on its
    own.

    Raise IncompleteRun if the run is interrupted or cannot be saved. The trials that
    had ended are saved.
    """
    # A resumed run had been judged by fewer trials.
    run = run.updated(claims=[], cautions=[])
    store.save(run)
    execution = _Execution(run, measure, store, observer, by_turns)
    observer.run_started(run, execution.folder)
    try:
        ended_by = execution.measure_rounds()
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        raise execution.stop(error) from error
    return execution.finish(ended_by)


@dataclass
class _Execution:
    """A run that is being measured (see `execute`)."""

    run: Run
    measure: Measure
    store: Store
    observer: Observer
    by_turns: MeasureByTurns | None
    turn: list[tuple[PlannedTrial, Workload]] = field(default_factory=list)
    turn_began: str = ""
    planned_trials: int = 0

    @property
    def folder(self) -> Path:
        return self.store.folder / self.run.run

    def measure_rounds(self) -> RoundsEnded:
        """Return why there are no further rounds."""
        plan = self.run.experiment
        rounds = count_rounds(self.run)
        began = time.monotonic()
        round_began = began
        while True:
            while due := find_due(self.run, rounds):
                self._measure_due(due)
            now = time.monotonic()
            arms = max(1, len(plan.arms) - len(self.run.decided))
            self._decide(rounds)
            trial_seconds = (now - round_began) / arms
            ended_by = find_end(self.run, rounds, now - began, trial_seconds)
            if ended_by is not None:
                return ended_by
            rounds += 1
            round_began = now

    def _measure_due(self, due: Sequence[tuple[int, str]]) -> None:
        """Measure the first of the trials that are due, and those beside it."""
        run = self.run
        number, arm = due[0]
        conditions = run.experiment.find_max
        search: find_max.Search | None = None
        rate = None
        usual = 0
        if conditions is not None:
            search = find_max.search_of(run, arm, number, conditions)
            rate = search.next_rate
            usual = len(due) * find_max.USUAL_TRIALS - len(search.probes)
        side_by_side = self.by_turns is not None
        self.turn = plan_turn(run, due, rate, by_turns=side_by_side)
        self.turn_began = utc_now()
        self.planned_trials = run.measured + max(len(due), usual)
        planned = [trial for trial, _ in self.turn]
        self.observer.trials_started(planned, self.planned_trials)
        if search is not None and rate is None:  # the search is over
            trials: Sequence[Trial] = [search.result(planned[0])]
        else:
            trials = self._measure_turn()
        for trial in trials:
            self.run = self.run.with_trial(trial)
            self.store.append(run.run, trial)
            self.observer.trial_ended(trial)

    def _measure_turn(self) -> Sequence[Trial]:
        progressed = self.observer.progressed
        try:
            if self.by_turns is not None and len(self.turn) > 1:
                return self.by_turns(self.turn, self.folder, progressed)
            return [self.measure(*self.turn[0], self.folder, progressed)]
        except TrialLost as loss:
            return [self._lose(self.turn[0][0], str(loss))]

    def _lose(self, planned: PlannedTrial, reason: str) -> Trial:
        return Trial(
            planned=planned, status="lost", reason=reason, started=self.turn_began
        )

    def _decide(self, rounds: int) -> None:
        """Leave out the arms that are decided."""
        decided = decide_arms(self.run, rounds)
        if self.run.experiment.budget is not None:
            self.observer.round_judged(decided, rounds)
        if decided is not self.run:
            # A run that goes on must not measure these arms again.
            self.store.save(decided)
        self.run = decided

    def stop(self, error: BaseException) -> IncompleteRun:
        """Save what there is, and return what to raise."""
        reason = str(error) or "interrupted"
        lost = {
            trial.order: self._lose(trial, reason)
            for trial, _ in self.turn
            if trial.order >= self.run.measured
        }
        if isinstance(error, TrialInterrupted):
            lost |= {trial.planned.order: trial for trial in error.trials}
        for trial in lost.values():
            self.run = self.run.with_trial(trial)
        self.run = self.run.updated(status="incomplete")
        self.store.save(with_judgement(self.run))
        where = "between two trials"
        if lost:
            where = f"in trial {min(lost) + 1} of {self.planned_trials}"
        return IncompleteRun(f"{reason} {where}; what was done is in {self.folder}")

    def finish(self, ended_by: RoundsEnded) -> Run:
        """Judge, save and return the run."""
        run = self.run
        is_whole = not run.experiment.left_out and not failed_for_good(run)
        status = "done" if is_whole else "incomplete"
        run = with_judgement(run.updated(status=status, rounds_ended=ended_by))
        self.store.save(run)
        return run
