"""What the charts draw: each way to an upstream with its arms, their rows, trials and looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from clientlab.analysis.distribution import Distribution, merged
from clientlab.reports.html.palette import Look, distinct, looks_of
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.runs.document import Run, Trial
from clientlab.workload import Workload

MOST_LINES = 8
"""Arms that are drawn in colour in one chart of lines; more of them are grey."""


@dataclass(frozen=True)
class Entry:
    """An arm with what it measured; `trials` are the finished ones, by round."""

    row: Row
    look: Look
    trials: list[Trial]

    @property
    def name(self) -> str:
        """What it is called among the arms of its way."""
        return self.row.strategy

    @cached_property
    def latencies(self) -> Distribution | None:
        """All successful requests of all rounds; for pictures, never for intervals."""
        stored = [trial.histogram for trial in self.trials if trial.histogram]
        return merged((histogram.encoded, histogram.unit_seconds) for histogram in stored)

    def figures(self, figure: Callable[[Trial], float | None]) -> list[float]:
        """A figure of each trial that has it, by round."""
        return [value for trial in self.trials if (value := figure(trial)) is not None]


@dataclass(frozen=True)
class Way:
    """The arms that do one workload on one way to one upstream, the fastest first."""

    group: Group
    workload: Workload
    entries: list[Entry]

    @property
    def title(self) -> str:
        return self.group.title


def ways_of(run: Run) -> list[Way]:
    """All ways of a run that have a finished trial, in the experiment's order."""
    looks = looks_of(run)
    done = [trial for trial in run.trials if trial.status == "done"]
    return [
        Way(group, run.experiment.workloads[group.workload], _entries(group, done, looks)) for group in groups_of(run)
    ]


def lined(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Those that a chart of lines draws in colour, and those that it draws in grey."""
    return list(entries[:MOST_LINES]), list(entries[MOST_LINES:])


def _entries(group: Group, done: list[Trial], looks: dict[str, Look]) -> list[Entry]:
    place = (group.workload, group.upstream, group.route)
    by_strategy: dict[str, list[Trial]] = {}
    for trial in sorted(done, key=lambda trial: trial.round):
        if (trial.workload, trial.upstream, trial.route) == place:
            by_strategy.setdefault(trial.strategy, []).append(trial)
    named = [by_strategy[row.strategy] for row in group.rows]
    styles = distinct(looks[trials[0].strategy] for trials in named)
    return [Entry(row, look, trials) for row, look, trials in zip(group.rows, styles, named, strict=True)]
