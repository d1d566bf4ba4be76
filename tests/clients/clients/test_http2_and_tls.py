"""HTTP/2 beyond one request: no silent fallback, and requests in flight on one connection or on several."""

from __future__ import annotations

from threading import Event

import pytest

from clientlab.conformance.load import Gate
from clientlab.conformance.server import CA_FILE, counting_server, ok, server_context
from clientlab.strategies import CLIENTS, find
from clientlab.workload.workload import Workload
from clients.measured import measure
from clients.one_client import outcomes, request_to

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", [name for name, spec in CLIENTS.items() if spec.http == "2"])
def test_a_server_without_http2_is_an_error_of_kind_protocol(name):
    """No client falls back to HTTP/1.1 without saying so, and none keeps a connection that it refused."""
    with counting_server(tls=[server_context()]) as server:
        assert outcomes(name, *[request_to(server.url)] * 3) == ["protocol"] * 3
        assert server.accepted == 3


@pytest.mark.parametrize("strategy", ["httpx-async-h2@workers", "pycurl-h2@threads"])
def test_requests_over_http2_are_in_flight_on_as_many_connections_as_the_client_promises(strategy):
    """All on one connection, or each on one of its own; the lab counts as many as the server."""
    concurrency, requests = 6, 30
    gate, warm = Gate(concurrency), Event()
    http2 = server_context(version="h2")
    with counting_server(lambda _: (warm.is_set() and gate.wait()) or ok(), tls=[http2]) as server:

        def start() -> None:
            server.reset()
            warm.set()

        workload = Workload(path="/item/{k}", requests=requests, concurrency=concurrency, warmup=1)
        measured = measure(strategy, workload, server.url, on_start=start, ca_file=CA_FILE)
        assert sorted(seen.target for seen in server.seen) == sorted(f"/item/{k}" for k in range(requests))
        assert (measured.samples.errors, measured.numbers) == ({}, list(range(requests)))
        assert {seen.version for seen in server.seen} == {"HTTP/2"}
        assert server.most_in_flight == concurrency
        alone = CLIENTS[find(strategy).client].quirks.one_request_per_connection
        assert measured.outcome.connections_begun == server.connections == (concurrency if alone else 1)
