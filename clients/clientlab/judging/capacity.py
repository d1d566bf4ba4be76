"""Capacities: whether a trial held its rate, the search of each arm in each round, and the capacity that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from clientlab import units
from clientlab.analysis.bisection import Bracket, SearchBounds, bracket_of, jittered, next_rate, typical_capacity
from clientlab.analysis.ratios import Estimate, Ratio, inverse
from clientlab.analysis.standings import GroupKey, Standing, TrialCost, standings
from clientlab.judging.backlog import growth_in
from clientlab.judging.ranking import group_of
from clientlab.results.capacity_search import CapacitySearch, Condition
from clientlab.results.document import Run
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import Trial
from clientlab.workload.workload import MOST_REQUESTS


def why_not_held(trial: Trial, search: CapacitySearch) -> str | None:
    """Why a trial did not hold its rate, in a phrase; None where it held it.

    In this order: the trial failed; it sent too few requests; its backlog grew; a condition did not hold.
    """
    load = trial.open_load
    if trial.status != "done" or load is None:
        return f"the trial {trial.status}: {trial.reason or 'unknown'}"
    if load.achieved_per_second < search.achieved * load.planned_per_second:
        planned = load.planned_per_second if trial.search is None else trial.search.rate
        return f"{units.rate(load.achieved_per_second)} of {units.rate(planned)} requests/s were sent"
    if growth := growth_in(trial):
        return growth.text
    broken = (_broken(one, trial) for one in search.conditions.each)
    return next((why for why in broken if why is not None), None)


def _broken(condition: Condition, trial: Trial) -> str | None:
    """Why the condition does not hold for a trial. A lower bound holds no condition."""
    figure = condition.figure
    value = figure.of(trial)
    at_least = figure.is_bound([trial])
    if value is not None and value < condition.limit and not at_least:
        return None
    return f"{figure.key} {figure.text(value, at_least=at_least)}"


_MOST_LOST = 2
"""A probe that was lost is measured once more."""


@dataclass(frozen=True)
class ArmSearch:
    """The search of an arm in a round. `probes`: in their order. `resumed_at`: the order from which the run goes on."""

    search: CapacitySearch
    bounds: SearchBounds
    arm: str
    round: int
    probes: Sequence[Trial]
    resumed_at: int = 0

    @cached_property
    def outcomes(self) -> list[tuple[float, bool]]:
        """The rate of each probe that was not lost, and whether it held the rate."""
        return [(rate_of(probe), why_not_held(probe, self.search) is None) for probe in self._known]

    @property
    def bracket(self) -> Bracket:
        """The capacity lies between its ends."""
        return bracket_of(self.outcomes, self.bounds.tries)

    @property
    def next_rate(self) -> float | None:
        """The rate to try next; None where the search is over."""
        if self.is_lost or self.is_limited:
            return None
        return self._next

    @property
    def is_lost(self) -> bool:
        """Whether a probe was lost so often that the search was given up. A run that is resumed goes on with it."""
        present = [probe for probe in self.probes if probe.status == "lost" and probe.order >= self.resumed_at]
        return sum(rate_of(probe) == self._next for probe in present) >= _MOST_LOST

    @property
    def is_limited(self) -> bool:
        """Whether the limit of probes or of their time ended the search early."""
        seconds = sum(probe.wall_seconds or 0.0 for probe in self._known)
        full = len(self._known) >= self.search.most_probes or seconds >= self.search.most_seconds
        return self._next is not None and full

    @property
    def at_least(self) -> bool:
        """Whether the capacity is only a lower bound: no rate above it was tried and not held."""
        return self.bracket.failed is None

    @property
    def limit(self) -> Trial | None:
        """The first probe that did not hold the lowest rate that was not held: it shows what limits the capacity."""
        failed = self.bracket.failed
        tried = (probe for probe in self._known if rate_of(probe) == failed)
        return next((probe for probe in tried if why_not_held(probe, self.search) is not None), None)

    @cached_property
    def _known(self) -> list[Trial]:
        return [probe for probe in self.probes if probe.status != "lost"]

    @cached_property
    def _next(self) -> float | None:
        return next_rate(self.outcomes, self.bounds)


@dataclass(frozen=True)
class ArmCapacity:
    """The capacity of an arm over the rounds. `searches`: by round. `name`: of the arm in its group.

    `standing`: its place in the group; None where it has no capacity, or only a lower bound.
    """

    arm: Arm
    name: str
    searches: Sequence[ArmSearch]
    standing: Standing | None = None

    @cached_property
    def by_round(self) -> dict[int, float]:
        """Round → capacity, of the rounds that found one: the middle between the rates held and not held."""
        return {one.round: one.bracket.middle for one in self.searches if one.bracket.middle is not None}

    @property
    def at_least(self) -> bool:
        """Whether a search ended before a rate was not held."""
        return any(one.at_least for one in self.searches if one.bracket.held is not None)

    @property
    def typical(self) -> Ratio | None:
        """The median over the rounds with its interval; None without a capacity."""
        return typical_capacity({one.round: one.bracket for one in self.searches})

    @property
    def share(self) -> Estimate | None:
        """The typical share of the largest capacity of the group, paired by round, with its interval."""
        ratio = None if self.standing is None else self.standing.ratio
        if ratio is None:
            return None
        low, high = (None, None) if ratio.interval is None else map(inverse, reversed(ratio.interval))
        return Estimate(inverse(ratio.value), low, high)


def rate_of(probe: Trial) -> float:
    """The rate that the search chose for a trial. Raises ValueError for a trial of no search."""
    if probe.search is None:
        raise ValueError(f"trial {probe.order} belongs to no search")
    return probe.search.rate


def bounds_of(search: CapacitySearch, plan: Plan, arm: Arm, number: int) -> SearchBounds:
    """What the search of a round tries for an arm, whose workload has the length of a trial."""
    seconds = plan.workloads[arm.workload].duration or 1.0
    lowest, highest = search.fewest_requests() / seconds, MOST_REQUESTS / seconds
    start = jittered(search.start, f"{plan.seed}:{number}:{arm.name}")
    return SearchBounds(min(max(start, lowest), highest), lowest, highest, search.resolution, search.tries)


def search_of(run: Run, arm: Arm, number: int) -> ArmSearch:
    """The search of an arm in a round, as far as the run has it. Raises ValueError for a run without a search."""
    plan = run.experiment
    if plan.find_max is None:
        raise ValueError(f"run {run.run} searches for no capacity")
    probes = [probe for probe in run.probes if (probe.arm, probe.round) == (arm.name, number)]
    return _search(run, plan.find_max, arm, number, probes)


def _search(run: Run, search: CapacitySearch, arm: Arm, number: int, probes: list[Trial]) -> ArmSearch:
    since = run.resumed[-1].trials if run.resumed else 0
    return ArmSearch(search, bounds_of(search, run.experiment, arm, number), arm.name, number, probes, since)


def capacities(run: Run) -> dict[GroupKey, list[ArmCapacity]]:
    """The arms of each group, the largest capacity first; those without a capacity are last. Empty without a search."""
    search = run.experiment.find_max
    if search is None:
        return {}
    probes: dict[str, dict[int, list[Trial]]] = {}
    for probe in run.probes:
        probes.setdefault(probe.arm, {}).setdefault(probe.round, []).append(probe)
    found: dict[GroupKey, list[ArmCapacity]] = {}
    for arm in run.experiment.arms:
        if by_round := probes.get(arm.name):
            searches = [_search(run, search, arm, number, by_round[number]) for number in sorted(by_round)]
            found.setdefault(group_of(arm), []).append(ArmCapacity(arm, arm.label or arm.strategy, searches))
    return {group: _ranked(group, arms) for group, arms in found.items()}


def lost_searches(run: Run) -> list[ArmSearch]:
    """The searches that were given up because probes were lost. A run that is resumed goes on with them."""
    found = (one for arms in capacities(run).values() for arm in arms for one in arm.searches)
    return [one for one in found if one.is_lost]


def _ranked(group: GroupKey, arms: list[ArmCapacity]) -> list[ArmCapacity]:
    """Ranked as strategies are by time per request, which is here the inverse of the capacity."""
    costs = [
        TrialCost(one.name, group, number, 1 / rate, errors=0)
        for one in arms
        if not one.at_least
        for number, rate in one.by_round.items()
    ]
    places = {standing.name: standing for standing in standings(costs).get(group, [])}
    ranked = [ArmCapacity(one.arm, one.name, one.searches, places.get(one.name)) for one in arms]
    order = {name: index for index, name in enumerate(places)}
    # SearchBounds first: each is above all rates that were tried. Arms that held no rate are last.
    return sorted(ranked, key=lambda one: (not one.by_round, not one.at_least, order.get(one.name, 0)))


def equal_load(search: CapacitySearch, arms: Sequence[ArmCapacity]) -> float | None:
    """Requests per second at which the arms of a group are compared; None where none of them has a capacity."""
    found = [median(one.by_round.values()) for one in arms if one.by_round]
    return float(f"{search.equal_load * min(found):.4g}") if found else None
