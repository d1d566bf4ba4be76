"""asyncio in threads: each has an event loop and a client of its own, and all of them take from the same numbers."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server
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
