"""Whether a trial held its rate: the conditions of a search for capacities, and the backlog of an open load."""

from __future__ import annotations

from itertools import accumulate
from statistics import mean

from clientlab import units
from clientlab.results.capacity_search import CapacitySearch, Condition
from clientlab.results.trial import OpenLoad, Trial

GROWN_SHARE = 0.01
"""Of the requests that arrive in half the schedule: a backlog that grows by more grows steadily."""

GROWN_REQUESTS = 3
"""A backlog that grows by no more requests than these may be chance, at low rates."""

_FEWEST_SLICES = 4
_ROUNDING = 1e-9


def why_not_held(trial: Trial, search: CapacitySearch) -> str | None:
    """Why a trial did not hold its rate, in a phrase; None where it held it.

    In this order: the trial failed; it sent too few requests; its backlog grew; a condition did not hold.
    """
    load = trial.open_load
    if trial.status != "done" or load is None:
        return f"the trial {trial.status}: {trial.reason or 'unknown'}"
    if load.achieved_per_second < search.achieved * load.planned_per_second:
        return f"{units.rate(load.achieved_per_second)} of {units.rate(load.planned_per_second)} requests/s were sent"
    if growth := _growth(trial, load):
        return growth
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


def _growth(trial: Trial, load: OpenLoad) -> str | None:
    """How much the backlog grew, in a phrase; None where it did not grow.

    The backlog is that of a queue: requests that were due and had not ended, in flight or not. Where each request is
    sent when it is due and waits inside the client, only those in flight show an overload. The backlog grew if its mean
    over the last quarter of the schedule is above that over the second quarter by more than 1 % of the requests that
    arrive in half the schedule, and by more than 3 requests. The first quarter, in which connections are opened, does
    not count.
    """
    arrivals = sum(part.planned for part in load.over_time)
    length = arrivals / load.planned_per_second * (1 + _ROUNDING) if load.planned_per_second else 0.0
    backlog = [count for end, count in backlog_of(trial, load) if end <= length]
    if len(backlog) < _FEWEST_SLICES:  # to work the backlog off took far longer than the schedule
        return "the backlog grew until the schedule ended"
    quarter = len(backlog) // 4
    half = len(backlog) // 2
    grown = mean(backlog[-quarter:]) - mean(backlog[half - quarter : half])
    if grown <= max(GROWN_SHARE * arrivals / 2, GROWN_REQUESTS):
        return None
    return f"the backlog grew by {units.count(round(grown))} requests in half the trial"


def backlog_of(trial: Trial, load: OpenLoad) -> list[tuple[float, int]]:
    """Seconds and requests: at the end of each slice of the trial, how many were due and had not ended."""
    planned = accumulate(part.planned for part in load.over_time)
    ended = accumulate(part.requests for part in trial.over_time)
    ends = [*(part.at for part in load.over_time[1:]), trial.wall_seconds or 0.0]
    return [(end, due - done) for end, due, done in zip(ends, planned, ended, strict=False)]
