"""What both upstreams do to connections when they were asked for faults."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

import pytest

from running import FRAMEWORKS, Server, ask, development, eventually, gunicorn

pytestmark = pytest.mark.real

IN_FLIGHT = "mockupstream_requests_in_flight"
SERVERS = {
    "flask": lambda: gunicorn("flask"),
    "flask-sync": lambda: gunicorn("flask", worker_class="sync"),
    "aiohttp": lambda: gunicorn("aiohttp"),
    "flask-development": lambda: development("flask"),
    "aiohttp-development": lambda: development("aiohttp"),
}


def put(server: Server, faults: str, seed: int = 1) -> None:
    """Begin with these faults."""
    document = json.dumps({"faults": faults, "seed": seed}).encode()
    assert server.ask("/faults", "PUT", document).status == 204


def counts(server: Server) -> dict[str, Any]:
    """Return the summary."""
    return json.loads(server.ask("/faults").body)


def exchange(server: Server, target: str, method: str, head: str = "") -> bytes | None:
    """Return the response until the connection ends, or None if it is reset."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        lines = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n{head}"
        connection.sendall(f"{lines}\r\nabc".encode())
        received = b""
        try:
            while data := connection.recv(65536):
                received += data
        except ConnectionResetError:
            return None
        return received


@pytest.mark.parametrize("name", SERVERS)
def test_connections_end_as_asked_and_no_error_is_logged(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with SERVERS[name]() as server:
        for method in ("GET", "HEAD", "POST"):
            for size, target in (
                (21, "/?call=0"),
                (100_000, "/bytes/100000?call=0"),
                (None, "/stream/3000?call=0"),
            ):
                for faults in ("reset:1", "outage:0..60"):
                    put(server, faults)
                    assert exchange(server, target, method) is None
                put(server, "close:1")
                assert exchange(server, target, method) == b""
                put(server, "garbage:1")
                received = exchange(server, target, method)
                assert received
                assert not received.startswith(b"HTTP/")
                put(server, "truncate:1")
                headers, _, body = exchange(server, target, method).partition(
                    b"\r\n\r\n"
                )
                assert headers.startswith(b"HTTP/1.1 200")
                if size is not None:
                    assert f"content-length: {size}".encode() in headers.lower()
                    assert len(body) == (0 if method == "HEAD" else size // 2)
                elif method != "HEAD":
                    assert len(body) > 1500
                    assert not body.endswith(b"0\r\n\r\n")
        put(server, "stall:1")
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"GET /?call=0 HTTP/1.1\r\nHost: x\r\n\r\n")
            eventually(lambda: server.metric(IN_FLIGHT) == 1, "it is in flight")
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        eventually(lambda: server.metric(IN_FLIGHT) == 0, "nothing is in flight")
    logged = "".join(capfd.readouterr())
    assert logged
    assert "Traceback" not in logged
    assert "[ERROR]" not in logged


def test_a_status_has_its_retry_after_and_keeps_the_connection(
    upstream: Server,
) -> None:
    put(upstream, "429:1,after=3")
    with contextlib.closing(upstream.connect()) as connection:
        failed = ask(connection, "/?delay=5.000000&call=0", "POST", b"abc")
        assert (failed.status, failed.headers["Retry-After"]) == (429, "3")
        for free in ("/", "/?call=-1"):
            assert ask(connection, free).status == 200
    found = counts(upstream)
    assert (found["attempts"], found["carried_out"]) == (1, 0)


def test_a_slow_body_and_a_slow_state_take_their_time(upstream: Server) -> None:
    put(upstream, "slow:1,over=0.3;slow:0..60,0.1")
    with contextlib.closing(upstream.connect()) as connection:
        sent = time.perf_counter()
        connection.request("GET", "/?delay=0.050000&call=0")
        response = connection.getresponse()
        began = time.perf_counter()
        assert began - sent >= 0.15
        assert response.read() == b'{"message": "hello"}\n'
        assert time.perf_counter() - began > 0.25


def test_all_workers_draw_the_same_and_count_together(upstream: Server) -> None:
    statuses = []
    for path in ("/", "/todos/1"):
        put(upstream, "503:0.3;429:0.1", seed=8)
        found = [upstream.ask(f"{path}?call={call}").status for call in range(60)]
        statuses.append(found)
    assert statuses[0] == statuses[1]
    summary = counts(upstream)
    assert summary["calls"] == summary["attempts"] == sum(summary["bins"]) == 60
    assert summary["kinds"]["503"] == found.count(503) > 0
    assert summary["kinds"]["429"] == found.count(429) > 0


def test_a_post_that_is_sent_again_is_a_duplicate(upstream: Server) -> None:
    put(upstream, "close:1")
    for _ in range(3):
        assert exchange(upstream, "/upload?call=5", "POST") == b""
    found = counts(upstream)
    assert (found["calls"], found["carried_out"], found["repeated"]) == (1, 1, 2)


def test_the_limit_holds_for_all_workers(upstream: Server) -> None:
    put(upstream, "limit:50")
    began, statuses = time.monotonic(), []
    while (elapsed := time.monotonic() - began) < 1:
        statuses.append(upstream.ask(f"/?call={len(statuses)}").status)
    passed = statuses.count(200)
    assert len(statuses) > 1.2 * passed, "this machine is too slow to meet the limit"
    assert passed == pytest.approx(5 + 50 * elapsed, rel=0.05)


def test_a_stream_has_its_call_in_its_header(upstream: Server) -> None:
    put(upstream, "reset:1")
    for path in ("/stream", "/v1/messages"):
        header = "X-Stream: events=2&call=0\r\n"
        assert exchange(upstream, path, "POST", header) is None
    put(upstream, "")
    headers = {"X-Stream": "events=2&every=1ms&call=3"}
    assert upstream.ask("/stream", "POST", b"", headers).status == 200
    assert counts(upstream)["kinds"]["good"] == 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_calls_of_a_replay_meet_faults_on_any_path(framework: str) -> None:
    with gunicorn(framework, any_path="true", workers="1") as server:
        put(server, "503:1")
        assert server.ask("/x?status=201&delay=0.010000&call=0").status == 503
        assert server.ask("/x?status=201&call=1&y=2").status == 200
        put(server, "")
        response = server.ask("/x?delay=5s&delay=0.030000&call=0")
        assert response.headers["Server-Timing"] == "delay;dur=30.0"
