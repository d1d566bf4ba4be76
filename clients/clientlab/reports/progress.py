"""The progress of a run on standard error: a live bar on a terminal, plain lines otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from clientlab import units
from clientlab.judging.capacity import why_not_held
from clientlab.printable import printable
from clientlab.reports.failures import reason_of
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Run, is_probe
from clientlab.results.figures import ranked_by, ranking_of
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.due import seconds_of


class PlainLines:
    """Prints a line after each trial."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._planned = 0
        self._search: CapacitySearch | None = None

    def run_started(self, run: Run, folder: Path) -> None:
        self._search = run.experiment.find_max
        self._console.print(_beginning(run, folder), markup=False, highlight=False, soft_wrap=True)

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:  # noqa: ARG002 - printed at their ends
        self._planned = planned

    def progressed(self, finished: int) -> None:
        """Not printed: these events are too frequent for lines."""

    def trial_ended(self, trial: Trial) -> None:
        line = _line(trial, self._planned, self._search)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def round_judged(self, run: Run, rounds: int) -> None:
        self._console.print(_decided(run, rounds), markup=False, highlight=False, soft_wrap=True)


_LONG = 60.0
"""Seconds from which on a run says how long it takes."""


class LiveBar:
    """Shows a bar over all trials and the current trial. Prints a line after each trial."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        self._console = console
        self._task: TaskID = self._progress.add_task("", total=1)
        self._what = ""
        self._planned = 0
        self._search: CapacitySearch | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def run_started(self, run: Run, folder: Path) -> None:
        self._search = run.experiment.find_max
        self._console.print(_beginning(run, folder), markup=False, highlight=False, soft_wrap=True)

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        self._planned = planned
        trial = trials[0]
        arms = trial.arm if len(trials) == 1 else f"{len(trials)} arms by turns"
        self._what = " · ".join((arms, *trial.way, f"round {trial.round}{_rate(trial)}"))
        self._progress.update(self._task, total=planned, description=self._what)

    def progressed(self, finished: int) -> None:
        self._progress.update(self._task, description=f"{self._what} · {finished:,} requests")

    def trial_ended(self, trial: Trial) -> None:
        self._progress.advance(self._task)
        self._console.print(_line(trial, self._planned, self._search), markup=False, highlight=False)

    def round_judged(self, run: Run, rounds: int) -> None:
        self._console.print(_decided(run, rounds), markup=False, highlight=False)


def _beginning(run: Run, folder: Path) -> str:
    """The question, where the run is stored, and how long it takes, if that is a minute or more.

    A run that goes on has a part of it behind it, and one with a budget ends when that does.
    """
    plan = run.experiment
    known = not run.measured and plan.budget is None and plan.time_budget is None
    seconds = seconds_of(plan) if known else 0.0
    takes = f" (takes about {units.minutes(seconds)})" if seconds >= _LONG else ""
    return f"{plan.question} -> {printable(str(folder))}{takes}"


def _decided(run: Run, rounds: int) -> str:
    """A round of a run with a budget in a line: which arms are measured further."""
    arms = [arm.name for arm in run.experiment.arms]
    left = [name for name in arms if name not in run.decided]
    if not left:
        return f"after round {rounds}: every comparison is decided"
    if not run.decided:
        return f"after round {rounds}: no arm is decided yet"
    return f"after round {rounds}: {len(run.decided)} of {len(arms)} arms are decided; open: {', '.join(left)}"


def _line(trial: Trial, planned: int, search: CapacitySearch | None) -> str:
    """A trial in a line. How many probes a search takes is not known before, so their number is about `planned`."""
    probes = search is not None and is_probe(trial)
    place = f"[{trial.order + 1}/{'about ' if probes else ''}{planned}]"
    head = f"{place} round {trial.round} {' '.join(trial.way)} {trial.arm}{_rate(trial)}: "
    if search is not None and probes and trial.status != "lost":
        why = why_not_held(trial, search)
        return f"{head}{'held' if why is None else f'not held, {why}'}"
    if trial.status != "done":
        return f"{head}{'HANGS' if trial.hangs else trial.status.upper()}, {reason_of(trial)}"
    count = sum(trial.errors.values())
    errors = f", {count:,} errors" if count else ""
    if (ranking := ranking_of([trial])) in ("cpu", "lag"):
        figure = ranked_by(ranking)
        return f"{head}{units.time(trial.wall_seconds)}, {figure.label} {figure.text(figure.of(trial))}{errors}"
    return f"{head}{units.time(trial.wall_seconds)}, {units.rate(trial.requests_per_second)} requests/s{errors}"


def _rate(trial: PlannedTrial) -> str:
    """The rate that a search for capacities chose."""
    return "" if trial.search is None else f" at {units.rate(trial.search.rate)}/s"
