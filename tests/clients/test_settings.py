"""Settings of a strategy, written behind its name: what the server sees of them."""

from __future__ import annotations

import pytest

from clientlab.conformance.same_work import Gate
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


@pytest.mark.parametrize(
    "strategy",
    [
        "aiohttp?force_close=true",
        "httpx-client?max_keepalive=0",
    ],
)
def test_a_client_told_to_keep_no_connection_opens_one_a_request(strategy):
    """By whatever name its library has for that."""
    assert seen_by_server(strategy, requests=5, concurrency=1)[0] == 5


@pytest.mark.parametrize(
    ("strategy", "most"),
    [
        ("aiohttp@gather?limit_per_host=2", 2),
        ("requests-session@threads?pool=2&pool_block=true", 2),
        ("requests-session@threads?max_workers=3", 3),
        ("requests-session@gevent?size=3", 3),
        ("pycurl@multi?pool=2", 2),
        ("sync_multiprocess?processes=3", 3),
    ],
)
def test_a_limit_written_behind_the_name_holds(strategy, most):
    """Of the library's pool, or of the executor's size, which then wins over -c."""
    assert seen_by_server(strategy, requests=24, concurrency=6, hold=0.01, until=most)[1] == most


@pytest.mark.parametrize("strategy", ["httpx-async@gather?library_defaults=true"])
def test_without_a_limit_from_the_lab_gather_sends_all_at_once(strategy):
    """More requests are in flight than -c says."""
    assert seen_by_server(strategy, requests=20, concurrency=4, until=20)[1] == 20


@pytest.mark.parametrize(
    "strategy",
    ["aiohttp@workers?loop=uvloop", "requests-session@sync_to_async?loop=uvloop"],
)
def test_each_request_is_sent_once_on_another_event_loop(strategy):
    """Executors that run blocking clients in threads have the setting too. Connections are counted."""
    seen_by_server(strategy, requests=12, concurrency=4)


def test_chunks_in_a_pool_of_processes_are_sized_apart():
    """The articles have six chunks, and one for the remainder, in a pool of seven."""
    connections, _ = seen_by_server("aiohttp@async-processes?chunks=2&processes=3", 21, 30, hold=0.02)
    assert 3 <= connections <= 21
