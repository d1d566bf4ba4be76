"""The progress of a run on standard error: one updating line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from clientlab import strategies, units
from clientlab.judging.find_max import why_not_held
from clientlab.printable import printable
from clientlab.reports.failures import reason_of
from clientlab.reports.headline import load_lines
from clientlab.results.conditions import Conditions
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.due import seconds_left, time_budget_of
from clientlab.workload.load import is_warm

_LONG = 10.0
"""Seconds from which on a run says how long it takes, and how long the rest takes."""

_SILENT = 5.0
"""Seconds of a warm-up after which plain lines mention it."""


class _Watched:
    """What an observer knows of a run, and what follows about the time that is left."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._plan: Plan | None = None
        self._planned = 0
        self._began: float | None = None
        self._last = 0.0
        self._ended = self._done = 0

    def run_started(self, run: Run, folder: Path) -> None:
        self._plan = run.experiment
        self._print(*_beginning(run, folder))

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:  # noqa: ARG002 - an observer's
        self._planned = planned
        self._began = self._clock() if self._began is None else self._began

    def trial_ended(self, trial: Trial) -> None:
        self._ended += 1
        self._done, self._last = trial.order + 1, self._clock()

    def _seconds_left(self) -> float | None:
        """Return the seconds that the rest takes at the pace so far; None before the end of the first round."""
        if self._plan is None or self._began is None or self._ended < max(1, len(self._plan.arms)):
            return None
        rest = (self._last - self._began) / self._ended * (self._planned - self._done)
        return max(0.0, rest - (self._clock() - self._last))

    def _left(self) -> str:
        """Return how long the rest takes; at most, if a budget or a precision decides how many rounds there are."""
        left, plan = self._seconds_left(), self._plan
        if plan is not None and self._began is not None and (plan.budget or plan.precision):
            most = (plan.budget or time_budget_of(plan)) - (self._clock() - self._began)
            return f"at most {units.minutes(max(most, 0.0 if plan.budget else left or 0.0))} left"
        return "" if left is None else f"about {units.minutes(left)} left"

    def _warm_up(self, trials: Sequence[PlannedTrial]) -> str:
        """Return what the trials do before their measured part. Over HTTP/2, requests share a connection."""
        if self._plan is None or not all(is_warm(self._plan.workloads[one.workload]) for one in trials):
            return "warming up"
        if any(strategies.client_spec(strategies.find(one.strategy).client).http == "2" for one in trials):
            return "warming up"
        count = sum(one.concurrency for one in trials)
        return f"warming up {count:,} connection{'' if count == 1 else 's'}"

    def _line(self, trial: Trial) -> str:
        return _line(trial, self._planned, None if self._plan is None else self._plan.find_max)

    def _print(self, *lines: str) -> None:
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class PlainLines(_Watched):
    """Prints a line after each trial, about a slow warm-up, and about the time that is left after the first round."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._untold: str | None = None
        self._since = 0.0

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        super().trials_started(trials, planned)
        self._untold, self._since = f"[{trials[0].order + 1}/{planned}] {self._warm_up(trials)}", self._clock()

    def progressed(self, finished: int | None) -> None:
        spent = self._clock() - self._since
        if finished is None and self._untold is not None and spent >= _SILENT:
            self._print(f"{self._untold} for {units.minutes(spent)} so far")
            self._untold = None

    def trial_ended(self, trial: Trial) -> None:
        super().trial_ended(trial)
        self._print(self._line(trial))
        plan = self._plan
        if plan is None or plan.budget or plan.precision or plan.find_max or self._ended != len(plan.arms):
            return
        if (self._seconds_left() or 0.0) >= _LONG:
            self._print(f"after {self._ended} of {self._planned} trials: {self._left()}")

    def round_judged(self, run: Run, rounds: int) -> None:
        self._print(_decided(run, rounds))


class LiveBar(_Watched):
    """Keeps one line up to date: a bar over all trials, the time that is left, and what the current trial does.

    Only trials that did not end well leave a line of their own.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._progress = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
            ),
            console=console,
            transient=True,
            expand=True,
            refresh_per_second=4,
        )
        self._task: TaskID = self._progress.add_task("", total=1)
        self._what = self._warms_up = self._judged = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        super().trials_started(trials, planned)
        trial = trials[0]
        arms = trial.arm if len(trials) == 1 else f"{len(trials)} arms by turns"
        self._what = " · ".join((arms, *trial.way, f"round {trial.round}{_rate(trial)}"))
        self._warms_up = self._warm_up(trials)
        self._progress.update(self._task, total=planned)
        self._describe("")

    def progressed(self, finished: int | None) -> None:
        self._describe(self._warms_up if finished is None else f"{finished:,} requests")

    def trial_ended(self, trial: Trial) -> None:
        super().trial_ended(trial)
        self._progress.advance(self._task)
        if trial.status != "done":
            self._print(self._line(trial))

    def round_judged(self, run: Run, rounds: int) -> None:  # noqa: ARG002 - an observer's
        self._judged = f"{len(run.decided)} of {len(run.experiment.arms)} arms decided"

    def _describe(self, phase: str) -> None:
        parts = filter(None, (self._left(), self._judged, phase, self._what))
        self._progress.update(self._task, description=" · ".join(parts))


def _beginning(run: Run, folder: Path) -> list[str]:
    """Return the question with the run's folder and its estimated time, and what each trial sends."""
    plan = run.experiment
    seconds, most = seconds_left(run), "at most" if plan.budget or plan.precision else "about"
    takes = f" (takes {most} {units.minutes(seconds)})" if seconds >= _LONG else ""
    return [f"{plan.question} -> {printable(str(folder))}{takes}", *map(printable, load_lines(plan))]


def _decided(run: Run, rounds: int) -> str:
    """A round of a run with a budget in a line: which arms are measured further."""
    arms = [arm.name for arm in run.experiment.arms]
    left = [name for name in arms if name not in run.decided]
    if not left:
        return f"after round {rounds}: every comparison is decided"
    if not run.decided:
        return f"after round {rounds}: no arm is decided yet"
    return f"after round {rounds}: {len(run.decided)} of {len(arms)} arms are decided; open: {', '.join(left)}"


def _line(trial: Trial, planned: int, conditions: Conditions | None) -> str:
    """A trial in a line. How many trials a search takes is not known before, so `planned` is an estimate then."""
    place = f"[{trial.order + 1}/{'' if conditions is None else 'about '}{planned}]"
    head = f"{place} round {trial.round} {' '.join(trial.way)} {trial.arm}{_rate(trial)}: "
    if conditions is not None and trial.search_rate is not None and trial.status != "lost":
        why = why_not_held(trial, conditions)
        return f"{head}{'held' if why is None else f'not held, {why}'}"
    if trial.status != "done":
        return f"{head}{trial.status.upper()}, {reason_of(trial)}"
    if trial.highest_rate is not None:
        return f"{head}highest rate {units.rate(trial.highest_rate.middle)} requests/s"
    count = sum(trial.errors.values())
    errors = f", {count:,} errors" if count else ""
    return f"{head}{units.time(trial.wall_seconds)}, {units.rate(trial.requests_per_second)} requests/s{errors}"


def _rate(trial: PlannedTrial) -> str:
    """The rate that a search chose."""
    return "" if trial.search_rate is None else f" at {units.rate(trial.search_rate)}/s"
