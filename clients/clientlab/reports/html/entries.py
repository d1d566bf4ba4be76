"""What the charts draw: each way to an upstream with its arms, their rows, trials and looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from clientlab.analysis.distribution import Distribution, merged
from clientlab.reports.html.palette import Look, distinct, looks_of
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.runs.document import Run, Trial

MOST_LINES = 8
"""Arms that are drawn in colour in one chart of lines; more of them are grey."""


@dataclass(frozen=True)
class Entry:
    """An arm with what it measured."""

    row: Row
    look: Look

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The finished ones, by round."""
        return self.row.trials

    @property
    def name(self) -> str:
        """What it is called among the arms of its way."""
        return self.row.name

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
    entries: list[Entry]
    delay: str | None  # asked of the upstream

    @property
    def title(self) -> str:
        return self.group.title


def ways_of(run: Run) -> list[Way]:
    """All ways of a run that have a finished trial, in the experiment's order."""
    looks = looks_of(run)
    return [Way(group, _entries(group, looks), _delay(run, group)) for group in groups_of(run)]


def lined(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Those that a chart of lines draws in colour, and those that it draws in grey."""
    return list(entries[:MOST_LINES]), list(entries[MOST_LINES:])


def _entries(group: Group, looks: dict[str, Look]) -> list[Entry]:
    styles = distinct(looks[row.trials[0].strategy] for row in group.rows)
    return [Entry(row, look) for row, look in zip(group.rows, styles, strict=True)]


def _delay(run: Run, group: Group) -> str | None:
    workloads = {trial.workload for row in group.rows for trial in row.trials}
    delays = [delay for name in workloads if (delay := run.experiment.workloads[name].delay) is not None]
    return " or ".join(sorted(set(delays))) or None
