"""When the requests of a workload are cancelled, and the requests that show afterwards what is left of the client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clientlab.workload.cancels import Cancellation, Cancels
from clientlab.workload.delays import Delay
from clientlab.workload.stream_requests import mean_of, stream_seconds, warming_up
from clientlab.workload.workload import Workload

PROBE_PATIENCE = 3.0
"""Seconds beyond its delay without an answer after which a probe is over."""

_LEAST_DELAY, _DELAY_EACH = 0.25, 0.004


def cancellation_of(workload: Workload) -> Callable[[int], Cancellation | None]:
    """A function from k to the cancellation of request k; None for a request that nobody cancels."""
    drawn = (workload.cancel or Cancels()).at(workload.seed, _expected_seconds(workload))
    return lambda k: drawn(workload.number_of(k))


def probe_seconds(workload: Workload, concurrency: int) -> float:
    """The delay of a probe: so long that all its requests are sent before one is answered.

    0 for a server that takes no delays.
    """
    return 0.0 if workload.foreign else max(_LEAST_DELAY, _DELAY_EACH * concurrency)


def probing(workload: Workload, concurrency: int) -> Workload:
    """The workload of a probe: c requests at once, each with the delay of the probe, without faults."""
    delay = Delay("", (probe_seconds(workload, concurrency),))
    sent = replace(warming_up(workload), faults=None, cancel=None)
    if workload.foreign:
        return sent
    return replace(sent, delay=delay) if workload.stream is None else replace(sent, first=delay)


def _expected_seconds(workload: Workload) -> float:
    """Mean seconds that the upstream takes for a request, by its settings."""
    delay = 0.0 if workload.delay is None else mean_of(workload.delay)
    faults = 0.0 if workload.faults is None else workload.faults.mean_seconds(workload.timeout)
    return delay + faults + stream_seconds(workload)
