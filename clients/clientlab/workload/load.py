"""The load model of a workload. Closed: `concurrency` requests in flight. Open: requests arrive by a schedule."""

from __future__ import annotations

from dataclasses import replace

from clientlab.errors import FieldError
from clientlab.workload import arrivals
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.shard_workload import schedule_of
from clientlab.workload.value_range import check_bounds
from clientlab.workload.workload import MOST_REQUESTS, Workload

MOST_DRAWN = 10_000_000
"""Requests of a trial with Poisson arrivals. To draw so many takes about 20 s and 80 MB."""


def is_open(workload: Workload) -> bool:
    """Whether requests arrive by a schedule."""
    return workload.rate is not None or workload.stages is not None


def is_warm(workload: Workload) -> bool:
    """Whether connections are opened before the clock starts: by default, in a load for a duration.

    A number of requests is a job, whose connections are part of it. A duration is a part of a service that runs.
    """
    if workload.connections is None:
        return workload.duration is not None
    return workload.connections == "warm"


def arrivals_of(workload: Workload) -> Arrivals | None:
    """The schedule of an open load; None for a closed load."""
    if not is_open(workload):
        return None
    return _schedule(workload)  # a duration decides the number of requests; with both, they agree


def requests_in(workload: Workload) -> int | None:
    """How many requests a trial has. None where nobody knows it before: a closed load for a duration."""
    schedule = arrivals_of(workload)
    return workload.requests if schedule is None else schedule.count


def expected_requests(workload: Workload) -> int | None:
    """How many requests a trial has, or of a random number of arrivals the mean. None where nobody knows it before.

    It draws no arrival, so it takes a moment for any workload, and it is equal in all rounds.
    """
    schedule = expected_schedule(workload)
    return workload.requests if schedule is None else schedule.count


def expected_schedule(workload: Workload) -> Arrivals | None:
    """The schedule of an open load as if its arrivals were evenly spaced; None for a closed load."""
    if not is_open(workload):
        return None
    return _schedule(replace(workload, arrivals="uniform"))


def _schedule(workload: Workload) -> Arrivals:
    fields = workload.rate, workload.stages, workload.arrivals, workload.seed
    return schedule_of(workload, arrivals.planned(*fields, workload.requests, workload.duration))


def most_late(workload: Workload) -> float:
    """Seconds behind its planned start after which a request is dropped: `max_late`, or else the timeout."""
    return workload.timeout if workload.max_late is None else workload.max_late


def longest_pause(workload: Workload) -> float:
    """Seconds of the longest pause that the schedule itself has between two requests; 0 for a closed load."""
    schedule = arrivals_of(workload)
    return 0.0 if schedule is None else schedule.longest_gap


def check_load(workload: Workload) -> None:
    """Raises FieldError for an open load that cannot be sent, and for its options in a closed load."""
    check_bounds(workload)
    if not is_open(workload):
        _check_closed(workload)
        return
    stages = workload.stages
    if stages is not None and workload.duration is not None and stages.last_begins >= workload.duration:
        message = f"the last stage begins at {stages.last_begins:g} s, and the trial is over then; write a longer one"
        raise FieldError(["duration"], message, value=f"{workload.duration:g} s")
    if workload.rate is not None and workload.stages is not None:
        raise FieldError(["rate"], "a load has one rate or several stages; leave out one of them", also=["stages"])
    _check_count(workload)


def _check_closed(workload: Workload) -> None:
    for field, given in (("arrivals", workload.arrivals != "uniform"), ("max_late", workload.max_late is not None)):
        if given:
            message = "only an open load has it; set `rate` or `stages`, or leave it out"
            raise FieldError([field], message, value=getattr(workload, field))


def _check_most(workload: Workload) -> None:
    count, drawn = expected_requests(workload) or 0, workload.arrivals == "poisson"
    most = MOST_DRAWN if drawn else MOST_REQUESTS
    if count > most:
        field = "requests" if workload.duration is None else "duration"
        why = ": each arrival is drawn before the trial" if drawn else ""
        raise FieldError([field], f"it plans {count:,} requests; no trial has more than {most:,}{why}")


def _check_count(workload: Workload) -> None:
    fields = workload.rate, workload.stages
    _check_most(workload)
    if workload.duration is not None and workload.arrivals == "poisson":
        _check_drawn(workload)
    elif workload.duration is not None:
        count = arrivals.planned(*fields, workload.arrivals, workload.seed, None, workload.duration).count
        if not count:
            raise FieldError(["duration"], "no request arrives in it; write a longer one", value=workload.duration)
        if workload.requests is not None and workload.requests != count:
            message = f"{count:,} requests arrive in {workload.duration:g} s; leave out one of them"
            raise FieldError(["requests"], message, value=workload.requests, also=["duration"])
    elif workload.stages is not None:
        schedule = arrivals_of(workload)
        if schedule is not None and schedule.length <= workload.stages.last_begins:
            message = f"{schedule.count:,} requests are over before the last stage begins; set `duration` instead"
            raise FieldError(["stages"], message)


_FEWEST_DRAWN = 12
"""Mean number of Poisson arrivals in a trial. With fewer, one round in 160,000 or more would have no request."""


def _check_drawn(workload: Workload) -> None:
    """Raises FieldError where each round draws how many requests arrive, and some may have none, or `requests` says."""
    mean = expected_requests(workload) or 0
    if workload.requests is not None:
        message = "each round draws how many requests arrive in the duration; leave out one of them"
        raise FieldError(["requests"], message, value=workload.requests, also=["duration"])
    if mean < _FEWEST_DRAWN * workload.shards:
        each = "" if workload.shards == 1 else " for each shard"
        message = (
            f"{mean:,} requests arrive in it on average, so a round may have none; write a duration in which "
            f"{_FEWEST_DRAWN} arrive{each}"
        )
        raise FieldError(["duration"], message, value=workload.duration)
