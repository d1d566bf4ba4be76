"""About how long an experiment takes, from its delays."""

from __future__ import annotations

from clientlab import delays, strategies
from clientlab.runs.document import Arm
from clientlab.runs.experiment import Experiment
from clientlab.workload import Workload

_TRIAL_SECONDS = 0.7
"""A trial's own: its process, its library, its warm-up. As measured on two cores."""

_REQUEST_SECONDS = 0.0005
"""Work that a request costs on all sides, of one core."""

_SAMPLE = 100


def seconds_of(experiment: Experiment) -> float:
    """Estimated seconds of a whole run; a machine that is slower or busy takes longer."""
    return experiment.rounds * sum(_trial(arm, workload) for arm, workload in experiment.expanded())


def _trial(arm: Arm, workload: Workload) -> float:
    if workload.requests is None:
        return _TRIAL_SECONDS + (workload.duration or 0.0)
    in_flight = strategies.find(arm.strategy).in_flight(workload.concurrency, workload.requests)
    delay = _mean_delay(workload)
    waves = max(1.0, workload.requests / in_flight)
    return _TRIAL_SECONDS + workload.warmup * delay + max(waves * delay, workload.requests * _REQUEST_SECONDS)


def _mean_delay(workload: Workload) -> float:
    if workload.delay is None:
        return 0.0
    delay = delays.parse(workload.delay)
    return sum(delay.of(workload.seed, number) for number in range(_SAMPLE)) / _SAMPLE
