"""What an overload did to an arm: its goodput meanwhile, and the time that it took to recover.

A trial of an overload has three parts: a calm one at a share of the arm's capacity, the excess beyond the capacity, and
a calm one again. With L the length of a trial of the search, they take L, L and 3 L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, median
from typing import Literal

from clientlab.judging.backlog import GROWN_REQUESTS, backlog_of
from clientlab.judging.ranking import group_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.plan import Arm
from clientlab.results.trial import OfSearch, Trial

CALM_AFTER = 3
"""Times as long as the excess: a queue of twice the capacity empties in twice the excess."""

RECOVERED = 1.1
"""An arm has recovered when its backlog is at most so many times that before the excess, or 3 requests more."""

COLLAPSED = 0.9
"""Below this share of its capacity, an arm that is overloaded has collapsed: it does less because more arrives."""

_FEWEST_SLICES = 2
Reaction = Literal["collapses", "sheds", "queues"]


@dataclass(frozen=True)
class Overloaded:
    """The trials of an arm at one share of its capacity. `seconds`: length of the excess, and of the calm before it."""

    arm: Arm
    name: str
    share: float
    capacity: float
    seconds: float
    trials: Sequence[Trial]

    @cached_property
    def goodput(self) -> float | None:
        """Requests per second that ended with success during the excess: the median over the rounds."""
        return _median([_goodput(trial, self.seconds) for trial in self.trials])

    @cached_property
    def recovery(self) -> tuple[float, bool] | None:
        """Seconds from the end of the excess until the backlog was as before: the median, and whether it is a bound."""
        found = [one for trial in self.trials if (one := _recovery(trial, self.seconds)) is not None]
        if not found:
            return None
        middle = sorted(found)[(len(found) - 1) // 2]
        return float(median(seconds for seconds, _ in found)), middle[1]

    @property
    def failed(self) -> float | None:
        """Share of the requests of the whole trial that failed, drops included."""
        return BY_KEY["errors"].over_rounds(self.trials)

    @property
    def reaction(self) -> Reaction | None:
        """Whether the arm does less than its capacity, drops requests or fails them, or lets them wait."""
        if self.goodput is None:
            return None
        if self.goodput < COLLAPSED * self.capacity:
            return "collapses"
        return "sheds" if self.failed else "queues"


def overloads_of(run: Run) -> list[Overloaded]:
    """The overloads of each arm by share, in the experiment's order; none in a run without them."""
    if not run.overloads:
        return []
    overloads: dict[str, list[Trial]] = {}
    for trial in run.overloads:
        overloads.setdefault(trial.arm, []).append(trial)
    found, several = [], len({group_of(arm) for arm in run.experiment.arms}) > 1
    for arm in run.experiment.arms:
        seconds = run.experiment.workloads[arm.workload].duration or 0.0
        by_share: dict[float, list[Trial]] = {}
        capacity = 0.0
        for trial in overloads.get(arm.name, []):
            if trial.status == "done" and trial.search and trial.search.capacity_per_second:
                capacity = trial.search.capacity_per_second
                by_share.setdefault(share_of(trial.search), []).append(trial)
        place = f" ({', '.join(filter(None, group_of(arm)))})" if several else ""
        name = f"{arm.label or arm.strategy}{place}"
        found += [Overloaded(arm, name, one, capacity, seconds, by_share[one]) for one in sorted(by_share)]
    return found


def share_of(search: OfSearch) -> float:
    """The rate of an overload as a share of the arm's capacity."""
    return round(search.rate / (search.capacity_per_second or search.rate), 6)


def _goodput(trial: Trial, seconds: float) -> float | None:
    """Requests per second that ended with success in the slices that lie within the excess."""
    ends = [*(part.at for part in trial.over_time[1:]), trial.wall_seconds or 0.0]
    within = [
        (end - part.at, part.requests - part.errors)
        for part, end in zip(trial.over_time, ends, strict=False)
        if part.at >= seconds and end <= 2 * seconds
    ]
    length = sum(length for length, _ in within)
    if len(within) < _FEWEST_SLICES or length <= 0:
        return None
    return sum(good for _, good in within) / length


def _recovery(trial: Trial, seconds: float) -> tuple[float, bool] | None:
    """Seconds until the backlog was as before, and whether it was not within the calm part: then it took longer."""
    if trial.open_load is None:
        return None
    backlog = backlog_of(trial.open_load, trial.over_time, trial.wall_seconds or 0.0)
    before = [count for end, count in backlog if seconds / 2 <= end <= seconds]
    if len(before) < _FEWEST_SLICES:
        return None
    enough = max(RECOVERED * mean(before), mean(before) + GROWN_REQUESTS)
    calm = [(end - 2 * seconds, count) for end, count in backlog if end >= 2 * seconds]
    length = CALM_AFTER * seconds
    recovered = next((after for after, count in calm if count <= enough), length)
    return (length, True) if recovered >= length else (recovered, False)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
