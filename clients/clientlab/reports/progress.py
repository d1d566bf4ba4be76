"""The progress of a run on standard error: one updating line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from clientlab import units
from clientlab.judging.find_max import why_not_held
from clientlab.reports.figure_tables import reason_of
from clientlab.reports.headline import load_lines
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.due import seconds_left, time_budget_of

_LONG = 10.0
"""Seconds from which on a run says how long it takes."""


class PlainLines:
    """Prints a line after each trial, and the time that is left after the first round."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._plan: Plan | None = None
        self._planned = self._ended = self._done = 0
        self._began: float | None = None
        self._last = 0.0

    def run_started(self, run: Run, folder: Path) -> None:
        """Print the question with the run's folder and its estimated time, and what each trial sends."""
        self._plan = plan = run.experiment
        seconds, most = seconds_left(run), "at most" if plan.budget or plan.precision else "about"
        takes = f" (takes {most} {units.minutes(seconds)})" if seconds >= _LONG else ""
        self._print(f"{plan.question} -> {folder}{takes}", *load_lines(plan))

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:  # noqa: ARG002 - an observer's
        self._planned = planned
        self._began = self._clock() if self._began is None else self._began

    def progressed(self, finished: int | None) -> None:
        """Print nothing."""

    def trial_ended(self, trial: Trial) -> None:
        self._ended += 1
        self._done, self._last = trial.order + 1, self._clock()
        self._show_end(trial)

    def _show_end(self, trial: Trial) -> None:
        self._print_trial(trial)
        if self._plan is not None and self._ended == len(self._plan.arms) and (left := self._left()):
            self._print(f"after {self._ended} of {self._planned} trials: {left}")

    def round_judged(self, run: Run, rounds: int) -> None:
        arms = [arm.name for arm in run.experiment.arms]
        left = [name for name in arms if name not in run.decided]
        still = f"; open: {', '.join(left)}" if left and run.decided else ""
        self._print(f"after round {rounds}: {len(run.decided)} of {len(arms)} arms are decided{still}")

    def _left(self) -> str:
        """Return how long the rest takes: at the pace so far after the first round, or at most if there is a limit."""
        plan, now = self._plan, self._clock()
        if plan is None or self._began is None:
            return ""
        if plan.budget or plan.precision:
            limit = plan.budget or time_budget_of(plan)
            return f"at most {units.minutes(max(0.0, self._began + limit - now))} left"
        if self._ended < max(1, len(plan.arms)):
            return ""
        rest = (self._last - self._began) / self._ended * (self._planned - self._done)
        return f"about {units.minutes(max(0.0, self._last + rest - now))} left"

    def _print_trial(self, trial: Trial) -> None:
        """Print a trial in a line. How many trials a search takes is not known before."""
        search = None if self._plan is None else self._plan.find_max
        count = sum(trial.errors.values())
        if search is not None and trial.search_rate is not None and trial.status != "lost":
            why = why_not_held(trial, search)
            outcome = "held" if why is None else f"not held, {why}"
        elif trial.status != "done":
            outcome = f"{trial.status.upper()}, {reason_of(trial)}"
        elif trial.highest_rate is not None:
            outcome = f"highest rate {units.rate(trial.highest_rate.middle)} requests/s"
        else:
            outcome = f"{units.time(trial.wall_seconds)}, {units.rate(trial.requests_per_second)} requests/s"
            outcome += f", {count:,} errors" if count else ""
        place = f"{trial.order + 1}/{'' if search is None else 'about '}{self._planned}"
        self._print(f"[{place}] round {trial.round} {' '.join(trial.way)} {trial.arm}{_rate(trial)}: {outcome}")

    def _print(self, *lines: str) -> None:
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveBar(PlainLines):
    """Keeps one line up to date: a bar over all trials, the time that is left, and what the current trial does.

    Only trials that did not end well leave a line of their own.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        whole_line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns = (
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False, table_column=whole_line),
        )
        self._progress = Progress(*columns, console=console, transient=True, expand=True, refresh_per_second=4)
        self._task = self._progress.add_task("", total=1)
        self._what = self._judged = ""

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
        self._progress.update(self._task, total=planned)
        self._describe("")

    def progressed(self, finished: int | None) -> None:
        self._describe("warming up" if finished is None else f"{finished:,} requests")

    def _show_end(self, trial: Trial) -> None:
        self._progress.advance(self._task)
        if trial.status != "done":
            self._print_trial(trial)

    def round_judged(self, run: Run, rounds: int) -> None:  # noqa: ARG002 - an observer's
        self._judged = f"{len(run.decided)} of {len(run.experiment.arms)} arms decided"

    def _describe(self, phase: str) -> None:
        parts = filter(None, (self._left(), self._judged, phase, self._what))
        self._progress.update(self._task, description=" · ".join(parts))


def _rate(trial: PlannedTrial) -> str:
    """Return the rate that a search chose."""
    return "" if trial.search_rate is None else f" at {units.rate(trial.search_rate)}/s"
