"""The progress of a run on standard error.

It is one updating line on a terminal, and plain lines otherwise.
"""

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
from clientlab.reports.contents import reason_of
from clientlab.reports.headline import load_lines
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.schedule import estimate_seconds_left, get_time_budget

_LONG = 10.0  # a run that takes at least this many seconds says so at its start


class ProgressLines:
    """Shows the progress of a run.

    On a terminal, one line is kept up to date: a bar over all trials, the time that is
    left, and what the current trial does; only trials that did not end well leave a
    line. Elsewhere, it prints a line after each trial, and the time that is left after
    the first round.
    """

    def __init__(
        self,
        console: Console,
        answer_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        whole_line = Column(
            ratio=1,
            no_wrap=True,
            overflow="ellipsis",
        )
        self._console = console
        self._answer_seconds = answer_seconds  # of a server of the user
        self._clock = clock
        self._bar = Progress(
            BarColumn(24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=whole_line,
            ),
            console=console,
            transient=True,
            expand=True,
            refresh_per_second=4,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=1)
        self._plan: Plan  # since `run_started`
        self._planned = 0
        self._ended = 0
        self._done = 0
        self._began: float | None = None
        self._last = 0.0
        self._what = ""
        self._judged = ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def run_started(self, run: Run, folder: Path) -> None:
        """Print the question, the folder, the estimated time, and what trials send."""
        self._plan = plan = run.experiment
        seconds = estimate_seconds_left(run, self._answer_seconds)
        takes = ""
        if seconds >= _LONG:
            most = "at most" if plan.budget or plan.precision else "about"
            takes = f" (takes {most} {units.minutes(seconds)})"
        self._print(f"{plan.question} -> {folder}{takes}", *load_lines(plan))

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        trial = trials[0]
        self._planned = planned
        if self._began is None:
            self._began = self._clock()
        arms = trial.arm if len(trials) == 1 else f"{len(trials)} arms in turn"
        round_ = f"round {trial.round}{_searched_rate(trial)}"
        self._what = " · ".join((arms, *trial.way, round_))
        self._describe("")

    def progressed(self, finished: int | None) -> None:
        self._describe("warming up" if finished is None else f"{finished:,} requests")

    def trial_ended(self, trial: Trial) -> None:
        self._ended += 1
        self._done = trial.planned.order + 1
        self._last = self._clock()
        self._bar.advance(self._task)
        if self._bar.disable or trial.status != "done":
            self._print(self._outcome(trial))
        is_first_round = self._ended == len(self._plan.arms)
        if self._bar.disable and is_first_round and self._ended < self._planned:
            left = self._time_left()
            if left:
                self._print(f"after {self._ended} of {self._planned} trials: {left}")

    def round_judged(self, run: Run, rounds: int) -> None:
        arms = run.experiment.arms
        left = [arm.name for arm in arms if arm.name not in run.decided]
        self._judged = f"{len(run.decided)} of {len(arms)} arms decided"
        if self._bar.disable:
            still = f"; open: {', '.join(left)}" if left and run.decided else ""
            self._print(f"after round {rounds}: {self._judged}{still}")

    def _describe(self, phase: str) -> None:
        """Update the line of a terminal."""
        parts = filter(None, (self._time_left(), self._judged, phase, self._what))
        self._bar.update(
            self._task,
            total=self._planned,
            description=" · ".join(parts),
        )

    def _time_left(self) -> str:
        """Return how long the rest takes at the pace so far, or at most.

        Empty before the end of the first round, unless there is a limit.
        """
        plan = self._plan
        if self._began is None:
            return ""
        if plan.budget or plan.precision:
            end = self._began + (plan.budget or get_time_budget(plan))
            words = "at most"
        elif self._ended < max(1, len(plan.arms)):
            return ""
        else:
            pace = (self._last - self._began) / self._ended
            end = self._last + pace * (self._planned - self._done)
            words = "about"
        return f"{words} {units.minutes(max(0.0, end - self._clock()))} left"

    def _outcome(self, trial: Trial) -> str:
        """Return a line about a trial."""
        planned = trial.planned
        search = self._plan.find_max
        is_probe = planned.search_rate is not None and trial.status != "lost"
        if search is not None and is_probe:
            why = why_not_held(trial, search)
            outcome = "held" if why is None else f"not held, {why}"
        elif trial.status != "done":
            outcome = f"{trial.status.upper()}, {reason_of(trial)}"
        elif trial.highest_rate is not None:
            outcome = f"highest rate {units.rate(trial.highest_rate.middle)} requests/s"
        else:
            seconds = units.time(trial.wall_seconds)
            rate = units.rate(trial.figures.requests_per_second)
            outcome = f"{seconds}, {rate} requests/s"
            if trial.figures.failed:
                outcome += f", {trial.figures.failed:,} errors"
        # How many trials a search takes is not known in advance.
        count = self._planned if search is None else f"about {self._planned}"
        arm = f"{' '.join(planned.way)} {planned.arm}{_searched_rate(planned)}"
        place = f"[{planned.order + 1}/{count}] round {planned.round}"
        return f"{place} {arm}: {outcome}"

    def _print(self, *lines: str) -> None:
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _searched_rate(trial: PlannedTrial) -> str:
    return "" if trial.search_rate is None else f" at {units.rate(trial.search_rate)}/s"
