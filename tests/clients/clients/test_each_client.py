"""Each listed client alone: a request, a fault, a server with TLS, and what only some
libraries can do.

The server shares no code with the lab.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from clientlab.conformance.server import (
    OTHER_CA,
    OTHER_NAME,
    SOUND,
    Last,
    Paced,
    Seen,
    ServerAnswer,
    Stall,
    counting_server,
    ok,
    server_context,
)
from clientlab.strategies import CLIENTS, load
from clientlab.workload.requests import Upload
from clientlab.workload.workload import make_workload
from clients.measured import measure
from clients.one_client import one_client, outcomes, request_to

pytestmark = pytest.mark.real

EACH = [name for name, spec in CLIENTS.items() if not spec.program]
OVER_HTTP_1 = [name for name in EACH if CLIENTS[name].http == "1.1"]
CLASSES = {name: load(CLIENTS[name].import_path) for name in EACH}
STREAMING = [name for name in EACH if hasattr(CLASSES[name], "stream")]
UPLOADING = [
    name for name in OVER_HTTP_1 if getattr(CLASSES[name], "streams_uploads", True)
]
TIMING = [name for name in EACH if hasattr(CLASSES[name], "timed")]

PINNED = {"host", "accept", "accept-encoding", "user-agent"}
"""The headers of a request that sets none: equal for all clients, so that none sends
more bytes than another.
"""
OF_A_BODY = {"content-type", "content-length", "x-mine"}
ALPN = {"1.1": "http/1.1", "2": "h2"}
BODY = json.dumps({"data": "x" * 50_000}).encode()
CHUNK = 10_000
GOOD = (200, b'{"ok": true}')


def chunked(body: bytes, size: int = 7000) -> bytes:
    """Return a response of unknown length, in chunks."""
    response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        response += b"%x\r\n%s\r\n" % (len(piece), piece)
    return response + b"0\r\n\r\n"


@dataclass
class Upstream:
    """What the servers answer and have seen, and their URL for each version of HTTP."""

    answer: Callable[[Seen], ServerAnswer] = field(default=lambda _: ok())
    seen: list[Seen] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> ServerAnswer:
        self.seen.append(seen)
        return self.answer(seen)

    def url_for(self, client: str) -> str:
        return self.urls[CLIENTS[client].http]


@pytest.fixture(scope="module")
def one_upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    with (
        counting_server(upstream) as http1,
        counting_server(upstream, tls=[server_context(version="h2")]) as http2,
    ):
        upstream.urls = {"1.1": http1.url, "2": http2.url}
        yield upstream


@pytest.fixture
def upstream(one_upstream) -> Upstream:
    one_upstream.answer = lambda _: ok()
    one_upstream.seen = []
    return one_upstream


@pytest.mark.parametrize("name", EACH)
def test_a_request_arrives_as_given_and_the_whole_response_is_returned(name, upstream):
    """Method, path with query, headers and body are sent; the library adds only the
    pinned headers.
    """
    upstream.answer = lambda _: ok(BODY)
    url = upstream.url_for(name)
    posted = request_to(
        url, "/item/0?x=1", method="POST", payload_size=300, headers={"X-Mine": "yes"}
    )
    plain = request_to(url)
    assert outcomes(name, posted, plain) == [(200, BODY)] * 2
    first, second = upstream.seen
    assert first.method == "POST"
    assert first.target == "/item/0?x=1"
    assert first.body == posted.body
    assert first.headers["x-mine"] == "yes"
    assert first.headers["content-type"] == "application/json"
    assert second.method == "GET"
    assert second.target == "/"
    assert second.body == b""
    always = set(PINNED)
    if CLIENTS[name].quirks.keep_alive_header:
        always.add("connection")
    assert set(first.headers) == always | OF_A_BODY
    assert set(second.headers) == always
    assert first.version == second.version == f"HTTP/{CLIENTS[name].http}"


@pytest.mark.parametrize("name", OVER_HTTP_1)
def test_a_host_of_the_user_is_sent(name, upstream):
    headers = {"Host": "shop.test:8000"}
    request = request_to(upstream.url_for(name), headers=headers)
    assert outcomes(name, request) == [GOOD]
    (seen,) = upstream.seen
    assert seen.headers["host"] == "shop.test:8000"


@pytest.mark.parametrize("name", EACH)
def test_a_compressed_body_is_handed_over_decoded(name, upstream):
    """Whole and in chunks, and also without a body.

    A damaged one is an error, not a success.
    """
    compressed = gzip.compress(BODY)  # it holds the time
    packed = ok(compressed).replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)

    def answer(seen: Seen) -> bytes:
        if seen.method == "HEAD":
            return packed.removesuffix(compressed)
        return packed

    upstream.answer = answer
    url = upstream.url_for(name)
    plain = request_to(url, decode=True)
    head = request_to(url, method="HEAD", decode=True)
    assert outcomes(name, plain, head, decode=True) == [(200, BODY), (200, b"")]
    for seen in upstream.seen:
        assert seen.headers["accept-encoding"] == "gzip"
    if name in STREAMING:
        with one_client(name, decode=True, chunk_size=CHUNK) as client:
            status, chunks = client.stream(plain)
        assert status == 200
        assert b"".join(chunks) == BODY
    upstream.answer = lambda _: packed.replace(compressed[:100], b"x" * 100)
    assert outcomes(name, plain, decode=True) == ["protocol"]


@pytest.mark.parametrize("name", EACH)
def test_a_fault_is_an_error_of_its_kind_and_nothing_is_sent_again(name, upstream):
    """Error statuses and redirects are responses.

    The request after the fault gets its own response.
    """
    answers = {
        "/status": ok(status="503 Service Unavailable"),
        "/redirect": (
            b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
        ),
        "/truncated": Last(ok()[:-5]),
        "/good": ok(),
    }
    upstream.answer = lambda seen: answers[seen.target]
    url = upstream.url_for(name)
    requests = [request_to(url, path) for path in answers]
    error, redirect, truncated, good = outcomes(name, *requests)
    assert error[0] == 503
    assert redirect[0] == 302
    assert truncated == "protocol"
    assert good == GOOD
    assert [seen.target for seen in upstream.seen] == list(answers)


@pytest.mark.parametrize("name", EACH)
def test_a_server_with_tls_is_verified(name, upstream):
    """With its CA, requests arrive.

    A server with another CA or another name receives nothing.
    """
    closing = ok().replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    upstream.answer = lambda _: Last(closing)
    spec = CLIENTS[name]
    for certificate in (OTHER_CA, OTHER_NAME):
        context = server_context(certificate, ALPN[spec.http])
        with counting_server(upstream, tls=[context]) as server:
            assert outcomes(name, request_to(server.url, "/secure")) == ["tls"]
            assert context not in server.spoken_to
        assert context.session_stats()["hits"] == 0
    assert upstream.seen == []
    context = server_context(SOUND, ALPN[spec.http])
    with counting_server(upstream, tls=[context]) as server:
        request = request_to(server.url, "/secure")
        assert outcomes(name, request, request) == [GOOD, GOOD]
        assert context in server.spoken_to
    resumes = spec.quirks.resumes_tls and spec.http == "1.1"
    assert (context.session_stats()["hits"] > 0) == resumes
    assert [seen.target for seen in upstream.seen] == ["/secure"] * 2


def test_silence_ends_at_the_time_limit(upstream):
    upstream.answer = lambda _: Stall()

    def kinds(name: str) -> list[object]:
        return outcomes(name, request_to(upstream.url_for(name)), timeout=2.0)

    with ThreadPoolExecutor(len(EACH)) as pool:
        found = dict(zip(EACH, pool.map(kinds, EACH), strict=True))
    assert found == {name: ["timeout-read"] for name in EACH}


@pytest.mark.parametrize("name", STREAMING)
def test_a_streamed_body_comes_whole_and_in_chunks_of_the_given_size(name, upstream):
    """A body that is cut short is an error.

    After a whole one, the connection is used again.
    """
    cut = Last(chunked(BODY)[:-900])
    answers = {
        "/length": ok(BODY),
        "/chunked": chunked(BODY),
        "/cut": cut,
        "/again": ok(BODY),
    }
    upstream.answer = lambda seen: answers[seen.target]
    url = upstream.url_for(name)
    spec = CLIENTS[name]
    with one_client(name, chunk_size=CHUNK) as client:
        found = {path: client.stream(request_to(url, path)) for path in answers}
    assert found.pop("/cut") == "protocol"
    for status, chunks in found.values():
        assert status == 200
        assert b"".join(chunks) == BODY
        assert len(chunks) > 1
        if spec.http != "2":
            largest = max(map(len, chunks))
            assert largest <= (spec.quirks.own_chunk_size or CHUNK)
    keeps_connections = spec.policy != "per call" and not spec.quirks.opens_ahead
    if name in OVER_HTTP_1 and keeps_connections:
        first, second, cut, again = [seen.connection for seen in upstream.seen]
        assert first == second == cut
        assert again != cut


@pytest.mark.parametrize("name", [name for name in STREAMING if name in OVER_HTTP_1])
def test_without_a_chunk_size_a_body_is_handed_over_as_it_arrives(name, upstream):
    """The server sends the second half once the client has handed over the first.

    Each half is a part of one chunk.
    """
    framing = {
        "/length": (b"Content-Length: 2000\r\n\r\n", b""),
        "/chunked": (b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n", b"\r\n0\r\n\r\n"),
    }
    arrived = threading.Event()
    received = list[bytes]()

    def halves(seen: Seen) -> Iterator[bytes]:
        head, end = framing[seen.target]
        yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + bytes(1000)
        if arrived.wait(5.0):
            yield bytes(1000) + end

    def take(chunk: bytes) -> None:
        received.append(chunk)
        arrived.set()

    upstream.answer = halves
    with one_client(name, chunk_size=None) as client:
        for path in framing:
            request = request_to(upstream.url_for(name), path)
            assert client.call("stream", request, take) == 200
            assert b"".join(received) == bytes(2000)
            received.clear()
            arrived.clear()


@pytest.mark.parametrize("name", ["http.client", "aiohttp"])
def test_the_time_to_the_first_byte_is_recorded_next_to_the_latency(name):
    """The server works before the head and within the body.

    A request that fails has no time after its first byte.
    """

    def slowly() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n1"
        time.sleep(0.1)  # the server's slowness, not a wait for a condition
        yield b"2"

    def answer(seen: Seen) -> ServerAnswer:
        return None if seen.target == "/5" else slowly()

    workload = make_workload(path="/{k}", requests=6, warmup=1, first_byte=True)
    with counting_server(answer, hold=0.02) as server:
        records = measure(name, workload, server.url).samples.records
    is_good = records["error"] == 0
    good = records[is_good]
    (failed,) = records[~is_good]
    assert len(good) == 5
    assert good["bytes"].tolist() == [2] * 5
    assert (good["seconds"] - good["elapsed"] >= 0.02).all()
    assert (good["elapsed"] > 0.05).all()
    assert failed["elapsed"] == 0.0


@pytest.mark.parametrize("name", UPLOADING)
def test_a_streamed_upload_arrives_whole_with_its_length(name, upstream):
    awaited = CLIENTS[name].kind == "asyncio"
    request = request_to(
        upstream.url_for(name),
        awaited=awaited,
        method="POST",
        upload_size=300_000,
        upload="stream",
        seed=7,
    )
    assert outcomes(name, request) == [GOOD]
    (seen,) = upstream.seen
    assert seen.body == b"".join(Upload(300_000, 7))
    assert seen.headers["content-length"] == "300000"
    assert seen.headers["content-type"] == "application/octet-stream"
    assert not {"transfer-encoding", "expect"} & set(seen.headers)


@pytest.mark.parametrize("name", TIMING)
def test_the_librarys_own_time_is_no_longer_than_the_call(name, upstream):
    def slowly(_: Seen) -> bytes:
        time.sleep(0.02)  # the server's work, not a wait for a condition
        return ok()

    upstream.answer = slowly
    request = request_to(upstream.url_for(name))
    with one_client(name) as client:
        began = time.perf_counter()
        status, body, seconds = client.call("timed", request)
        took = time.perf_counter() - began
    assert 0.02 <= seconds <= took + 1e-4
    assert (status, body) == GOOD


@pytest.mark.parametrize(
    "name", [name for name, spec in CLIENTS.items() if spec.http == "2"]
)
def test_a_server_without_http2_is_an_error_of_kind_protocol(name):
    """No client falls back to HTTP/1.1 silently, and none keeps a connection that it
    refused.
    """
    with counting_server(tls=[server_context()]) as server:
        requests = [request_to(server.url)] * 3
        assert outcomes(name, *requests) == ["protocol"] * 3
        assert server.accepted == 3


def test_a_body_may_take_longer_than_the_time_limit_if_it_comes_steadily(upstream):
    names = ("urllib3", "aiohttp", "httpx-client", "pycurl")
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 8000\r\n\r\n"
    parts = [lambda: head, *[lambda: bytes(1000)] * 8]
    upstream.answer = lambda _: Paced(parts, 0.25)

    def received(name: str) -> list[object]:
        return outcomes(name, request_to(upstream.url_for(name)), timeout=1.5)

    with ThreadPoolExecutor(len(names)) as pool:
        for found in pool.map(received, names):
            assert found == [(200, bytes(8000))]
