"""HTTP/2 and TLS beyond one request: no silent fallback, handshakes that are not finished, connections and streams."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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
from tls_servers import HANDSHAKE_FAULTS, handshake_faults

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", [name for name, spec in CLIENTS.items() if spec.http == "2"])
def test_a_server_without_http2_is_an_error_of_kind_protocol(name):
    """No client falls back to HTTP/1.1 without saying so, and none keeps a connection that it refused."""
    with counting_server() as server, tls_relay(server.port, [server_context(SOUND)]) as relay:
        assert outcomes(name, *[request_to(relay.url)] * 3) == ["protocol"] * 3
        assert relay.accepted == 3


def test_a_handshake_that_is_not_finished_is_no_connection():
    """Reset or closed: connect; silent: timeout-connect; no TLS at all: tls."""

    def attempts(name: str) -> tuple[list[object], int]:
        with handshake_faults() as server:
            request = request_to(f"https://127.0.0.1:{server[0]}")
            return outcomes(name, *[request] * len(HANDSHAKE_FAULTS), timeout=2.0), server[1]

    clients = ["urllib3", "aiohttp", "httpx-client", "pycurl"]
    with ThreadPoolExecutor(len(clients)) as pool:
        for found in pool.map(attempts, clients):
            assert found == (list(HANDSHAKE_FAULTS.values()), len(HANDSHAKE_FAULTS))


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
