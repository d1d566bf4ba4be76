"""The contract, tested over HTTP with both upstreams."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import time
from typing import TYPE_CHECKING

import pytest

from running import ask

if TYPE_CHECKING:
    from running import Server

pytestmark = pytest.mark.real

SAME = [
    "/",
    "/?status=503",
    "/todos/7",
    "/todos/0",
    "/todos/x",
    "/nope",
    "/todos//7",
    "/bytes/",
    "/bytes/5?seed=3",
    "/bytes/-1",
    "/bytes/1048577",
    "/stream/5?chunk=2&seed=3",
    "/stream/5?chunk=0",
    "/stream/5?chunk=70000",
    "/drip?duration=0&numbytes=5&code=201",
    "/drip?numbytes=0",
    "/drip?duration=11",
    "/status/418",
    "/status/99",
    "/status/x",
    "/planets/mars?when=2018-11-01",
    "/planets/vulcan",
    "/planets/%7Bx%7D",
    "/upload",
    "/upload?status=503",
    "/planets/mars?lon=x",
    "/?delay=11s",
    "/?delay=soon",
    "/?status=x",
    "/?seed=-1",
    "/delay/soon",
    "/delay/11",
    "/?delay=normal:10s,1s&seed=1",
    "/?delay=%zz&x=%ff",
    "/?delay=1ms&delay=2ms",
    "/delay/1ms?delay=5s",
]
RAW = {"Host": "upstream", "User-Agent": "test", "Accept-Encoding": "identity"}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_both_upstreams_send_the_same_replies(
    upstreams: dict[str, Server], method: str
) -> None:
    for path in SAME:
        ours, theirs = (
            upstreams[name].ask(path, method, b"abc", RAW)
            for name in ("flask", "aiohttp")
        )
        assert (path, ours.status, ours.body) == (path, theirs.status, theirs.body)
        for header in ("Content-Type", "Server-Timing"):
            assert (path, ours.headers[header]) == (path, theirs.headers[header])


@pytest.mark.parametrize("path", ["/todos/7?", "/status/204?", "/?status=503&"])
def test_a_repeated_reply_is_the_same(upstream: Server, path: str) -> None:
    """The aiohttp upstream remembers the bytes of the first reply."""

    def fetch(connection: http.client.HTTPConnection) -> tuple[object, ...]:
        connection.request("GET", f"{path}again={path}")
        response = connection.getresponse()
        headers = [
            (name, value) for name, value in response.getheaders() if name != "Date"
        ]
        return response.status, response.reason, sorted(headers), response.read()

    with contextlib.closing(
        upstream.connect()
    ) as connection:  # which one worker serves
        first = fetch(connection)
        assert [fetch(connection) for _ in range(3)] == [first] * 3


def test_head_has_headers_only(upstream: Server) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        for path, length in (
            ("/", "21"),
            ("/bytes/100000", "100000"),
            ("/stream/10", None),
        ):
            head = ask(connection, path, "HEAD")
            assert (path, head.body, head.headers["Content-Length"]) == (
                path,
                b"",
                length,
            )
            assert ask(connection, "/").status == 200


@pytest.mark.parametrize(
    ("path", "least"),
    [("/delay/0.06", 60), ("/planets/vulcan?delay=uniform:50ms,60ms", 50)],
)
def test_no_reply_is_earlier_than_its_delay(
    upstream: Server, path: str, least: float
) -> None:
    start = time.perf_counter()
    response = upstream.ask(path)
    held = (time.perf_counter() - start) * 1000
    timing = float(response.headers["Server-Timing"].removeprefix("delay;dur="))
    assert least <= timing <= 60
    assert held >= timing


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/?delay=11s", b"", "10 s, which MOCKUPSTREAM_MAX_DELAY"),
        ("/stream/2000000", b"", "1048576 bytes, which MOCKUPSTREAM_MAX_SIZE"),
        ("/", b"x" * 2_000_000, "1048576 bytes, which MOCKUPSTREAM_MAX_BODY"),
    ],
)
def test_a_request_beyond_a_limit_is_refused_with_the_limit_and_its_variable(
    upstream: Server, path: str, body: bytes, text: str
) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        response = ask(connection, path, "POST", body)
        assert response.status == 400
        assert text in json.loads(response.body)["error"]
        # The whole body was read, so the connection can still be used.
        assert ask(connection, "/").status == 200


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_echo_returns_the_received_request(upstream: Server, framing: str) -> None:
    """Compressed bodies are not decompressed."""
    body = bytes(range(256)) * 500
    headers = {"X-Twice": "a,b", "Content-Encoding": "gzip", "X-Word": "gr\u00fcn"}
    with contextlib.closing(upstream.connect()) as connection:
        connection.request(
            "PUT",
            "/echo",
            iter([body]) if framing == "chunked" else body,
            headers,
            encode_chunked=framing == "chunked",
        )
        document = json.loads(connection.getresponse().read())
    assert document["method"] == "PUT"
    assert document["body"] == {
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    assert document["headers"]["x-twice"] == "a,b"
    assert document["headers"]["x-word"] == "gr\u00fcn"


def test_stream_is_chunked(upstream: Server) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        connection.connect()
        connection.sock.sendall(
            b"GET /stream/10?chunk=4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        raw = b""
        while data := connection.sock.recv(65536):
            raw += data
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    sizes = [int(line, 16) for line in body.split(b"\r\n")[0::2] if line]
    assert sizes == [4, 4, 2, 0]


def test_drip_spreads_its_bytes_over_the_duration(upstream: Server) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        start = time.perf_counter()
        connection.request("GET", "/drip?duration=0.2&numbytes=4&code=202")
        response = connection.getresponse()
        moments = []
        while response.read(1):
            moments.append(time.perf_counter() - start)
    assert (response.status, response.headers["Content-Length"]) == (202, "4")
    assert [
        moment >= least
        for moment, least in zip(moments, (0, 0.05, 0.1, 0.15), strict=True)
    ] == [True] * 4


def test_the_status_comes_from_the_path_or_else_from_the_query(
    upstream: Server,
) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        for status in (200, 204, 205, 304, 404, 503, 599):
            assert ask(connection, f"/status/{status}?status=500").status == status
            response = ask(connection, f"/?status={status}")
            assert (response.status, bool(response.body)) == (
                status,
                status not in {204, 205, 304},
            )
            assert ask(connection, "/").status == 200
