"""What defines a figure: how it is read from a trial, its unit and direction, and where reports and metrics show it.

A figure can be a lower bound ("≥ 300 ms"): so is a quantile that falls on a failed request, for nobody knows how long
its answer would have taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Literal

from clientlab import units
from clientlab.analysis.latencies import BoundedValue, median_of
from clientlab.results.trial import Trial
from clientlab.units import Unit
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload

When = Literal["always", "known", "large bodies", "durations", "retries"]


@dataclass(frozen=True)
class Direction:
    """Which way is good, and the words for a change for the better and for the worse."""

    better: str
    worse: str
    less_is_better: bool = True


FASTER = Direction("faster", "slower")
LESS = Direction("less", "more")
FEWER = Direction("fewer", "more")
MORE = Direction("more", "fewer", less_is_better=False)

RESOLUTION = 1e-3
"""Of latencies: reports show three significant digits."""


@dataclass(frozen=True)
class Column:
    """A column of a run's table.

    `when`: always, where a trial has the figure, where bodies are 1 MiB or larger, where trials do not all send the
    same number of requests, or where a strategy of the group sends requests again.
    """

    heading: str
    when: When = "always"


@dataclass(frozen=True)
class Metric:
    """The gauge ``clientlab_run_NAME``; `quantile` is the value of its label of that name, where it has one."""

    name: str
    quantile: str | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of a trial.

    `bounded`: whether the figure of a trial is only a lower bound, because requests failed; None for a figure that is
    never one.

    `key`: its short name, for thresholds and comparisons; `name`: its full name with its unit, for CSV and claims. Both
    are accepted everywhere. `of` returns the figure in `unit`, or None where the trial does not have it. `resolution`:
    the smallest relative difference that can be measured. `column`, `metric`: None where there is none. `cost`: the
    HTML report draws it beside time, as a resource. `compared`: `clientlab compare` always shows it. `claimable`: a
    claim may compare it. `total`: it grows with the number of requests. `needs`: the field of a workload without which
    it is unknown; a link takes the place of a delay. `of_failed`: failed trials that sent all their requests have it
    too, and rounds are averaged. `despite_errors`: claims count trials with errors, because failed requests are a part
    of what it states. `scheduled`: the schedule of an open load decides it, so that arms cannot be compared
    by it there. `before_send`: it ends when a request is sent, so it never holds the wait for a connection.
    """

    key: str
    name: str
    label: str
    description: str
    unit: Unit
    of: Callable[[Trial], float | None]
    direction: Direction
    resolution: float = 0.0
    column: Column | None = None
    metric: Metric | None = None
    cost: bool = False
    compared: bool = False
    claimable: bool = True
    total: bool = False
    needs: Literal["elapsed", "delay"] | None = None
    of_failed: bool = False
    despite_errors: bool = False
    scheduled: bool = False
    before_send: bool = False
    bounded: Callable[[Trial], bool] | None = None

    @property
    def less_is_better(self) -> bool:
        return self.direction.less_is_better

    @property
    def title(self) -> str:
        """The label as a heading."""
        return self.label[0].upper() + self.label[1:]

    def is_known(self, workload: Workload, link: Link | None) -> bool:
        """Whether trials of the workload behind that link have what the figure needs."""
        linked = self.needs == "delay" and link is not None
        return self.needs is None or linked or bool(getattr(workload, self.needs))

    def values(self, trials: Iterable[Trial]) -> list[float]:
        """The figure of each trial that has it, in their order. Trials that failed are left out (see `of_failed`)."""
        return [value for _, value in self._counted(trials)]

    def over_rounds(self, trials: Iterable[Trial]) -> float | None:
        """The median over the trials that have it, or the mean of a figure `of_failed`; None where none has."""
        values = self.values(trials)
        if not values:
            return None
        return mean(values) if self.of_failed else float(median(values))

    def is_bound(self, trials: Iterable[Trial]) -> bool:
        """Whether `over_rounds` is only a lower bound: it would be larger if the trials' bounds were."""
        if self.bounded is None:
            return False
        counted = [BoundedValue(value, self.bounded(trial)) for trial, value in self._counted(trials)]
        return bool(counted) and median_of(counted).at_least

    def has_bounds(self, trials: Iterable[Trial]) -> bool:
        """Whether the figure of any of the trials is only a lower bound."""
        return self.bounded is not None and any(self.bounded(trial) for trial, _ in self._counted(trials))

    def text(self, value: float | None, *, at_least: bool = False) -> str:
        """The value as reports show it: "≥ 300 ms" for a lower bound."""
        return units.of_unit(value, self.unit, at_least=at_least)

    def _counted(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, float]]:
        for trial in trials:
            if trial.status == "done" or (self.of_failed and trial.requests and not trial.partial):
                value = self.of(trial)
                if value is not None:
                    yield trial, float(value)
