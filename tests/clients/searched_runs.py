"""Runs that searched for capacities, with the probes of each search."""

from __future__ import annotations

from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Run
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_searched_trial

SEARCH = CapacitySearch(conditions="p99<250ms,errors<1%")
FIRST = Workload(rate=100.0, duration=5.0, max_late=5.0)


def probes_of(strategy: str, number: int, capacity: float) -> list:
    """The probes of a search that is over, between the capacity and 2 % more."""
    held = [a_searched_trial(strategy, number, capacity, probe=True, concurrency=len(strategy)) for _ in range(2)]
    above = [
        a_searched_trial(strategy, number, capacity * 1.02, served=0.5 * capacity, probe=True, busy={"client": 0.98})
        for _ in range(2)
    ]
    return [*held, *above]


def a_searched_run(capacities_of: dict[str, list[float]], conditions: str = SEARCH.conditions, **changes) -> Run:
    """A run with those capacities, by strategy and round, and its trials at equal load."""
    trials = [
        trial for name, rates in capacities_of.items() for number, rate in enumerate(rates, 1)
        for trial in probes_of(name, number, rate)
    ]  # fmt: skip
    trials += [
        a_searched_trial(name, number, 50.0, capacity=rate, p99=0.01 * number * len(name))
        for name, rates in capacities_of.items() for number, rate in enumerate(rates, 1)
    ]  # fmt: skip
    search = CapacitySearch(conditions=conditions)
    return a_run(*trials, workloads={"workload": FIRST}, find_max=search, **changes)
