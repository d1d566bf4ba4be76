"""asyncio in threads: each has an event loop and a client of its own, and all of them take from the same numbers."""

from __future__ import annotations

import pytest

from clientlab.conformance.same_work import Gate
from clientlab.conformance.server import counting_server, ok
from clientlab.workload.workload import Workload
from clients.measured import measure

pytestmark = pytest.mark.real


def test_each_thread_has_a_client_and_a_share_of_the_warm_connections():
    """Each of the six connections is opened in the warm-up, though the first thread could send all of it alone."""
    workload = Workload(requests=60, concurrency=6, connections="warm", warmup=1)
    with counting_server() as server:
        found = measure("aiohttp@async-threads?threads=4", workload, server.url)
        assert server.connections == 6
    assert found.numbers == list(range(60))
    assert (found.outcome.callers, found.outcome.processes) == (4, 1)
    assert (found.outcome.connections_begun, found.outcome.connections_in_all) == (0, 6)


def test_requests_in_flight_are_divided_among_the_threads():
    """As many as `-c` permits in all, and no thread without a request."""
    concurrency = 10
    gate = Gate(concurrency)
    workload = Workload(requests=4 * concurrency, concurrency=concurrency, warmup=0)
    with counting_server(lambda _: gate.wait() or ok(), 0.01) as server:
        found = measure("aiohttp@async-threads", workload, server.url)
        assert server.most_in_flight == concurrency
    assert found.samples.errors == {}
    assert found.numbers == list(range(4 * concurrency))
    assert found.outcome.callers == 4
