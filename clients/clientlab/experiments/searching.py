"""Experiments that search for capacities: their workloads at the rate that is tried first, checked."""

from __future__ import annotations

from dataclasses import replace

from clientlab.errors import FieldError
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.results.capacity_search import CapacitySearch

_CHOSEN = ("rate", "stages", "requests")
"""Fields of a workload that the search, or the length of its trials, decides."""


def at_first_rate(experiment: Experiment) -> Experiment:
    """The experiment with workloads at the rate that its search tries first; without a search, as it is.

    A request that is later than the length of a trial is dropped, unless the workload has a limit of its own. Raises
    FieldError for workloads, or a search, that do not fit each other.
    """
    search = experiment.find_max
    if search is None:
        return experiment
    tables = {name: _table(name, table, search) for name, table in experiment.workloads.items()}
    return experiment.changed(workloads=tables)


def _table(name: str, table: WorkloadTable, search: CapacitySearch) -> WorkloadTable:
    first, place = table.first, ("workloads", name)
    chosen = {field: getattr(first, field) for field in _CHOSEN if getattr(first, field) is not None}
    if first.duration is None:
        raise FieldError((*place, "duration"), "a search for capacities needs the length of its trials; write one")
    if field := next((field for field in _CHOSEN if field in chosen or field in table.axes), None):
        message = "a search for capacities chooses the rate of each trial, whose length is `duration`; leave it out"
        raise FieldError((*place, field), message, value=chosen.get(field, ""), also=["find_max"])
    if first.arrivals != "uniform" or "arrivals" in table.axes:
        message = "a search for capacities plans uniform arrivals; leave it out"
        raise FieldError((*place, "arrivals"), message, value=first.arrivals, also=["find_max"])
    for seconds in table.axes.get("duration", [first.duration]):
        _check_length(search, float(seconds))
    late = first.duration if first.max_late is None else first.max_late
    return table.model_copy(update={"first": replace(first, rate=search.start, max_late=late)})


def _check_length(search: CapacitySearch, seconds: float) -> None:
    """Raises FieldError for trials in which a condition cannot be judged."""
    fewest, planned = search.fewest_requests(), int(search.start * seconds)
    if planned < fewest:
        message = (
            f"at the first rate, {search.start:g}/s, a trial of {seconds:g} s has {planned:,} requests, and its "
            f"figures need {fewest:,}; write a higher first rate or a longer `duration`"
        )
        raise FieldError(("find_max",), message)
    for one in search.conditions.each:
        if one.figure.unit == "seconds" and one.limit >= seconds:
            message = f"no trial of {seconds:g} s can show that; write a lower limit or a longer `duration`"
            raise FieldError(("find_max",), message, value=repr(one.text))
