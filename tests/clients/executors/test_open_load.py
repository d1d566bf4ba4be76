"""Every executor under open load: each request begins when it is due, or later if all
places are taken.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload, make_workload
from clients.measured import Measured, measure

STRATEGIES = {
    "http.client@serial": 1,
    "aiohttp@await": 1,
    "http.client@threads": 4,
    "http.client@thread-pool": 4,
    "http.client@queue": 4,
    "http.client@processes": 3,
    "aiohttp@gather": 4,
    "aiohttp@semaphore": 4,
    "aiohttp@workers": 4,
    "http.client@sync_to_async": 4,
    "http.client@blocking-coroutines": 1,
    "aiohttp@async-processes": 8,
    "aiohttp@async-threads": 8,
    "requests-session@futures": 4,
    "urllib3@gevent": 4,
    "pycurl@multi": 4,
    "httpx-async@trio": 4,
}
"""A strategy for each way to follow a schedule → its requests in flight."""


def lateness(found: Measured, workload: Workload) -> np.ndarray:
    schedule = arrivals_of(workload)
    planned = [
        found.outcome.began + schedule.start_of(number)
        for number in found.samples.numbers.tolist()
    ]
    return (found.samples.records["start"] - planned)[np.argsort(found.samples.numbers)]


@pytest.mark.real
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_request_is_sent_once_and_never_before_it_is_due(strategy):
    """An executor that adds a delay to each request would be late by the whole
    schedule.
    """
    connections = (
        "warm"
        if strategy in {"http.client@processes", "aiohttp@async-processes"}
        else "cold"
    )
    spacing = "poisson" if strategy == "aiohttp@workers" else "uniform"
    workload = make_workload(
        rate=150,
        requests=45,
        arrivals=spacing,
        concurrency=STRATEGIES[strategy],
        warmup=2,
        connections=connections,
    )
    with counting_server() as server:
        found = measure(strategy, workload, server.url)
    assert found.numbers == list(range(45))
    assert found.samples.errors == {}
    late = lateness(found, workload)
    assert late.min() >= 0
    assert np.median(late) < 0.2  # the whole schedule takes 0.3 s


@pytest.mark.real
@pytest.mark.parametrize(
    "strategy", ["http.client@threads", "aiohttp@workers", "pycurl@multi"]
)
def test_a_request_without_a_free_place_is_late_and_one_that_is_too_late_is_dropped(
    strategy,
):
    """Two places of 50 ms serve 40 requests per second, and 200 arrive."""
    workload = make_workload(
        rate=200, requests=60, concurrency=2, warmup=0, max_late=0.1
    )
    with counting_server(hold=0.05) as server:
        found = measure(strategy, workload, server.url)
        assert server.most_in_flight == 2
    assert found.numbers == list(range(60))
    dropped = found.samples.errors["dropped"]
    late = lateness(found, workload)
    assert len(server.seen) == 60 - dropped
    assert 0 < dropped < 60
    ordered = found.samples.records[np.argsort(found.samples.numbers)]
    not_sent = ordered["status"] == 0
    assert not_sent.sum() == dropped
    assert ordered["seconds"][not_sent].max() == 0.0
    assert late[not_sent].min() > 0.1


@pytest.mark.real
@pytest.mark.parametrize("strategy", ["http.client@threads", "pycurl@multi"])
def test_a_trial_ends_although_its_last_arrivals_are_dropped(strategy):
    """Nothing is in flight then: the first request ends when it is too late for all
    others.
    """
    workload = make_workload(
        rate=400, requests=8, concurrency=1, warmup=1, max_late=0.1
    )
    with counting_server(hold=0.3) as server:
        found = measure(strategy, workload, server.url)
    assert found.numbers == list(range(8))
    assert found.samples.errors == {"dropped": 7}


@pytest.mark.real
def test_arrivals_do_not_wait_for_answers():
    workload = make_workload(rate=200, requests=20, concurrency=20, warmup=0)
    with counting_server(hold=0.3) as server:
        found = measure("aiohttp@gather", workload, server.url)
        assert server.most_in_flight == 20
    assert found.samples.errors == {}
