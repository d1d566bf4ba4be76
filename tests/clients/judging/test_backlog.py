"""Whether the backlog of an open load grew: an overload that a large limit of requests in flight hides."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.judging.backlog import growth_in
from clientlab.results.trial import Slice
from clientlab.running.open_load import delayed_at, load_slices
from clients.documents import an_open_trial

EDGES = 60


def queue(planned: np.ndarray, served: float, delay: float = 0.0) -> np.ndarray:
    """When each request ends, at a server that does so many per second in their order, and then waits that long."""
    ends, free = [], 0.0
    for start in planned:
        free = max(start, free) + 1 / served
        ends.append(free + delay)
    return np.array(ends)


def trial_of(planned: np.ndarray, ends: np.ndarray, *, length: float, delay: float = 0.0, **changes):
    """A trial that sent each request when it was due, with its slices as the lab counts them."""
    wall = max(length, float(ends.max()))
    edges = np.linspace(0.0, wall, EDGES + 1)
    delayed = delayed_at(planned, np.full(len(planned), delay), edges)
    counts = np.histogram(ends, edges)[0].tolist()
    slices = [Slice(at=at, requests=count, errors=0) for at, count in zip(edges, counts, strict=False)]
    rate = len(planned) / length
    shown = {"planned_per_second": rate, "achieved_per_second": rate, "wall": wall, "over_time": slices}
    shown |= {"load_over_time": load_slices(planned, planned, planned[:0], edges, delayed), **changes}
    return an_open_trial("urllib3", 1, **shown)


def evenly(rate: float, length: float) -> np.ndarray:
    return np.arange(round(rate * length)) / rate


@pytest.mark.parametrize(("rate", "served", "grown"), [(2000, 1000, "5,0"), (200, 190, "5")])
def test_a_queue_that_grows_is_an_overload_however_many_requests_may_be_in_flight(rate, served, grown):
    planned = evenly(rate, 10.0)
    assert f"grew by {grown}" in growth_in(trial_of(planned, queue(planned, served), length=10.0))


@pytest.mark.parametrize("rate", [50, 189])
def test_a_server_that_keeps_up_is_not_overloaded(rate):
    planned = evenly(rate, 10.0)
    assert growth_in(trial_of(planned, queue(planned, 190), length=10.0)) is None


@pytest.mark.parametrize("delay", [0.5, 3.0])
def test_requests_that_only_wait_for_their_delay_are_no_queue(delay):
    """With a delay of half the trial, requests in flight rise during half the trial."""
    planned = evenly(500, 5.0)
    trial = trial_of(planned, planned + delay + 0.001, length=5.0, delay=delay)
    assert growth_in(trial) is None


@pytest.mark.parametrize(("served", "grows"), [(500, True), (1010, False)])
def test_an_overload_at_the_end_of_a_rising_rate_is_found(served, grows):
    planned = np.concatenate([evenly(100, 5.0), 5.0 + evenly(1000, 5.0)])
    assert (growth_in(trial_of(planned, queue(planned, served), length=10.0)) is not None) == grows


@pytest.mark.parametrize(("slow", "grows"), [(1, False), (600, True)])
def test_stragglers_after_the_schedule_are_no_overload(slow, grows):
    planned = evenly(1000, 1.0)
    ends = planned + 0.01
    ends[-slow:] = np.linspace(59.0, 60.0, slow)
    trial = trial_of(planned, ends, length=1.0)
    load = trial.open_load.model_copy(update={"in_flight_at_end": slow + 10})
    found = growth_in(trial.model_copy(update={"open_load": load}))
    assert (found is not None) == grows
