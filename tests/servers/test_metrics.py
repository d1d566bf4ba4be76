"""Metrics of an upstream with several workers."""

from __future__ import annotations

import contextlib
import socket

import pytest

from running import Server, ask, eventually

pytestmark = pytest.mark.real

ACCEPTED = "mockupstream_connections_accepted_total"
IN_FLIGHT = "mockupstream_requests_in_flight"
HELD = "mockupstream_hold_seconds_count"


def grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the samples that changed, by how much."""
    return {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def test_one_failed_request(upstream: Server) -> None:
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


def test_connections_are_counted_once(upstream: Server) -> None:
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
