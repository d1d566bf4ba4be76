"""Faults, seen by a socket that shares no code with the upstreams."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mockupstream import faults
from running import development, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from running import Server

BODY = b'{"message": "hello"}\n'


class Heard(NamedTuple):
    """What came before the connection ended or the time was over, when, and how it ended."""

    data: bytes
    moments: list[float]
    ending: str


def heard(server: Server, fault: str, *, method: str = "GET", path: str = "/", patience: float = 0.4) -> Heard:
    """Send one request with a fault, and read until the end, or until nothing comes for `patience` seconds."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(patience)
        began, data, moments = time.monotonic(), b"", list[float]()
        connection.sendall(f"{method} {path}?fault={fault} HTTP/1.1\r\nHost: upstream\r\n\r\n".encode())
        while True:
            try:
                piece = connection.recv(1 << 16)
            except ConnectionResetError:
                return Heard(data, moments, "reset")
            except TimeoutError:
                return Heard(data, moments, "open")
            if not piece:
                return Heard(data, moments, "closed")
            data += piece
            moments.append(time.monotonic() - began)


def parts(found: Heard) -> tuple[bytes, bytes]:
    """The head and the body."""
    head, _, body = found.data.partition(b"\r\n\r\n")
    return head, body


def test_a_reset_before_the_answer_sends_nothing(upstream: Server) -> None:
    """The connection is reset, not closed."""
    assert heard(upstream, "reset") == (b"", [], "reset")


def test_an_empty_reply_is_a_close_before_the_answer(upstream: Server) -> None:
    """The connection is closed, not reset."""
    assert heard(upstream, "empty") == (b"", [], "closed")


def test_a_reset_comes_after_the_headers_or_amid_the_body(upstream: Server) -> None:
    """The headers promise the whole body, of which none or half has come."""
    for fault, came in (("reset-headers", b""), ("reset-body", BODY[: len(BODY) // 2])):
        found = heard(upstream, fault)
        head, body = parts(found)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Length: 21" in head
        assert (body, found.ending) == (came, "reset")


def test_a_truncated_body_ends_before_its_length(upstream: Server) -> None:
    """Half of it, and a close."""
    found = heard(upstream, "truncated")
    assert b"Content-Length: 21" in parts(found)[0]
    assert (parts(found)[1], found.ending) == (BODY[:10], "closed")


def test_a_malformed_chunk_follows_half_of_the_body(upstream: Server) -> None:
    """Its size is no number."""
    found = heard(upstream, "bad-chunk")
    assert b"Transfer-Encoding: chunked" in parts(found)[0]
    assert (parts(found)[1], found.ending) == (b"a\r\n" + BODY[:10] + b"\r\nzz\r\n", "closed")


def test_slow_headers_arrive_in_parts(upstream: Server) -> None:
    """Over the time that the fault names; the connection is kept."""
    found = heard(upstream, "slow-headers=500ms", patience=2)
    assert parts(found)[1] == BODY
    assert found.ending == "open"
    assert len(found.moments) >= 4  # a busy machine reads several at once
    assert found.moments[-1] >= 0.5


def test_bytes_arrive_one_by_one(upstream: Server) -> None:
    """As many as head and body have; the connection is kept."""
    found = heard(upstream, "bytewise=2ms", patience=2)
    assert parts(found)[1] == BODY
    assert found.ending == "open"
    assert len(found.moments) >= 0.1 * len(found.data)
    assert found.moments[-1] >= 0.002 * len(found.data)


def test_a_stall_is_before_the_answer_or_amid_the_body(upstream: Server) -> None:
    """What comes after it is whole."""
    for fault, first in (("stall=300ms", 0.3), ("stall-body=300ms", 0.0)):
        found = heard(upstream, fault, patience=2)
        assert parts(found)[1] == BODY
        assert found.moments[0] >= first
        assert found.moments[-1] >= 0.3


def test_a_close_is_announced_and_an_idle_close_is_not(upstream: Server) -> None:
    """Both after a whole answer."""
    announced, silent = heard(upstream, "close"), heard(upstream, "idle-close=200ms")
    assert [parts(found)[1] for found in (announced, silent)] == [BODY] * 2
    assert [found.ending for found in (announced, silent)] == ["closed"] * 2
    assert b"Connection: close" in parts(announced)[0]
    assert b"connection: close" not in parts(silent)[0].lower()


@pytest.mark.parametrize(("fault", "status", "after"), [("status=503", 503, None), ("status=429@2s", 429, "2")])
def test_a_status_may_have_a_retry_after(upstream: Server, fault: str, status: int, after: str | None) -> None:
    """The body is that of the path, and the connection is kept."""
    response = upstream.ask(f"/?fault={fault}")
    assert (response.status, response.headers["Retry-After"], response.body) == (status, after, BODY)


@pytest.mark.parametrize("fault", ["slow-headers=10ms", "bytewise=10us", "stall=10ms", "stall-body=10ms", "status"])
@pytest.mark.parametrize("path", ["/", "/stream/5000", "/bytes/100000", "/bytes/5"])
def test_a_connection_is_kept_after_a_fault_that_only_takes_time(upstream: Server, fault: str, path: str) -> None:
    """The next answers on it are whole, whatever the path; bodies are framed as without the fault."""
    if fault.startswith("bytewise") and path == "/bytes/100000":
        path = "/bytes/2000"
    whole = upstream.ask(path).body
    with contextlib.closing(upstream.connect()) as connection:
        ports = set()
        for query in (f"?fault={fault}", "", f"?fault={fault}", ""):
            connection.request("GET", path + query)
            response = connection.getresponse()
            ports.add(connection.sock.getsockname())
            assert response.read() == whole
        assert len(ports) == 1


@pytest.mark.parametrize("fault", ["reset-headers", "reset-body", "truncated", "bad-chunk", "stall-body"])
def test_a_fault_of_the_body_is_refused_where_there_is_none(upstream: Server, fault: str) -> None:
    """A HEAD request, and a status without a body."""
    assert upstream.ask(f"/?fault={fault}", "HEAD").status == 400
    refused = upstream.ask(f"/status/204?fault={fault}")
    assert refused.status == 400
    assert fault.encode() in refused.body


@pytest.mark.parametrize(
    "fault", ["nope", "", "reset=1", "status=200", "status=abc", "status=503@1.5s", "stall=x", "stall=11s"]
)
def test_an_unknown_fault_is_refused(upstream: Server, fault: str) -> None:
    """And one that would last longer than the limit of delays."""
    assert upstream.ask(f"/?fault={fault}").status == 400


def test_faults_are_counted_by_kind(upstream: Server) -> None:
    """Those that were made, of all workers."""
    before = [upstream.metric(f'mockupstream_faults_total{{kind="{kind}"}}') for kind in ("reset", "status")]
    for _ in range(3):
        heard(upstream, "reset")
    upstream.ask("/?fault=status=500")
    after = [upstream.metric(f'mockupstream_faults_total{{kind="{kind}"}}') for kind in ("reset", "status")]
    assert [now - then for now, then in zip(after, before, strict=True)] == [3, 1]


def test_a_client_that_leaves_ends_its_stall(upstream: Server) -> None:
    """Its request is no longer in flight: a stall holds no thread for a client that is gone."""
    for _ in range(40):  # more than all threads
        heard(upstream, "stall=9s", patience=0.01)
    eventually(lambda: upstream.metric("mockupstream_requests_in_flight") == 0, "no request is in flight", 5)


@pytest.fixture(scope="module", params=["flask", "aiohttp"])
def developed(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each development server."""
    with development(request.param) as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "ending"),
    [("reset", "reset"), ("empty", "closed"), ("truncated", "closed"), ("reset-body", "reset"), ("close", "closed")],
)
def test_development_servers_make_the_same_faults(developed: Server, fault: str, ending: str) -> None:
    """Those of frameworks, without gunicorn."""
    assert heard(developed, fault, patience=2).ending == ending


def test_every_kind_of_fault_is_described() -> None:
    """The grammar in the module's docstring names each of them."""
    described = [
        line.split()[0].partition("=")[0] for line in (faults.__doc__ or "").splitlines() if line[:4] == "    "
    ]
    assert described == list(faults.KINDS)
