"""The service's runs: one at a time, in a thread of its own, by the same `execute` as everywhere."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from clientlab import __version__
from clientlab.errors import LabError
from clientlab.experiments.checks import check_served
from clientlab.judging.judgement import with_judgement
from clientlab.printable import printable
from clientlab.reports.failures import reason_of
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, surroundings
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.due import due_trials
from clientlab.running.execute import Progressed, execute, new_run, run_name
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.given_trial import reported_trial
from clientlab.service.schemas import State
from clientlab.testbeds.compose import check_link, check_plain
from clientlab.workload.workload import Workload

MARK = "served"
"""A file in a run's folder: the service began it, and goes on with it after a restart.

It holds the experiment that the service was started for, which need not be the run's own.
"""

_STACK = Target(testbed="compose")
_LOOK_SECONDS = 0.5
_MOMENT = 0.01


class _Stopped(Exception):
    """The service ends; its run stays unfinished, and goes on when it is started again."""


class RunManager:
    """Starts runs, goes on with one, and tells how far it is.

    `say` takes lines for the log; `experiment`: the one that the service was started for, if any.
    """

    def __init__(
        self, store: Store, dispatcher: Dispatcher, programs: dict[str, str], say: Callable[[str], None],
        experiment: str = "",
    ) -> None:  # fmt: skip
        self._store = store
        self._dispatcher = dispatcher
        self._programs = programs
        self._experiment = experiment
        self._say_line = say
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        self._run: Run | None = None
        self._trial: PlannedTrial | None = None
        self._finished = 0
        self._message = ""
        self._planned = 0
        self._ending = threading.Event()

    def start(self, plan: Plan) -> str:
        """Begin a run of a checked plan and return the run's name. Raises LabError."""
        if self.measuring:
            raise LabError(f"run {self._run.run if self._run else ''} is in progress; wait for its end")
        check_served(plan)
        check_plain(arm.upstream for arm in plan.arms)
        check_link(os.environ, plan.links)
        if plan.unavailable_arms:
            self.say(f"left out: {plan.unavailable_among(plan.unavailable_arms)}")
        measured = distributions_of(arm.strategy for arm in plan.arms)
        run = new_run(run_name(plan), plan, _STACK, surroundings(measured, self._programs))
        (self._store.claim(run.run) / MARK).write_text(self._experiment, encoding="utf-8")
        self._store.save(run)
        self._carry(run, plan)
        return run.run

    def resume(self, first: Plan | None = None) -> str | None:
        """Go on with the run that the service had begun last, if it is not finished; None where there is none.

        `first`: the plan with which the service was started. It has values that the run's file does not hold.
        """
        served = [name for name in self._store.names() if (self._store.folder / name / MARK).is_file()]
        try:
            run = self._store.read(served[-1]) if served else None
        except LabError as error:
            self.say(str(error))
            return None
        if run is None or run.status != "running":
            return None
        plan = _whole_plan(run, first)
        if why := _not_to_go_on(run, plan):
            self.say(f"{run.run} is left as it is: {why}")
            return None
        if not self._is_wanted(run):
            self._store.save(with_judgement(run.model_copy(update={"status": "incomplete"})))
            self.say(f"{run.run} is left incomplete with {len(run.trials)} trials: {self._experiment!r} is started now")
            return None
        self._dispatcher.await_abandoned_trials()
        self.say(f"going on with {run.run} at trial {len(run.trials) + 1} of {_planned(run)}")
        self._carry(run, plan)
        return run.run

    def _is_wanted(self, run: Run) -> bool:
        """Whether an unfinished run is what the service was started for, this time as the last."""
        mark = (self._store.folder / run.run / MARK).read_text(encoding="utf-8")
        return not self._experiment or self._experiment in (mark, run.experiment.name)

    async def shut_down(self) -> None:
        """Leave the run as it is saved, and wait for its thread."""
        self._ending.set()
        while self.measuring:
            self._dispatcher.end(_Stopped())
            await asyncio.sleep(_MOMENT)

    @property
    def measuring(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def run(self) -> Run | None:
        """The run in progress, or the last one, as it was saved last."""
        return self._run

    def state(self) -> State:
        """How far it is."""
        run, trial = self._run, self._trial if self.measuring else None
        failed = 0 if run is None else sum(trial.status != "done" for trial in run.trials)
        return State(
            run=None if run is None else run.run,
            experiment=None if run is None else run.experiment.name,
            measuring=self.measuring,
            planned=self._planned,
            done=0 if run is None else len(run.trials) - failed,
            failed=failed,
            trial=None if trial is None else " · ".join((trial.arm, *trial.way, f"round {trial.round}")),
            finished=self._finished,
            message=self._message,
            workers=self._dispatcher.workers(),
        )

    def say(self, line: str) -> None:
        """Say a line, in the log and in the lab's state. Texts of the system may hold any character."""
        self._message = printable(line)
        self._say_line(self._message)

    # What `execute` tells, in the run's thread.

    def run_started(self, run: Run, folder: Path) -> None:
        self._run = run
        self.say(f"run {run.run} -> {folder}")

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        self._trial, self._planned, self._finished = trials[0], planned, 0

    def progressed(self, finished: int | None) -> None:
        self._finished = finished or 0

    def trial_ended(self, trial: Trial) -> None:
        if self._run is not None:
            self._run = self._run.model_copy(update={"trials": [*self._run.trials, trial]})
        how = f"{trial.requests:,} requests" if trial.status == "done" else f"{trial.status}: {reason_of(trial)}"
        self.say(f"trial {trial.order + 1}, {', '.join((trial.arm, *trial.way))}, round {trial.round}: {how}")

    def round_judged(self, run: Run, rounds: int) -> None:
        self.say(f"after round {rounds}, {len(run.decided)} of {len(run.experiment.arms)} arms are decided")

    def _carry(self, run: Run, plan: Plan) -> None:
        self._run, self._trial, self._planned = run, None, _planned(run)
        self._thread = threading.Thread(target=self._carry_out, args=(run, plan), name="run", daemon=True)
        self._thread.start()

    def _carry_out(self, run: Run, plan: Plan) -> None:
        """Measure a run. `plan`: its plan, with the values that its file does not hold."""
        try:
            with self._store.alone(self._wait), self._store.hold(run.run):
                self._run = execute(run, self._measure, self._store, self, whole=plan)
            self.say(f"run {run.run} is {self._run.status}")
        except _Stopped:
            return
        except LabError as error:
            self._break_off(run.run, str(error))
        except Exception as error:
            self._break_off(run.run, f"run {run.run} broke off: {type(error).__name__}: {error}")
            raise  # the log has the rest

    def _break_off(self, name: str, reason: str) -> None:
        """The run can't go on; its file says so, if it can be written."""
        self.say(reason)
        try:
            self._run = self._store.read(name)
            if self._run.status == "running":
                self._run = with_judgement(self._run.model_copy(update={"status": "incomplete"}))
                self._store.save(self._run)
        except LabError as error:
            self.say(f"{reason}; {error}")

    def _wait(self) -> None:
        """Another process measures with the same upstreams, as `clientlab run` in the lab's container does."""
        line = "another run is being measured; this one begins after it"
        if self._message != line:
            self.say(line)
        if self._ending.wait(_LOOK_SECONDS):
            raise _Stopped

    def _measure(
        self,
        planned: PlannedTrial,
        workload: Workload,
        folder: Path,  # noqa: ARG002 - the worker has a folder of its own
        progressed: Progressed,
    ) -> Trial:
        if self._run is None:
            raise AssertionError("trials are of a run")
        given = self._dispatcher.give(self._run.run, self._run.experiment.name, planned, workload, progressed)
        found = asyncio.run_coroutine_threadsafe(given, self._loop).result()
        return found if isinstance(found, Trial) else reported_trial(planned, workload, found)


def _planned(run: Run) -> int:
    """Trials in all: those of the run, and those that are due."""
    return len(run.trials) + len(due_trials(run).trials)


def _whole_plan(run: Run, first: Plan | None) -> Plan:
    """The plan of the run, with the values that its file does not hold where `first` does the same workloads."""
    if first is None or first.masked().workloads != run.experiment.workloads:
        return run.experiment
    return run.experiment.model_copy(update={"workloads": first.workloads})


def _not_to_go_on(run: Run, plan: Plan) -> str | None:
    """Why the service must not go on with its unfinished run; None where it may."""
    if plan.masked_headers:
        return "its file does not hold all its headers"
    if run.clientlab != __version__:
        return f"it was begun by clientlab {run.clientlab}"
    try:
        check_link(os.environ, plan.links)
    except LabError as error:
        return str(error)
    return None
