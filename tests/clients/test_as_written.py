"""Clients as their users write them: pool, time limits and retries of the library."""

from __future__ import annotations

import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.clients.requests_clients import RequestsSession
from clientlab.conformance.server import counting_server, ok
from clientlab.workload.workload import Workload
from clients.measured import measure

SENT = {  # how often the library sends a GET whose kept connection is closed before the answer
    "requests-session": 1, "urllib3": 4, "httpx-client": 1, "httpx-async": 1, "httpx2-client": 1, "httpx2-async": 1,
    "aiohttp": 2, "niquests": 1, "niquests-async": 1,
}  # fmt: skip
LIMITS = {"httpx-client": 5.0, "httpx-async": 5.0, "httpx2-client": 5.0, "httpx2-async": 5.0}


def broken(seen):
    """Request 1 gets no answer, however often it is sent."""
    return None if seen.target == "/1" else ok()


@pytest.mark.parametrize("name", SENT)
def test_a_library_sends_again_what_it_sends_again_for_its_users(name):
    """And with the lab's budget, never."""
    for settings, sent in (("", 1), ("?as_written=true", SENT[name])):
        with counting_server(broken) as server:
            workload = Workload(path="/{k}", requests=2, concurrency=1, warmup=0)
            measured = measure(name + settings, workload, server.url)
        assert measured.samples.errors == {"reset": 1}
        assert [seen.target for seen in server.seen].count("/1") == sent


@pytest.mark.parametrize("name", LIMITS)
def test_httpx_has_its_own_time_limit(name):
    """Of 5 seconds for each wait, that for a connection of the pool included."""
    made = strategies.load(strategies.client_spec(name).import_path)(
        Budget(8, 0.5, None), lambda: None, as_written=True
    )
    client = made.made(made.library.Client, None)
    assert set(client.timeout.as_dict().values()) == {LIMITS[name]}
    assert (made.limits().max_connections, made.limits().keepalive_expiry) == (100, 5.0)
    client.close()


def test_requests_keeps_ten_connections():
    """However many it opens beside them."""
    made = RequestsSession(Budget(120, 0.5, None), lambda: None, as_written=True)
    made.open()
    with counting_server() as server:
        assert made.session.get_adapter(server.url)._pool_maxsize == 10
    made.close()


def test_aiohttp_has_a_hundred_connections():
    """Further requests wait for one of them."""
    with counting_server(hold=0.2) as server:
        workload = Workload(requests=120, concurrency=120, warmup=0, connections="cold")
        measured = measure("aiohttp@workers?as_written=true", workload, server.url)
    assert (measured.samples.errors, server.connections) == ({}, 100)
