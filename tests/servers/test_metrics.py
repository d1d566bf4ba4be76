"""Metrics of an upstream with several workers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import psutil
import pytest

from running import Server, ask, eventually, gunicorn

pytestmark = pytest.mark.real

ACCEPTED = "mockupstream_connections_accepted_total"
IN_FLIGHT = "mockupstream_requests_in_flight"
HELD = "mockupstream_hold_seconds_count"


def grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the samples that changed, by how much."""
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def test_one_failed_request(upstream: Server) -> None:
    """After one request that failed, its status is counted once, with its bytes, delay and hold time."""
    before = upstream.metrics()
    body = upstream.ask("/?status=503&delay=30ms", "POST", b"12345").body
    change = grown(before, upstream.metrics())
    assert change['mockupstream_requests_total{route="/",status="503"}'] == 1
    assert change[ACCEPTED] == 1
    assert change["mockupstream_request_body_bytes_total"] == 5
    assert change["mockupstream_response_body_bytes_total"] == len(body)
    assert change["mockupstream_asked_delay_seconds_total"] == pytest.approx(0.03)
    assert change["mockupstream_hold_seconds_sum"] >= 0.03
    assert change[HELD] == 1
    assert 'mockupstream_hold_seconds_bucket{le="0.025"}' not in change
    assert change['mockupstream_hold_seconds_bucket{le="60.0"}'] == 1


@pytest.mark.parametrize(
    ("path", "label", "sent"),
    [
        ("/stream/10?chunk=3", 'route="/stream/{n}",status="200"', 10),
        ("/nope", 'route="unknown",status="404"', None),
        ("/bytes/9999999", 'route="/bytes/{n}",status="400"', None),
    ],
)
def test_routes_are_counted_by_template(upstream: Server, path: str, label: str, sent: int | None) -> None:
    """Requests are counted by the route's template and the status, unknown paths and refusals included."""
    before = upstream.metrics()
    response = upstream.ask(path)
    change = grown(before, upstream.metrics())
    assert change[f"mockupstream_requests_total{{{label}}}"] == 1
    assert change["mockupstream_response_body_bytes_total"] == (len(response.body) if sent is None else sent)


def test_scrapes_and_health_checks_are_invisible(upstream: Server) -> None:
    """Neither /metrics nor /healthz changes a count."""
    before = upstream.metrics()
    upstream.ask("/healthz")
    assert all("cpu_seconds" in name for name in grown(before, upstream.metrics()))


def test_connections_are_counted_once(upstream: Server) -> None:
    """A known number of connections with a known number of requests on each is what is counted."""
    before = upstream.metrics()
    for _ in range(7):
        with contextlib.closing(upstream.connect()) as connection:
            ask(connection, "/healthz")
            for _ in range(3):
                ask(connection, "/")
    change = grown(before, upstream.metrics())
    assert change[ACCEPTED] == 7
    assert change[HELD] == 7 * 3


def test_a_client_that_leaves_is_no_longer_in_flight(upstream: Server) -> None:
    """Requests whose clients leave during the delay, or during the body, are in flight no longer than their time."""
    assert upstream.metric(IN_FLIGHT) == 0
    leaving = []
    for path in (b"/?delay=1s", b"/drip?duration=1&numbytes=3", b"/bytes/1000000"):
        connection = socket.create_connection(("127.0.0.1", upstream.port))
        connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        leaving.append(connection)
    eventually(lambda: upstream.metric(IN_FLIGHT) >= 2, "two requests are in flight")
    for connection in leaving:
        connection.close()
    eventually(lambda: upstream.metric(IN_FLIGHT) == 0, "nothing is in flight")


def test_each_worker_has_counters_that_add_up(upstream: Server) -> None:
    """CPU time and held time of both workers, by their number; the totals are their sums."""
    for _ in range(20):
        upstream.ask("/")
    found = upstream.metrics()
    for worker, total in (
        ("worker_cpu_seconds_total", "cpu_seconds_total"),
        ("worker_hold_seconds_total", "hold_seconds_sum"),
    ):
        parts = [value for name, value in found.items() if name.startswith(f"mockupstream_{worker}")]
        assert len(parts) == 2
        assert sum(parts) == pytest.approx(found[f"mockupstream_{total}"])


def test_totals_outlive_a_killed_worker() -> None:
    """When a worker is killed, totals stay as they were or grow, another takes its place, and its CPU time stays."""
    with gunicorn("flask") as server:
        for _ in range(40):
            server.ask("/")
        before = server.metrics()
        workers = psutil.Process(server.process.pid).children()
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
        psutil.wait_procs(workers)
        eventually(lambda: server.metric("mockupstream_workers") == 2, "two new workers serve")
        after = server.metrics()
        assert after[ACCEPTED] == before[ACCEPTED] == 40
        assert after[HELD] == 40
        assert after["mockupstream_cpu_seconds_total"] >= before["mockupstream_cpu_seconds_total"]
        assert after["mockupstream_cpu_seconds_total"] > 0
        assert after[IN_FLIGHT] == 0
