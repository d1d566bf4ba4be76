"""libcurl's multi interface: one thread, many transfers, handles used again, failures by kind."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import Last, counting_server, ok
from clientlab.workload.workload import Workload
from clients.measured import measure

pytestmark = pytest.mark.real

STRATEGY = "pycurl@multi"


def test_a_fault_spoils_no_other_transfer():
    with counting_server(lambda seen: Last(ok()[:-5]) if seen.target.endswith("5") else ok()) as server:
        measured = measure(STRATEGY, Workload(path="/{k}", requests=40, concurrency=4, warmup=0), server.url)
    assert measured.samples.errors == {"protocol": 4}
    assert measured.samples.records["status"].tolist().count(200) == 36


def test_silence_is_a_time_out():
    """It is libcurl's timer that ends the wait, while no socket is ready."""
    with counting_server(hold=1) as server:
        measured = measure(STRATEGY, Workload(requests=3, concurrency=3, warmup=0, timeout=0.2), server.url)
    assert measured.samples.errors == {"timeout-read": 3}


def test_the_wait_for_a_connection_of_the_pool_is_in_no_time_limit():
    """A transfer is begun when there is a connection for it, though more may be in flight by the workload."""
    with counting_server(hold=0.3) as server:
        workload = Workload(requests=4, concurrency=4, warmup=0, timeout=1.1)
        measured = measure(f"{STRATEGY}?pool=1", workload, server.url)
        assert server.connections == 1
    assert measured.samples.errors == {}
