"""The data that the page's charts draw: groups of arms with their trials, looks and latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from clientlab.analysis.histogram import Distribution, merged
from clientlab.analysis.latencies import Latencies, latencies_of
from clientlab.reports.charts.palette import Look, distinct, looks_of
from clientlab.reports.rows import WAITS, Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.trial import Histogram, Trial

MOST_LINES = 8
"""Arms that are drawn in colour in one chart of lines. Further arms are grey."""


@dataclass(frozen=True)
class ChartArm:
    """An arm with its look. `name`: within its group, with its concurrency where arms of the group differ in it."""

    name: str
    row: Row
    look: Look

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The finished trials, by round."""
        return self.row.trials

    @cached_property
    def latencies(self) -> Latencies | None:
        """Requests of all rounds together: for charts, never for intervals. None without a histogram of a success."""
        stored = [trial for trial in self.trials if trial.histogram]
        answered = _merged(trial.histogram for trial in stored)
        if answered is None:
            return None
        failed = _merged(trial.failed_histogram for trial in stored)
        failures = sum(sum(trial.errors.values()) for trial in stored)
        return latencies_of(answered, [failed] if failed else [], failures)


def notes_of_waits(arms: Iterable[ChartArm]) -> list[str]:
    """What the mark of latencies means, where an arm has it."""
    return [f"{WAITS} holds the wait for a free connection."] if any(arm.row.waits for arm in arms) else []


@dataclass(frozen=True)
class ChartGroup(Group):
    """The arms of a group with their looks, the fastest first. `delay`: the requested delays of the upstream."""

    arms: list[ChartArm] = field(default_factory=list)
    delay: str | None = None


def chart_groups(run: Run) -> list[ChartGroup]:
    """All groups of a run that have a finished trial, in the experiment's order."""
    looks = looks_of(run)
    return [ChartGroup(**vars(group), arms=_arms(group, looks), delay=_delay(run, group)) for group in groups_of(run)]


def coloured_and_grey(arms: Sequence[ChartArm]) -> tuple[list[ChartArm], list[ChartArm]]:
    """The arms that a chart of lines draws in colour, and those that it draws in grey."""
    return list(arms[:MOST_LINES]), list(arms[MOST_LINES:])


def _merged(histograms: Iterable[Histogram | None]) -> Distribution | None:
    return merged((one.encoded, one.unit_seconds) for one in histograms if one is not None)


def _arms(group: Group, looks: dict[str, Look]) -> list[ChartArm]:
    styles = distinct(looks[row.trials[0].strategy] for row in group.rows)
    return [ChartArm(group.name_of(row), row, look) for row, look in zip(group.rows, styles, strict=True)]


def _delay(run: Run, group: Group) -> str | None:
    workloads = {trial.workload for row in group.rows for trial in row.trials}
    delays = [delay for name in workloads if (delay := run.experiment.workloads[name].delay) is not None]
    return " or ".join(sorted(set(map(str, delays)))) or None
