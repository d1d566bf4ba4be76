"""Equal budgets: every listed strategy does the same work, as seen by a server that shares no code with the lab."""

from __future__ import annotations

import json

import pytest

from clientlab import strategies
from clientlab.conformance.server import CountingServer, Last, counting_server, ok
from clientlab.strategies import EXECUTORS
from clientlab.workload import Workload
from clients.measured import Measured, measure

# The server speaks HTTP/1.1; test_conformance_tls.py has the others.
CLIENTS = {name: row for name, row in strategies.CLIENTS.items() if row.http == "1.1"}
STRATEGIES = {name: strategy for name, strategy in strategies.STRATEGIES.items() if strategy.client in CLIENTS}

HOLD = 0.02
"""Seconds that the server holds each request, so that as many are in flight as the strategy has."""


@pytest.fixture
def server():
    """A server that answers at once."""
    with counting_server() as running:
        yield running


@pytest.fixture
def slow_server():
    """A server that holds each request for a moment."""
    with counting_server(hold=HOLD) as running:
        yield running


def conform(strategy: str, workload: Workload, server: CountingServer) -> Measured:
    """Measure, and forget what reached the server before the measured part."""
    return measure(strategy, workload, server.url, at_ready=server.reset)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("requests", "concurrency"), [(1, 4), (7, 3), (40, 8)])
def test_exactly_n_requests_reach_the_server(strategy, requests, concurrency, server):
    """Each request is sent once, with its method, headers and body; each is recorded once, without error."""
    workload = Workload(
        path="/item/{k}?x=1", method="POST", payload_size=300, headers={"X-Mine": "yes"},
        requests=requests, concurrency=concurrency, warmup=2,
    )  # fmt: skip
    measured = conform(strategy, workload, server)
    assert sorted(seen.target for seen in server.seen) == sorted(f"/item/{k}?x=1" for k in range(requests))
    assert measured.numbers == list(range(requests))
    assert measured.samples.errors == {}
    assert {seen.method for seen in server.seen} == {"POST"}
    assert {len(json.loads(seen.body)["data"]) for seen in server.seen} == {300}
    assert len({seen.body for seen in server.seen}) == 1
    for name, value in {"x-mine": "yes", "accept-encoding": "identity", "content-type": "application/json"}.items():
        assert {seen.headers.get(name) for seen in server.seen} == {value}
    assert {int(size) for size in measured.samples.records["bytes"]} == {len(b'{"ok": true}')}
    assert set(measured.samples.records["status"].tolist()) == {200}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_concurrency_is_kept_and_reached(strategy, slow_server):
    """Never more than c requests are in flight at the server, and c are where the strategy has many."""
    concurrency, requests = 6, 60
    conform(strategy, Workload(requests=requests, concurrency=concurrency, warmup=1), slow_server)
    executor = EXECUTORS[STRATEGIES[strategy].executor]
    assert slow_server.most_in_flight <= STRATEGIES[strategy].in_flight(concurrency, requests)
    if executor.unbounded:
        assert slow_server.most_in_flight > concurrency
    elif executor.name == "async-processes":  # equal shares: what does not divide is left unused
        assert slow_server.most_in_flight >= concurrency - 1
    elif executor.many:
        assert slow_server.most_in_flight == concurrency


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_connections_are_as_the_policy_promises_and_counted_right(strategy, slow_server):
    """A client a call opens N connections, a pool at most c; the lab's count is the server's."""
    concurrency, requests = 4, 24
    measured = conform(strategy, Workload(requests=requests, concurrency=concurrency, warmup=1), slow_server)
    assert measured.outcome.connections_begun == slow_server.connections
    if CLIENTS[STRATEGIES[strategy].client].policy == "per call":
        assert slow_server.connections == requests
    elif strategy == "trap-small-pool":
        assert concurrency <= slow_server.connections <= requests  # thrown away and opened again
    else:
        assert 1 <= slow_server.connections <= STRATEGIES[strategy].in_flight(concurrency, requests)


@pytest.mark.parametrize("strategy", [name for name, s in STRATEGIES.items() if not EXECUTORS[s.executor].counted])
def test_a_duration_ends_on_time(strategy, slow_server):
    """No request begins after the duration; those in flight are finished and recorded."""
    duration = 0.4
    measured = conform(strategy, Workload(duration=duration, concurrency=4, warmup=1), slow_server)
    starts = measured.samples.records["start"] - measured.outcome.began
    assert starts.max() <= duration + 0.05
    assert len(measured.samples.records) == len(slow_server.seen) > 4
    assert len(set(measured.numbers)) == len(measured.numbers)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_status_of_failure_is_an_error(client):
    """Answers of 503 are errors of kind status-5xx for every client, and of 404 of kind status-4xx."""

    def by_number(seen):
        status = {"0": "503 Service Unavailable", "1": "404 Not Found"}.get(seen.target[-1], "200 OK")
        return ok(status=status)

    with counting_server(by_number) as server:
        measured = measure(client, Workload(path="/{k}", requests=10, warmup=0), server.url)
    assert measured.samples.errors == {"status-5xx": 1, "status-4xx": 1}
    assert len(measured.samples.records) == 10


@pytest.mark.parametrize("client", CLIENTS)
def test_redirects_are_not_followed(client):
    """One request stays one request."""
    away = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    with counting_server(lambda _: away) as server:
        measured = measure(client, Workload(requests=3, warmup=0), server.url)
        assert [seen.target for seen in server.seen] == ["/"] * 3
    assert measured.samples.errors == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_dropped_connection_is_a_reset_for_every_client(client):
    """The server closes without an answer: kind reset, and not retried."""
    with counting_server(lambda _: None) as server:
        measured = measure(client, Workload(requests=3, warmup=0), server.url)
        assert len(server.seen) == 3
    assert measured.samples.errors == {"reset": 3}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Last(ok()[:-5]), id="truncated"),
        pytest.param(Last(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"), id="truncated-chunk"),
        pytest.param(b"\x00\xff\xfe this is\r\nnot HTTP\r\n\r\n", id="nonsense"),
    ],
)
def test_a_truncated_answer_and_nonsense_are_of_kind_protocol_for_every_client(client, answer):
    """On a new connection and on one that was used before; not retried, and the next request is not spoiled."""
    with counting_server(lambda seen: ok() if seen.target in {"/0", "/3"} else answer) as server:
        measured = measure(client, Workload(path="/{k}", requests=4, warmup=0), server.url)
        assert [seen.target for seen in server.seen] == ["/0", "/1", "/2", "/3"]
    assert measured.samples.errors == {"protocol": 2}
    assert measured.samples.records["status"].tolist() == [200, 0, 0, 200]


@pytest.mark.parametrize("client", CLIENTS)
def test_silence_is_a_time_out_for_every_client(client):
    """The server accepts and never answers: kind timeout-read, within the time limit."""
    with counting_server(hold=1.5) as server:
        measured = measure(client, Workload(requests=2, warmup=0, timeout=0.2), server.url)
    assert measured.samples.errors == {"timeout-read": 2}
    assert measured.samples.records["seconds"].max() < 0.6


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection_is_an_error_of_connecting_and_no_connection(client):
    """Nothing listens: kind connect."""
    with counting_server() as gone:
        pass
    measured = measure(client, Workload(requests=3, warmup=0), gone.url)
    assert measured.samples.errors == {"connect": 3}
    assert measured.outcome.connections_begun == 3  # begun, and none opened


def test_every_client_runs_bare_under_its_own_name():
    """`clientlab run -t NAME` works for each client, serially."""
    for client in CLIENTS:
        assert not EXECUTORS[STRATEGIES[client].executor].many
