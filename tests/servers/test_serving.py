"""Both upstreams under gunicorn and in their development servers."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time

import psutil
import pytest

from running import FRAMEWORKS, ask, development, eventually, gunicorn

pytestmark = pytest.mark.real

CPU_SECONDS = "mockupstream_cpu_seconds_total"
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@each_framework
def test_gunicorn_closes_idle_connections_and_answers_requests_before_it_stops(
    framework: str,
) -> None:
    with gunicorn(framework, keep_alive="1", workers="1") as server:
        with contextlib.closing(server.connect()) as connection:
            ask(connection, "/healthz")
            ask(connection, "/")
            start = time.monotonic()
            assert connection.sock.recv(1) == b""
            assert time.monotonic() - start > 0.8
        with contextlib.closing(server.connect()) as connection:
            connection.request("GET", "/?delay=300ms")
            eventually(
                lambda: server.metric("mockupstream_requests_in_flight") == 1,
                "the request is in flight",
            )
            server.process.terminate()
            assert connection.getresponse().read() == b'{"message": "hello"}\n'
        assert server.process.wait(60) == 0


@each_framework
def test_a_worker_that_is_replaced_keeps_its_counts(framework: str) -> None:
    """The one that replaces it is no further worker.

    A request may be lost while a worker ends.
    """
    with gunicorn(framework, max_requests="20", workers="1") as server:
        first, used = (
            psutil.Process(server.process.pid).children()[0],
            server.metric(CPU_SECONDS),
        )
        asked = answered = 0

        def is_replaced() -> bool:
            nonlocal asked, answered
            asked += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                answered += server.ask("/").status == 200
            return not first.is_running()

        eventually(is_replaced, "the worker is replaced")
        found = server.metrics()
        assert (
            0
            < answered
            <= found['mockupstream_requests_total{route="/",status="200"}']
            <= asked
        )
        assert (
            len(
                [
                    name
                    for name in found
                    if name.startswith("mockupstream_worker_cpu_seconds_total")
                ]
            )
            == 1
        )
        assert found[CPU_SECONDS] > used


@each_framework
def test_any_path_and_method_is_answered_and_counted_like_the_root(
    framework: str,
) -> None:
    """Only the delay that the lab adds to a query has an effect."""
    with gunicorn(framework, any_path="true", workers="1") as server:
        for method, path in (
            ("GET", "/todos/x"),
            ("POST", "/status/404?status=open&delay=1h"),
            ("DELETE", "/a//b"),
        ):
            response = server.ask(path, method, b"abc")
            assert (response.status, response.body) == (200, b'{"message": "hello"}\n')
            assert response.headers["Server-Timing"] == "delay;dur=0.0"
        assert (
            server.ask("/x?delay=5s&delay=0.030000").headers["Server-Timing"]
            == "delay;dur=30.0"
        )
        assert server.metric('mockupstream_requests_total{route="/",status="200"}') == 4


def test_gunicorn_has_the_configured_backlog() -> None:
    """While the worker does not accept, more connections wait than
    asyncio's own 128.
    """
    with (
        gunicorn("aiohttp", workers="1", backlog="512") as server,
        contextlib.ExitStack() as stack,
    ):
        worker = psutil.Process(server.process.pid).children()[0]
        worker.suspend()
        stack.callback(worker.resume)
        for _ in range(300):
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=20)
            )


def test_unused_connections_hold_no_thread_of_flask() -> None:
    """With many more connections than threads, a health check is answered at once."""
    with (
        gunicorn("flask", workers="1", threads="2") as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(50):
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=20)
            )
        began = time.monotonic()
        assert server.ask("/healthz").status == 200
        assert time.monotonic() - began < 10


@each_framework
def test_development_servers_fulfil_the_contract(framework: str) -> None:
    """Aiohttp's keeps connections and Flask's closes them, on which published
    comparisons rest.
    """
    with development(framework) as server:
        assert server.ask("/").body == b'{"message": "hello"}\n'
        assert server.ask("/status/418").status == 418
        assert (
            "MOCKUPSTREAM_MAX_DELAY"
            in json.loads(server.ask("/?delay=61s").body)["error"]
        )
        assert len(server.ask("/stream/1000?chunk=300").body) == 1000
        assert (
            json.loads(server.ask("/echo", "POST", b"x" * 1000).body)["body"]["length"]
            == 1000
        )
        assert server.ask("/nope").status == 404
        assert server.ask("/bytes/100000", "HEAD").headers["Content-Length"] == "100000"
        before = server.metrics()
        with contextlib.closing(server.connect()) as connection:
            assert (ask(connection, "/").headers["Connection"] == "close") == (
                framework == "flask"
            )
            ask(connection, "/")
        after = server.metrics()
        assert any(
            f'framework="{framework}"' in name
            for name in after
            if name.startswith("mockupstream_info")
        )
        accepted = "mockupstream_connections_accepted_total"
        assert after[accepted] - before[accepted] == (2 if framework == "flask" else 1)
