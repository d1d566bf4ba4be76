"""Carrying out a run: its trials, one after the other, each saved when it ends."""

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
from clientlab.judging.comparison import compare_surroundings
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Resumption, Run, Surroundings, failed_for_good
from clientlab.results.plan import Plan, Target
from clientlab.results.store import Store
from clientlab.running.schedule import (
    count_rounds,
    decide_arms,
    find_due,
    find_end,
    plan_turn,
)
from clientlab.trial.result import PlannedTrial, Trial, utc_now
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
    """Return a run of the plan, without trials and without the plan's credentials."""
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
    now = run.model_copy(
        update={"surroundings": surroundings, "clientlab": __version__}
    )
    found = [
        f"{one.part}: {one.before or '–'} → {one.after or '–'}"
        for one in compare_surroundings(run, now)
    ]
    entry = Resumption(at=utc_now(), trials=run.measured, differences=found)
    return run.model_copy(
        update={
            "status": "running",
            "rounds_ended": None,
            "resumed": [*run.resumed, entry],
        }
    )


def execute(  # noqa: PLR0913 - two arguments are optional
    run: Run,
    measure: Measure,
    store: Store,
    observer: Observer,
    *,
    whole: Plan | None = None,
    by_turns: MeasureByTurns | None = None,
) -> Run:
    """Measure all trials that `run.experiment` plans, round by round, and return the
    finished run.

    Each trial is saved when it ends. A run that has trials already goes on after them.
    The caller holds the run (see `Store.hold`). `whole`: the plan with the credentials
    that the run does not hold. `by_turns`: measures trials that are compared with each
    other side by side; without it, each trial is measured on its own.

    Raise IncompleteRun if the run is interrupted or cannot be saved. The trials that
    had ended are saved.
    """
    plan, folder = run.experiment, store.folder / run.run
    run = run.model_copy(
        update={"claims": [], "cautions": []}
    )  # a resumed run had been judged by fewer trials
    store.save(run)
    observer.run_started(run, folder)
    rounds, ended_by = count_rounds(run), None
    planned, count, started = list[tuple[PlannedTrial, Workload]](), 0, ""
    began = round_began = time.monotonic()
    try:
        while ended_by is None:
            if due := find_due(run, rounds):
                number, arm = due[0]
                search = (
                    find_max.search_of(run, arm, number, plan.find_max)
                    if plan.find_max
                    else None
                )
                rate = search.next_rate if search else None
                planned, started = (
                    plan_turn(run, due, whole, rate, by_turns=by_turns is not None),
                    utc_now(),
                )
                usual = (
                    len(due) * find_max.USUAL_TRIALS - len(search.probes)
                    if search
                    else 0
                )
                count = run.measured + max(len(due), usual)
                observer.trials_started([trial for trial, _ in planned], count)
                if search and rate is None:  # the search is over
                    trials: Sequence[Trial] = [search.result(planned[0][0])]
                else:
                    trials = _measure_turn(
                        planned, measure, by_turns, folder, observer.progressed
                    )
                for trial in trials:
                    run = run.with_trial(trial)
                    store.append(run.run, trial)
                    observer.trial_ended(trial)
                continue
            now, arms = time.monotonic(), max(1, len(plan.arms) - len(run.decided))
            decided = decide_arms(run, rounds)
            if plan.budget is not None:
                observer.round_judged(decided, rounds)
            if (
                decided is not run
            ):  # a run that goes on must not measure these arms again
                store.save(decided)
            run, ended_by = (
                decided,
                find_end(decided, rounds, now - began, (now - round_began) / arms),
            )
            rounds, round_began = rounds + 1, now
    except (KeyboardInterrupt, IncompleteRun, OSError) as error:
        reason = str(error) or "interrupted"
        unfinished = [trial for trial, _ in planned if trial.order >= run.measured]
        lost = {
            one.order: Trial(planned=one, status="lost", reason=reason, started=started)
            for one in unfinished
        }
        if isinstance(error, TrialInterrupted):
            lost |= {trial.planned.order: trial for trial in error.trials}
        for trial in lost.values():
            run = run.with_trial(trial)
        store.save(with_judgement(run.model_copy(update={"status": "incomplete"})))
        where = f"in trial {min(lost) + 1} of {count}" if lost else "between two trials"
        raise IncompleteRun(
            f"{reason} {where}; what was done is in {folder}"
        ) from error
    status = "incomplete" if plan.left_out or failed_for_good(run) else "done"
    run = with_judgement(
        run.model_copy(update={"status": status, "rounds_ended": ended_by})
    )
    store.save(run)
    return run


def _measure_turn(
    planned: Sequence[tuple[PlannedTrial, Workload]],
    measure: Measure,
    by_turns: MeasureByTurns | None,
    folder: Path,
    progressed: Progressed,
) -> Sequence[Trial]:
    started = utc_now()
    try:
        if by_turns is not None and len(planned) > 1:
            return by_turns(planned, folder, progressed)
        return [measure(*planned[0], folder, progressed)]
    except TrialLost as loss:
        return [
            Trial(
                planned=planned[0][0], status="lost", reason=str(loss), started=started
            )
        ]
