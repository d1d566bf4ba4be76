"""Settings of a strategy, written behind its name: what the server sees of them."""

from __future__ import annotations

import pytest

from clientlab.conformance.load import Gate
from clientlab.conformance.server import counting_server, ok
from clientlab.workload.workload import Workload
from clients.measured import measure

pytestmark = pytest.mark.real


def seen_by_server(strategy: str, requests: int, concurrency: int, hold: float = 0.0, until: int = 1):
    """The connections, and the most requests in flight, of one trial without warm-up and without errors.

    The server holds each request for `hold` seconds, and the first ones `until` so many are in flight.
    """
    gate = Gate(until)
    with counting_server(lambda _: gate.wait() or ok(), hold) as server:
        workload = Workload(requests=requests, concurrency=concurrency, warmup=0)
        measured = measure(strategy, workload, server.url)
        assert measured.samples.errors == {}
        assert measured.numbers == list(range(requests))
        assert measured.outcome.connections_begun == server.connections
        return server.connections, server.most_in_flight


def test_a_client_told_to_keep_no_connection_opens_one_a_request():
    assert seen_by_server("aiohttp?force_close=true", requests=5, concurrency=1)[0] == 5


@pytest.mark.parametrize(
    ("strategy", "most"),
    [
        ("requests-session@threads?pool=2&pool_block=true", 2),
        ("requests-session@threads?max_workers=3", 3),
        ("sync_multiprocess?processes=3", 3),
    ],
)
def test_a_limit_written_behind_the_name_holds(strategy, most):
    assert seen_by_server(strategy, requests=24, concurrency=6, hold=0.01, until=most)[1] == most


def test_without_a_limit_from_the_lab_gather_sends_all_at_once():
    assert seen_by_server("httpx-async@gather?library_defaults=true", requests=20, concurrency=4, until=20)[1] == 20


def test_each_request_is_sent_once_on_another_event_loop():
    seen_by_server("aiohttp@workers?loop=uvloop", requests=12, concurrency=4)
