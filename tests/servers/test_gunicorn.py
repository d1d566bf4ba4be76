"""Both upstreams under gunicorn: what its configuration promises."""

from __future__ import annotations

import contextlib
import socket
import time

import psutil
import pytest

from running import FRAMEWORKS, ask, eventually, gunicorn

pytestmark = pytest.mark.real

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@each_framework
def test_keep_alive_is_honoured(framework: str) -> None:
    with gunicorn(framework, keep_alive="1", workers="1") as server, contextlib.closing(server.connect()) as connection:
        ask(connection, "/healthz")
        ask(connection, "/")
        start = time.monotonic()
        assert connection.sock.recv(1) == b""
        assert time.monotonic() - start > 0.8


def test_the_backlog_is_honoured() -> None:
    """While the worker does not accept, more connections than asyncio's own 128 wait, and none is turned away."""
    with gunicorn("aiohttp", workers="1", backlog="512") as server, contextlib.ExitStack() as stack:
        worker = psutil.Process(server.process.pid).children()[0]
        worker.suspend()
        stack.callback(worker.resume)
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))


def test_connections_opened_ahead_of_their_use_hold_no_thread_of_flask() -> None:
    """Many more than there are threads: a health check is answered at once."""
    with gunicorn("flask", workers="1", threads="2") as server, contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        began = time.monotonic()
        assert server.ask("/healthz").status == 200
        assert time.monotonic() - began < 10


@each_framework
def test_a_stop_answers_what_is_in_flight(framework: str) -> None:
    """On SIGTERM a request in flight is still answered, and the server ends with 0."""
    with gunicorn(framework, workers="1") as server:
        with contextlib.closing(server.connect()) as connection:
            connection.request("GET", "/?delay=1s")
            eventually(lambda: server.metric("mockupstream_requests_in_flight") == 1, "the request is in flight")
            server.process.terminate()
            assert connection.getresponse().read() == b'{"message": "hello"}\n'
        assert server.process.wait(60) == 0
