"""The load model of a workload. Closed: `concurrency` requests in flight. Open: requests arrive by a schedule."""

from __future__ import annotations

from dataclasses import replace

from clientlab.errors import FieldError
from clientlab.workload import arrivals
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.shard_workload import ShardWorkload
from clientlab.workload.workload import MOST_REQUESTS, Workload
from clientlab.workload.written import check_bounds

MOST_DRAWN = 10_000_000
"""Requests of a trial with Poisson arrivals. Drawing so many takes about 20 s and 80 MB."""
_FEWEST_DRAWN = 12
"""Mean number of Poisson arrivals in a trial. With fewer, one round in 160,000 or more would have no request."""


def is_open(workload: Workload) -> bool:
    """Return whether requests arrive by a schedule."""
    return workload.rate is not None or workload.stages is not None


def is_warm(workload: Workload) -> bool:
    """Return whether connections are opened before the clock starts: by default, in a load for a duration.

    A number of requests is a job, whose connections are part of it. A duration is a part of a service that runs.
    """
    if workload.connections is None:
        return workload.duration is not None
    return workload.connections == "warm"


def arrivals_of(workload: Workload) -> Arrivals | None:
    """Return the schedule of an open load, or None for a closed load."""
    if not is_open(workload):
        return None
    fields = workload.rate, workload.stages, workload.arrivals, workload.seed
    whole = arrivals.planned(*fields, workload.requests, workload.duration)
    return arrivals.EveryNth(whole, workload.index, workload.of) if isinstance(workload, ShardWorkload) else whole


def expected_schedule(workload: Workload) -> Arrivals | None:
    """Return the schedule of an open load as if its arrivals were evenly spaced, or None for a closed load.

    It draws no arrival, so it takes a moment for any workload, and it is equal in all rounds.
    """
    return arrivals_of(replace(workload, arrivals="uniform"))


def requests_in(workload: Workload) -> int | None:
    """Return how many requests a trial has, or None for a closed load for a duration."""
    schedule = arrivals_of(workload)
    return workload.requests if schedule is None else schedule.count


def expected_requests(workload: Workload) -> int | None:
    """Return how many requests a trial has, the mean of a random number, or None for a closed load for a duration."""
    schedule = expected_schedule(workload)
    return workload.requests if schedule is None else schedule.count


def most_late(workload: Workload) -> float:
    """Return the seconds behind its planned start after which a request is dropped: `max_late`, or the timeout."""
    return workload.timeout if workload.max_late is None else workload.max_late


def longest_pause(workload: Workload) -> float:
    """Return the seconds of the longest pause that the schedule has between two requests; 0 for a closed load."""
    schedule = arrivals_of(workload)
    return 0.0 if schedule is None else schedule.longest_gap


def check_load(workload: Workload) -> None:
    """Raise FieldError for an open load that cannot be sent, and for its options in a closed load."""
    check_bounds(workload)
    if is_open(workload):
        _check_open(workload)
        return
    for field, given in (("arrivals", workload.arrivals != "uniform"), ("max_late", workload.max_late is not None)):
        if given:
            message = "only an open load has it; set `rate` or `stages`, or leave it out"
            raise FieldError([field], message, value=getattr(workload, field))


def _check_open(workload: Workload) -> None:
    stages, duration, requests = workload.stages, workload.duration, workload.requests
    if workload.rate is not None and stages is not None:
        raise FieldError(["rate"], "a load has one rate or several stages; leave out one of them", also=["stages"])
    last_begins = stages.steps[-1][0] if stages is not None else 0.0
    if duration is not None and last_begins >= duration:
        message = f"the last stage begins at {last_begins:g} s, and the trial is over then; write a longer one"
        raise FieldError(["duration"], message, value=f"{duration:g} s")
    is_drawn = workload.arrivals == "poisson"
    schedule = expected_schedule(workload if duration is None else replace(workload, requests=None))
    count = 0 if schedule is None else schedule.count
    most = MOST_DRAWN if is_drawn else MOST_REQUESTS
    if count > most:
        why = ": each arrival is drawn before the trial" if is_drawn else ""
        field = "requests" if duration is None else "duration"
        raise FieldError([field], f"it plans {count:,} requests; no trial has more than {most:,}{why}")
    if duration is None:
        if stages is not None and schedule is not None and schedule.length <= last_begins:
            message = f"{count:,} requests are over before the last stage begins; set `duration` instead"
            raise FieldError(["stages"], message)
        return
    fewest = _FEWEST_DRAWN * workload.shards if is_drawn else 1
    if count < fewest:
        message = f"{count:,} requests arrive in it; write a duration in which at least {fewest} arrive"
        raise FieldError(["duration"], message, value=duration)
    if requests is not None and (is_drawn or requests != count):
        each = "in each round another number of" if is_drawn else f"{count:,}"
        message = f"{each} requests arrive in {duration:g} s; leave out one of them"
        raise FieldError(["requests"], message, value=requests, also=["duration"])
