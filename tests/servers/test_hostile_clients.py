"""Clients that send no sound request, or none at all: they are refused, and hold no thread for long."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

import pytest

from running import FRAMEWORKS, Server, eventually, gunicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real

CHUNKED = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
READ_TIMEOUT = 1
THREADS, SILENT = 2, 50
HALVES = (b"GET / HT", b"GET / HTTP/1.1\r\nHost:", CHUNKED, CHUNKED + b"5\r\nab")
MALFORMED = (
    b"zz\r\nabc\r\n0\r\n\r\n",
    b"-5\r\nabcde\r\n0\r\n\r\n",
    b"3\r\nabcXX\r\n0\r\n\r\n",
    b"f" * 40 + b"\r\nabc\r\n",
)
"""No size, a negative size, no end of a chunk, and a size of 40 digits."""

QUICK = 10.0
"""Seconds for a health check; far more than one takes. Silent connections that held a thread would take 25 s."""


@pytest.fixture(scope="module", params=FRAMEWORKS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each upstream with one worker, Flask's with two threads."""
    with gunicorn(request.param, workers="1", threads=str(THREADS), read_timeout=str(READ_TIMEOUT)) as started:
        yield started


@contextlib.contextmanager
def connected(server: Server, *sent: bytes) -> Iterator[list[socket.socket]]:
    """A connection for each, on which these bytes were sent."""
    with contextlib.ExitStack() as stack:
        connections = []
        for data in sent:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            connection.sendall(data)
            connections.append(connection)
        yield connections


def answer(connection: socket.socket) -> int:
    """The status of what comes until the server closes the connection."""
    received = b""
    while block := connection.recv(65536):
        received += block
    return int(received.split()[1])


def healthy_within(server: Server) -> float:
    """Seconds that a health check takes."""
    began = time.monotonic()
    assert server.ask("/healthz").status == 200
    return time.monotonic() - began


def test_a_malformed_chunked_body_is_a_bad_request(server: Server) -> None:
    """It is answered with 400, the connection is closed, and nothing stays in flight."""
    for body in MALFORMED:
        with connected(server, CHUNKED + body) as [connection]:
            assert (body, answer(connection)) == (body, 400)
    with connected(server, CHUNKED) as [connection]:
        eventually(lambda: server.metric("mockupstream_requests_in_flight") == 1, "the body is awaited")
        connection.sendall(MALFORMED[0])
        assert answer(connection) == 400
    eventually(lambda: server.metric("mockupstream_requests_in_flight") == 0, "nothing is in flight")


def test_silent_connections_hold_no_thread(server: Server) -> None:
    """Many more than there are threads: a health check is answered at once."""
    with connected(server, *[b""] * SILENT):
        assert healthy_within(server) < QUICK


def test_half_requests_hold_a_thread_for_the_time_limit_only(server: Server) -> None:
    """Two for each thread, each held for the limit: a health check waits for them, and no longer."""
    with connected(server, *HALVES):
        assert healthy_within(server) < len(HALVES) / THREADS * READ_TIMEOUT + QUICK
