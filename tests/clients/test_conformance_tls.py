"""The same over TLS and HTTP/2: certificates verified, the promised version spoken, connections counted right."""

from __future__ import annotations

import time
from threading import Event

import psutil
import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.conformance.evidence import Evidence
from clientlab.conformance.evidence import measure as conformance_measure
from clientlab.conformance.h2_proxy import h2_proxy
from clientlab.conformance.same_work import Gate
from clientlab.conformance.server import Last, counting_server, ok
from clientlab.conformance.tls import CA_FILE, SOUND, server_context, tls_relay
from clientlab.errors import Fault
from clientlab.strategies import EXECUTORS, STRATEGIES
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload
from clients.ahead import begun_ahead
from clients.each_library import one_of_each_library
from clients.measured import counted, measure
from tls_servers import HANDSHAKE_FAULTS, handshake_faults

CLIENTS = {name: spec for name, spec in strategies.CLIENTS.items() if not spec.program}
HOLD = 0.02
"""Seconds that the server holds each request."""
SILENCE = 2.0
H2_CLIENTS = [name for name, spec in CLIENTS.items() if spec.http == "2"]
H2_STRATEGIES = [name for name, strategy in STRATEGIES.items() if strategy.client in H2_CLIENTS]


def answer(seen):
    """What the server behind Caddy answers, by path."""
    if seen.target == "/silence":
        time.sleep(SILENCE)  # the server's work, not a wait for a condition
    return {
        "/faults/1": ok(status="503 Service Unavailable"),
        "/faults/2": ok(status="404 Not Found"),
        "/faults/3": Last(ok()[:-5]),
    }.get(seen.target, ok())


@pytest.fixture(scope="module")
def behind():
    """The server behind Caddy."""
    with counting_server(answer, hold=HOLD) as running:
        yield running


@pytest.fixture(scope="module")
def url(behind):
    """Where Caddy answers, in HTTP/1.1 and in HTTP/2 as it is asked."""
    with h2_proxy(behind.port) as running:
        yield running.url


def connections_of(behind) -> int:
    """How many connections the client had to Caddy."""
    return len({seen.headers["x-seen-port"] for seen in behind.seen})


def versions_of(behind) -> set[str]:
    """The versions of HTTP that the client spoke to Caddy."""
    return {seen.headers["x-seen-version"] for seen in behind.seen}


@pytest.mark.parametrize("client", one_of_each_library(CLIENTS))
def test_every_client_speaks_its_version_over_tls_and_its_connections_are_counted(client, url, behind):
    """As the server tells: all requests, in the version that the list has, on the connections that the lab counts.

    A client that opens connections ahead may open one more, and use it or not.
    """
    workload = Workload(path="/item/{k}", method="POST", payload_size=300, requests=5, concurrency=1, warmup=1)
    measured = measure(client, workload, url, on_start=behind.reset, ca_file=CA_FILE)
    assert measured.samples.errors == {}
    assert [(seen.method, seen.target) for seen in behind.seen] == [("POST", f"/item/{k}") for k in range(5)]
    assert {len(seen.body) for seen in behind.seen} == {len(b'{"data": ""}') + 300}
    assert versions_of(behind) == {"HTTP/2.0" if client in H2_CLIENTS else "HTTP/1.1"}
    used = connections_of(behind)
    begun = counted(client, measured.outcome.connections_begun, used)
    permitted = {5} if CLIENTS[client].policy == "per call" else {1, 2} if CLIENTS[client].quirks.opens_ahead else {1}
    assert {used, begun} <= permitted
    assert used == begun or CLIENTS[client].quirks.opens_ahead


@pytest.fixture(scope="module")
def unfinished(request):
    """Evidence of handshakes that a server did not finish, and how many connections it has had."""

    def trial(client: str) -> tuple[Evidence, int]:
        workload = Workload(path="/{k}", requests=len(HANDSHAKE_FAULTS), concurrency=1, warmup=0, timeout=1.0)
        with handshake_faults() as server:
            url = f"https://127.0.0.1:{server[0]}"
            return conformance_measure(strategies.find(client), workload, url, ca_file=CA_FILE), server[1]

    yield from begun_ahead(request, "client", trial)


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(CLIENTS))
def test_a_handshake_that_is_not_finished_is_no_connection(client, unfinished):
    """Reset or closed: connect; silent: timeout-connect; no TLS at all: tls. Each attempt is counted."""
    found, accepted = unfinished(client)
    assert [found.kind(number) for number in range(len(HANDSHAKE_FAULTS))] == list(HANDSHAKE_FAULTS.values())
    assert counted(client, found.outcome.connections_begun, accepted) == accepted == len(HANDSHAKE_FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(name for name in CLIENTS if name not in H2_CLIENTS))
def test_faults_are_of_the_same_kind_over_tls(client):
    """Dropped without an answer: reset; cut short: protocol. The next connection is a new one, and is counted."""

    def by_number(seen):
        return {"/0": None, "/2": Last(ok()[:-5])}.get(seen.target, ok())

    with counting_server(by_number) as server, tls_relay(server.port, [server_context(SOUND)]) as relay:
        workload = Workload(path="/{k}", requests=5, concurrency=1, warmup=0)
        measured = measure(client, workload, relay.url, on_start=relay.reset, ca_file=CA_FILE)
        assert [seen.target for seen in server.seen] == [f"/{k}" for k in range(5)]
        assert relay.accepted == counted(client, measured.outcome.connections_begun, relay.accepted)
        assert any(relay.resumed) == CLIENTS[client].quirks.resumes_tls
    assert measured.samples.errors == {"reset": 1, "protocol": 1}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", H2_STRATEGIES)
def test_http2_strategies_reach_their_concurrency_on_the_connections_they_promise(strategy):
    """All requests in flight on one connection, or each on one of its own.

    The server holds the first requests until as many came.
    """
    concurrency, requests = 6, 30
    in_flight = concurrency if EXECUTORS[STRATEGIES[strategy].executor].concurrent else 1
    workload = Workload(path="/item/{k}", requests=requests, concurrency=concurrency, warmup=1)
    gate, warm = Gate(in_flight), Event()
    with counting_server(lambda _: (warm.is_set() and gate.wait()) or ok()) as server, h2_proxy(server.port) as proxy:

        def start() -> None:
            server.reset()
            warm.set()

        measured = measure(strategy, workload, proxy.url, on_start=start, ca_file=CA_FILE)
        assert sorted(seen.target for seen in server.seen) == sorted(f"/item/{k}" for k in range(requests))
        assert (measured.samples.errors, measured.numbers) == ({}, list(range(requests)))
        assert versions_of(server) == {"HTTP/2.0"}
        assert server.most_in_flight == in_flight
        quirks = CLIENTS[STRATEGIES[strategy].client].quirks
        connections = in_flight if quirks.one_request_per_connection else 1
        assert measured.outcome.connections_begun == connections_of(server) == connections


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(H2_CLIENTS))
def test_a_server_without_http2_is_an_error_of_kind_protocol(client):
    """No client falls back to HTTP/1.1 without saying so, on the first request or on a later one."""
    with counting_server() as server, tls_relay(server.port, [server_context(SOUND)]) as relay:
        measured = measure(client, Workload(requests=3, warmup=0), relay.url, ca_file=CA_FILE)
        assert relay.accepted == measured.outcome.connections_begun
    assert measured.samples.errors == {"protocol": 3}


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(H2_CLIENTS))
def test_faults_are_of_the_same_kind_over_http2(client, url):
    """Statuses, an answer cut short, and nobody there; the requests after a fault are not spoiled."""
    workload = Workload(path="/faults/{k}", requests=6, warmup=0)
    measured = measure(client, workload, url, ca_file=CA_FILE)
    assert measured.samples.errors == {"status-5xx": 1, "status-4xx": 1, "protocol": 1}
    with counting_server() as gone:
        pass
    nowhere = f"https://127.0.0.1:{gone.port}"
    measured = measure(client, Workload(requests=2, warmup=0), nowhere, ca_file=CA_FILE)
    assert measured.samples.errors == {"connect": 2}


@pytest.fixture(scope="module")
def silenced(request):
    """A server that is silent for a while, behind a Caddy of its own: no other test counts its requests."""
    with counting_server(answer) as server, h2_proxy(server.port) as proxy:
        # Limits the handshakes too, and five trials at once take two cores: of 0.3 s, one did not suffice.
        workload = Workload(path="/silence", requests=2, warmup=0, timeout=1.0)
        yield from begun_ahead(request, "client", lambda client: measure(client, workload, proxy.url, ca_file=CA_FILE))


@pytest.mark.slow
@pytest.mark.parametrize(
    "client",
    one_of_each_library(name for name, spec in CLIENTS.items() if spec.http == "2" or spec.kind == "asyncio"),
)
def test_silence_is_a_time_out_over_tls(client, silenced):
    """And not a fault of TLS, which waits for bytes by exceptions of its own."""
    assert silenced(client).samples.errors == {"timeout-read": 2}


def test_pycurl_keeps_no_connection_that_it_refused():
    """Of a server without HTTP/2: each answer that is refused ends its connection."""
    budget, ended = Budget(1, 5.0, CA_FILE), []
    with counting_server() as server, tls_relay(server.port, [server_context(SOUND)]) as relay:
        client = strategies.load(CLIENTS["pycurl-h2"].import_path)(budget, lambda: None)
        client.open()
        for _ in range(3):
            with pytest.raises(Fault, match="HTTP/1"):
                client.send(requests_of(Workload(), relay.url)(0))
            peers = [
                c.raddr.port for c in psutil.Process().net_connections("tcp") if c.raddr and c.status == "ESTABLISHED"
            ]
            ended.append(peers.count(int(relay.url.rpartition(":")[2])) == 0)
        client.close()
    assert ended == [True] * 3
