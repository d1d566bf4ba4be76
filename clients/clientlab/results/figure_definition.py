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

When = Literal["always", "known", "large bodies", "durations"]
"""Show a column always, if a trial has the figure, if bodies have 1 MiB or more, or if numbers of requests differ."""


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
    """A column of a run's table."""

    heading: str
    when: When = "always"


@dataclass(frozen=True)
class Metric:
    """The gauge ``clientlab_run_NAME``; `quantile` is the value of its label of that name, if it has one."""

    name: str
    quantile: str | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of a trial."""

    key: str  # short name, for thresholds and comparisons
    name: str  # full name with its unit, for CSV and claims; both names are accepted everywhere
    label: str
    description: str
    unit: Unit
    of: Callable[[Trial], float | None]  # in `unit`; None if the trial does not have it
    direction: Direction
    resolution: float = 0.0  # the smallest relative difference that can be measured
    column: Column | None = None
    metric: Metric | None = None
    cost: bool = False  # the HTML report draws it beside time, as a resource
    compared: bool = False  # `clientlab compare` always shows it
    claimable: bool = True  # a claim may compare it
    total: bool = False  # it grows with the number of requests
    needs: Literal["elapsed", "delay"] | None = None  # field of the workload without which it is unknown
    of_failed: bool = False  # failed trials that sent all their requests have it too, and rounds are averaged
    scheduled: bool = False  # the schedule of an open load decides it, so that arms cannot be compared by it there
    before_send: bool = False  # it ends when a request is sent, so it never holds the wait for a connection
    bounded: Callable[[Trial], bool] | None = None  # whether that of a trial is only a lower bound; None: never

    @property
    def less_is_better(self) -> bool:
        return self.direction.less_is_better

    @property
    def title(self) -> str:
        """The label as a heading."""
        return self.label[0].upper() + self.label[1:]

    def is_known(self, workload: Workload, link: Link | None) -> bool:
        """Tell whether trials of the workload have what the figure needs. A link takes the place of a delay."""
        linked = self.needs == "delay" and link is not None
        return self.needs is None or linked or bool(getattr(workload, self.needs))

    def values(self, trials: Iterable[Trial]) -> list[float]:
        """Return the figure of each trial that has it, in their order. Failed trials are left out (see `of_failed`)."""
        return [value for _, value in self._counted(trials)]

    def over_rounds(self, trials: Iterable[Trial]) -> float | None:
        """Return the median over the trials that have it, or the mean of a figure `of_failed`; None if none has."""
        values = self.values(trials)
        if not values:
            return None
        return mean(values) if self.of_failed else float(median(values))

    def is_bound(self, trials: Iterable[Trial]) -> bool:
        """Tell whether `over_rounds` is only a lower bound: it would be larger if the trials' bounds were."""
        if self.bounded is None:
            return False
        counted = [BoundedValue(value, self.bounded(trial)) for trial, value in self._counted(trials)]
        return bool(counted) and median_of(counted).at_least

    def has_bounds(self, trials: Iterable[Trial]) -> bool:
        """Tell whether the figure of any of the trials is only a lower bound."""
        return self.bounded is not None and any(self.bounded(trial) for trial, _ in self._counted(trials))

    def text(self, value: float | None, *, at_least: bool = False) -> str:
        """Return the value as reports show it: "≥ 300 ms" for a lower bound."""
        return units.of_unit(value, self.unit, at_least=at_least)

    def _counted(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, float]]:
        for trial in trials:
            if trial.status == "done" or (self.of_failed and trial.requests and not trial.partial):
                value = self.of(trial)
                if value is not None:
                    yield trial, float(value)
