"""The data that charts draw: groups of arms, and one look for each strategy, the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from clientlab.analysis.histogram import Distribution, decoded
from clientlab.analysis.latencies import Latencies, latencies_of
from clientlab.reports.rows import WAITS, Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.trial import Histogram, Trial


class Hue(NamedTuple):
    """One colour in two forms: on a light ground and on a dark one."""

    light: str
    dark: str


# Okabe and Ito's palette (jfly.uni-koeln.de/color), which colour-blind people can tell apart. Violet replaces yellow,
# which white swallows, and grey its black. All have a contrast of 3 with their ground.
HUES = (
    Hue("#0072b2", "#3f9fe0"),
    Hue("#d55e00", "#f07a3c"),
    Hue("#009e73", "#16b98c"),
    Hue("#b8628f", "#dd97bf"),
    Hue("#b97f00", "#e69f00"),
    Hue("#2f93cf", "#8fd0f5"),
    Hue("#5b3df0", "#8f7bff"),
    Hue("#6b7280", "#9aa3ae"),
)
DASHES: tuple[tuple[int, ...], ...] = ((), (8, 4), (2, 4), (10, 4, 2, 4), (4, 3))
"""Lengths of strokes and gaps; the first line has no gap."""


@dataclass(frozen=True)
class Look:
    """Positions of a hue and of a dash in the lists above."""

    colour: int = 0
    dash: int = 0

    @property
    def names(self) -> str:
        """Classes of the page's style sheet."""
        return f"c{self.colour} d{self.dash}"


NEUTRAL = Look(len(HUES) - 1)
"""Grey, for what is no strategy."""


def looks_of(run: Run) -> dict[str, Look]:
    """Strategy → look, in the experiment's order. Settings change no look: ``NAME?pool=8`` has that of ``NAME``."""
    strategies = dict.fromkeys([arm.strategy for arm in run.experiment.arms] + [trial.strategy for trial in run.trials])
    names = dict.fromkeys(map(_without_settings, strategies))
    looks = {name: Look(index % len(HUES), index // len(HUES) % len(DASHES)) for index, name in enumerate(names)}
    return {strategy: looks[_without_settings(strategy)] for strategy in strategies}


def distinct(looks: Iterable[Look]) -> list[Look]:
    """The looks of one chart: where the same comes again, with its colour and another dash."""
    seen: dict[Look, int] = {}
    found = []
    for look in looks:
        times = seen.setdefault(look, 0)
        found.append(Look(look.colour, (look.dash + times) % len(DASHES)))
        seen[look] += 1
    return found


def _without_settings(strategy: str) -> str:
    return strategy.partition("?")[0]


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
    def latencies(self) -> list[Latencies]:
        """Those of each round that had a successful request, and whose histogram is known."""
        return [
            latencies_of(answered, failed, sum(trial.errors.values()))
            for trial in self.trials
            for answered in _decoded(trial.histogram)
            for failed in [_decoded(trial.failed_histogram)]
        ]


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


def _decoded(histogram: Histogram | None) -> list[Distribution]:
    """The distribution, unless it is unknown or empty."""
    found = [] if histogram is None else [decoded(histogram.encoded, histogram.unit_seconds)]
    return [one for one in found if one.total]


def _arms(group: Group, looks: dict[str, Look]) -> list[ChartArm]:
    styles = distinct(looks[row.trials[0].strategy] for row in group.rows)
    return [ChartArm(group.name_of(row), row, look) for row, look in zip(group.rows, styles, strict=True)]


def _delay(run: Run, group: Group) -> str | None:
    workloads = {trial.workload for row in group.rows for trial in row.trials}
    delays = [delay for name in workloads if (delay := run.experiment.workloads[name].delay) is not None]
    return " or ".join(sorted(set(map(str, delays)))) or None
