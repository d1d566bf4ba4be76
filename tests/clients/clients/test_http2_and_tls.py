"""HTTP/2 beyond one request: no silent fallback, and requests in flight on one connection or on several."""

from __future__ import annotations

from threading import Event

import pytest

from clientlab.conformance.h2_proxy import PORT_HEADER, VERSION_HEADER, h2_proxy
from clientlab.conformance.same_work import Gate
from clientlab.conformance.server import counting_server, ok
from clientlab.conformance.tls import CA_FILE, SOUND, server_context, tls_relay
from clientlab.strategies import CLIENTS, find
from clientlab.workload.workload import Workload
from clients.measured import measure
from clients.one_client import outcomes, request_to

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", [name for name, spec in CLIENTS.items() if spec.http == "2"])
def test_a_server_without_http2_is_an_error_of_kind_protocol(name):
    """No client falls back to HTTP/1.1 without saying so, and none keeps a connection that it refused."""
    with counting_server() as server, tls_relay(server.port, [server_context(SOUND)]) as relay:
        assert outcomes(name, *[request_to(relay.url)] * 3) == ["protocol"] * 3
        assert relay.accepted == 3


@pytest.mark.parametrize("strategy", ["httpx-async-h2@workers", "pycurl-h2@threads"])
def test_requests_over_http2_are_in_flight_on_as_many_connections_as_the_client_promises(strategy):
    """All on one connection, or each on one of its own; the lab counts as many as the server."""
    concurrency, requests = 6, 30
    gate, warm = Gate(concurrency), Event()
    with counting_server(lambda _: (warm.is_set() and gate.wait()) or ok()) as server, h2_proxy(server.port) as proxy:

        def start() -> None:
            server.reset()
            warm.set()

        workload = Workload(path="/item/{k}", requests=requests, concurrency=concurrency, warmup=1)
        measured = measure(strategy, workload, proxy.url, on_start=start, ca_file=CA_FILE)
        assert sorted(seen.target for seen in server.seen) == sorted(f"/item/{k}" for k in range(requests))
        assert (measured.samples.errors, measured.numbers) == ({}, list(range(requests)))
        assert {seen.headers[VERSION_HEADER] for seen in server.seen} == {"HTTP/2.0"}
        assert server.most_in_flight == concurrency
        alone = CLIENTS[find(strategy).client].quirks.one_request_per_connection
        used = len({seen.headers[PORT_HEADER] for seen in server.seen})
        assert measured.outcome.connections_begun == used == (concurrency if alone else 1)
