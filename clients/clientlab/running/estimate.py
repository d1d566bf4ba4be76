"""What a plan needs: about how long its run takes, and how many requests are in flight at once."""

from __future__ import annotations

from clientlab import strategies
from clientlab.judging.overload import CALM_AFTER
from clientlab.results.plan import Arm, Plan
from clientlab.running.due import probes_of
from clientlab.workload.load import arrivals_of, requests_in
from clientlab.workload.workload import Workload

_TRIAL_SECONDS = 0.7
"""A trial's own: its process, its library, its warm-up. As measured on two cores."""

_REQUEST_SECONDS = 0.0005
"""Work that a request costs on all sides, of one core."""

_SAMPLE = 100


def seconds_of(plan: Plan) -> float:
    """Estimated seconds of a whole run. A machine that is slower or busy takes longer."""
    search = plan.find_max
    trials = 1 if search is None else 1 + probes_of(search) + (2 + CALM_AFTER) * len(search.overload)
    return plan.rounds * sum(trials * _trial(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def most_in_flight(plan: Plan) -> int:
    """The largest number of requests that any trial has in flight at once."""
    return max(_in_flight(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def _in_flight(arm: Arm, workload: Workload) -> int:
    return strategies.find(arm.strategy).in_flight(workload.concurrency, requests_in(workload))


def _trial(arm: Arm, workload: Workload) -> float:
    if (schedule := arrivals_of(workload)) is not None:
        return _TRIAL_SECONDS + schedule.length
    if workload.requests is None:
        return _TRIAL_SECONDS + (workload.duration or 0.0)
    in_flight = _in_flight(arm, workload)
    delay = mean_delay(workload) + (0.0 if arm.link is None else arm.link.rtt)
    waves = max(1.0, workload.requests / in_flight)
    return _TRIAL_SECONDS + workload.warmup * delay + max(waves * delay, workload.requests * _REQUEST_SECONDS)


def mean_delay(workload: Workload) -> float:
    """Mean seconds of delay that the requests of the workload ask for, estimated from the first hundred."""
    if workload.delay is None:
        return 0.0
    delay = workload.delay.at(workload.seed)
    return sum(delay(number) for number in range(_SAMPLE)) / _SAMPLE
