"""Streams of events, asked of both upstreams over HTTP."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import sys
import time
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest

from mockupstream import stream_formats
from running import FRAMEWORKS, Server, eventually, gunicorn
from servers.marks import marks, offsets

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ("sse", "jsonl", "openai-chat", "openai-responses", "anthropic")
API_PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
STREAMED = b'{"stream": true}'
OPEN = "mockupstream_streams_open"
LEFT = "mockupstream_streams_left_total"
WRITTEN = "mockupstream_stream_events_total"
_DATA_SEGMENTS_IN = 152
"""Offset of tcpi_data_segs_in in Linux's `struct tcp_info`."""


@contextlib.contextmanager
def streaming(server: Server, target: str, version: str = "1.1") -> Iterator[socket.socket]:
    """A connection on which a stream was asked for."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(f"GET {target} HTTP/{version}\r\nHost: x\r\n\r\n".encode())
        yield connection


def received(connection: socket.socket, end: bytes) -> bytes:
    """Return all bytes up to the first read that brings `end`, or all of them where the server closes before it."""
    data = b""
    while end not in data and (block := connection.recv(65536)):
        data += block
    return data


@pytest.mark.parametrize("name", FORMATS)
def test_marks_are_numbered_and_tell_the_time_of_their_write(upstream: Server, name: str) -> None:
    """Marks count from 0 without a gap, and their times lie in order between the request and the end of the body."""
    before = time.monotonic_ns()
    response = upstream.ask(f"/stream?format={name}&events=20&every=2ms&first=5ms")
    after = time.monotonic_ns()
    found = marks(response.body)
    assert [mark.number for mark in found] == list(range(20))
    times = [before + 5_000_000, *(mark.nanoseconds for mark in found), after]
    assert times == sorted(times)
    assert response.headers["Content-Type"] == ("application/x-ndjson" if name == "jsonl" else "text/event-stream")


def test_no_event_is_written_early_and_lateness_does_not_add_up(upstream: Server) -> None:
    """Each event's planned moment is a whole number of gaps after the first one's, however late the others were."""
    planned = offsets(upstream.ask("/stream?events=50&every=2ms").body)
    assert planned == pytest.approx([number * 0.002 for number in range(50)], abs=3e-6)


def test_a_seed_draws_the_schedule(upstream: Server) -> None:
    """One seed plans the same gaps each time, those of Python's own source after the first draw; another one others."""
    target = "/stream?events=10&first=uniform:1ms,2ms&every=uniform:1ms,9ms"
    source = random.Random(7)
    source.uniform(0.001, 0.002)
    expected = list(accumulate((source.uniform(0.001, 0.009) for _ in range(9)), initial=0.0))
    for _ in range(2):
        assert offsets(upstream.ask(f"{target}&seed=7").body) == pytest.approx(expected, abs=3e-6)
    assert offsets(upstream.ask(f"{target}&seed=8").body) != pytest.approx(expected, abs=1e-4)
    assert offsets(upstream.ask(target).body) != pytest.approx(offsets(upstream.ask(target).body), abs=1e-4)


@pytest.mark.parametrize("size", [31, 32, 48, 1000])
def test_the_size_is_that_of_the_text(upstream: Server, size: int) -> None:
    """Each text has as many characters as wanted, the mark included."""
    lines = upstream.ask(f"/stream?format=jsonl&events=3&every=1ms&size={size}").body.splitlines()
    assert [len(json.loads(line)["text"]) for line in lines[:-1]] == [size] * 3
    assert json.loads(lines[-1]) == {"done": True}


def test_the_head_comes_before_the_first_event(upstream: Server) -> None:
    """The head is sent when the request was read, and nothing else is until the first event's moment."""
    with streaming(upstream, "/stream?first=10s") as connection:
        head = received(connection, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert head.endswith(b"\r\n\r\n")


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO and TCP_CORK are Linux's")
@pytest.mark.parametrize(("end", "segments"), [("with", 5), ("apart", 6)])
def test_the_last_chunk_comes_with_the_last_bytes_or_apart(upstream: Server, end: str, segments: int) -> None:
    """`with` sends head, three events and the rest in five segments; `apart` needs one more for the last chunk."""
    with streaming(upstream, f"/stream?events=3&end={end}") as connection:
        received(connection, b"\r\n0\r\n\r\n")
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        assert struct.unpack_from("I", told, _DATA_SEGMENTS_IN) == (segments,)


def test_the_last_chunk_comes_later(upstream: Server) -> None:
    """A delay of the end holds the last chunk back, and nothing else."""
    with streaming(upstream, "/stream?events=2&every=1ms&end=300ms") as connection:
        data = received(connection, b"[DONE]\n\n\r\n")
        arrived = time.monotonic()
        assert data.endswith(b"[DONE]\n\n\r\n")
        assert connection.recv(100) == b"0\r\n\r\n"
        assert time.monotonic() - arrived > 0.25


def test_a_connection_goes_on_after_a_stream(upstream: Server) -> None:
    """Two streams and a small answer fit on one connection."""
    with contextlib.closing(upstream.connect()) as connection:
        before = upstream.metric("mockupstream_connections_accepted_total")
        for end in ("with", "apart", "1ms"):
            connection.request("GET", f"/stream?events=2&end={end}")
            assert len(marks(connection.getresponse().read())) == 2
        connection.request("GET", "/")
        assert connection.getresponse().read() == b'{"message": "hello"}\n'
        assert upstream.metric("mockupstream_connections_accepted_total") == before + 1


@pytest.mark.parametrize(("name", "pings"), [("sse", 0), ("sse", 3), ("jsonl", 1)])
def test_the_head_may_state_the_length(upstream: Server, name: str, pings: int) -> None:
    """With `end=length`, nothing is chunked, and the connection goes on behind the last byte."""
    with contextlib.closing(upstream.connect()) as connection:
        for events in (1, 9, 10, 101, 12):
            connection.request("GET", f"/stream?format={name}&events={events}&every=1ms&pings={pings}&end=length")
            response = connection.getresponse()
            assert response.getheader("Transfer-Encoding") is None
            body = response.read()
            assert len(body) == int(response.getheader("Content-Length", "0"))
            assert len(marks(body)) == events


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic"])
def test_the_length_of_an_api_is_exact(name: str) -> None:
    """The stated length is that of the written pieces, whatever the digits of their numbers."""
    for events in (1, 6, 7, 96, 97, 1000):
        prepared = stream_formats.prepare(name, events, 48, usage=True)
        pieces = [prepared.piece(number, 10**17, 0.5) for number in range(events)]
        written = sum(map(len, pieces)) + events // 2 * len(prepared.ping) + len(prepared.closing)
        assert prepared.length(events, 2) == written


@pytest.mark.parametrize("end", ["with", "apart", "20ms"])
def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection(upstream: Server, end: str) -> None:
    """Nothing is chunked, and the server closes the connection behind the last bytes."""
    with streaming(upstream, f"/stream?events=3&every=1ms&end={end}", version="1.0") as connection:
        head, _, body = received(connection, b"no such bytes").partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"id: 0\ndata: @")
    assert body.endswith(b"event: done\ndata: [DONE]\n\n")


def test_head_has_headers_alone(upstream: Server) -> None:
    """HEAD is answered at once with the stream's type, and without a body."""
    response = upstream.ask("/stream?first=10s", "HEAD")
    assert (response.status, response.body) == (200, b"")
    assert response.headers["Content-Type"] == "text/event-stream"


@pytest.mark.parametrize(
    ("name", "ping"),
    [("sse", b": ping\n\n"), ("jsonl", b"}\n\n{"), ("anthropic", b'event: ping\ndata: {"type":"ping"}\n\n')],
)
def test_pings_come_after_each_so_many_events(upstream: Server, name: str, ping: bytes) -> None:
    """Of ten events, each third one is followed by a ping."""
    body = upstream.ask(f"/stream?format={name}&events=10&every=1ms&pings=3").body
    assert body.count(ping) == 3
    assert len(marks(body.partition(ping)[0])) == 3
    assert ping not in upstream.ask(f"/stream?format={name}&events=10&every=1ms").body


def test_the_header_wins(upstream: Server) -> None:
    """Settings of the header X-Stream replace those of the query, which stay where the header names none."""
    body = upstream.ask("/stream?events=9&size=40&every=1ms", headers={"X-Stream": "events=2&format=jsonl"}).body
    assert [len(json.loads(line)["text"]) for line in body.splitlines()[:-1]] == [40, 40]
    response = upstream.ask("/v1/messages", "POST", STREAMED, {"X-Stream": "events=2&delay=30ms&status=201"})
    assert (response.status, response.headers["Server-Timing"]) == (201, "delay;dur=30.0")
    assert len(marks(response.body)) == 2


def test_an_error_status_has_a_document(upstream: Server) -> None:
    """A status of 400 or more comes with a JSON document and no stream, as the APIs do it."""
    response = upstream.ask("/v1/responses", "POST", STREAMED, {"X-Stream": "status=503"})
    assert response.status == 503
    assert json.loads(response.body) == {"error": "the request asked for the status 503"}


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("/stream?format=xml", "no format is called 'xml': there are sse, jsonl, openai-chat, openai-responses, anth"),
        ("/stream?every=0", "every: the gap must be above 0, not 0"),
        ("/stream?every=uniform:0,0", "every: the gap must be above 0, not uniform:0,0"),
        ("/stream?every=soon", "every: 'soon' is not a time like"),
        (
            "/stream?every=11s",
            "every of 11000ms is beyond the delay limit of 10 s, which MOCKUPSTREAM_MAX_DELAY raises",
        ),
        ("/stream?first=soon", "first: 'soon' is not a time like"),
        ("/stream?first=11s", "first of 11000ms is beyond the delay limit"),
        ("/stream?events=0", "events must be a whole number of at least 1, not '0'"),
        ("/stream?events=100001", "a stream of 100001 events is beyond the events limit of 100000 events, which MOCK"),
        ("/stream?events=99999", "a stream of 4799952 characters is beyond the response size limit"),
        ("/stream?size=30", "size must be a whole number of at least 31, not '30'"),
        ("/stream?size=65537", "size must be from 31 to 65536, not 65537"),
        ("/stream?pings=often", "pings must be a whole number of at least 0, not 'often'"),
        ("/stream?usage=yes", "usage must be 0 or 1, not 'yes'"),
        (
            "/stream?end=never",
            "end: 'never' is not a time like 120ms, 0.12 or 2s; write with, apart, length or a",
        ),
        ("/stream?seed=x", "seed must be a whole number"),
    ],
)
def test_bad_settings_are_refused(upstream: Server, target: str, error: str) -> None:
    """Each is answered with 400 and one line that says what is wrong, by query as by header."""
    path, _, query = target.partition("?")
    for response in (upstream.ask(target), upstream.ask(path, headers={"X-Stream": query})):
        assert response.status == 400
        assert json.loads(response.body)["error"].startswith(error)
        assert response.body.count(b"\n") == 1


def test_an_unknown_setting_of_the_header_is_refused(upstream: Server) -> None:
    """The header is for settings alone, so a name that is none is a mistake."""
    response = upstream.ask("/stream", headers={"X-Stream": "evry=5ms"})
    assert response.status == 400
    assert json.loads(response.body)["error"].startswith("X-Stream: no setting is called 'evry': there are format,")


@pytest.mark.parametrize("path", API_PATHS)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"stream": false}', b'{"stream": "true"}', b"[" * 100_000, b"\xff\xfe"]
)
def test_only_streams_are_served_by_the_paths_of_apis(upstream: Server, path: str, body: bytes) -> None:
    """A body that is no JSON object, or wants no stream, is answered with 400 and one line."""
    response = upstream.ask(path, "POST", body)
    assert response.status == 400
    assert json.loads(response.body)["error"] == 'only streams are served: send a JSON body with "stream": true'


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_long_json_body_is_refused(framework: str) -> None:
    """A body of more than 1 MiB is read, not kept, and refused."""
    with gunicorn(framework, workers="1") as server:
        response = server.ask("/v1/messages", "POST", b" " * ((1 << 20) + 1))
    assert response.status == 400
    assert json.loads(response.body)["error"] == "a JSON body must have at most 1048576 bytes, not 1048577"


def test_events_are_counted(upstream: Server) -> None:
    """Events, their lateness and the bytes of the body are counted as sent, and no stream stays open."""
    before = upstream.metrics()
    body = upstream.ask("/stream?events=7&every=1ms&pings=2&format=anthropic").body
    eventually(lambda: upstream.metric(OPEN) == 0, "no stream is open")
    after = upstream.metrics()
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown[WRITTEN] == 7
    assert grown["mockupstream_event_lateness_seconds_count"] == 7
    assert grown["mockupstream_event_lateness_seconds_sum"] == pytest.approx(
        sum(mark.late for mark in marks(body)) / 1e6, abs=8e-6
    )
    assert grown["mockupstream_response_body_bytes_total"] == len(body)
    assert grown['mockupstream_requests_total{route="/stream",status="200"}'] == 1
    assert grown[LEFT] == 0


@pytest.mark.parametrize(
    ("target", "seen"),
    [("/stream?first=10s", b"\r\n\r\n"), ("/stream?events=999", b"@000003"), ("/stream?events=1&end=10s", b"[DONE]")],
)
def test_a_client_that_leaves_ends_its_stream(upstream: Server, target: str, seen: bytes) -> None:
    """A stream whose client closes before its first event, between two or before its last chunk is counted as left."""
    eventually(lambda: upstream.metric(OPEN) == 0, "the streams of earlier tests have ended")
    before = upstream.metric(LEFT)
    with streaming(upstream, target) as connection:
        received(connection, seen)
        assert upstream.metric(OPEN) == 1
    eventually(lambda: upstream.metric(OPEN) == 0, "no stream is open", patience=5)
    assert upstream.metric(LEFT) == before + 1
    assert upstream.metric("mockupstream_requests_in_flight") == 0


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_client_that_does_not_read_gets_everything_later(framework: str) -> None:
    """Where the client reads nothing for a while, events wait: none is lost or out of order, and late ones say so."""
    with gunicorn(framework, workers="1") as server:
        with contextlib.closing(server.connect()) as connection:
            connection.request("GET", "/stream?events=300&every=1ms&size=65536")
            response = connection.getresponse()
            eventually(lambda: server.metric(WRITTEN) == server.metric(WRITTEN) > 10, "the server waits")
            found = marks(response.read())
        assert [mark.number for mark in found] == list(range(300))
        assert max(mark.late for mark in found) > 1000


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_stop_lets_streams_end(framework: str) -> None:
    """On SIGTERM a stream in flight is still sent to its end, and the server ends with 0."""
    with gunicorn(framework, workers="1") as server:
        with streaming(server, "/stream?events=50") as connection:
            data = received(connection, b"@000003")
            server.process.terminate()
            data += received(connection, b"\r\n0\r\n\r\n")
        assert len(marks(data)) == 50
        assert server.process.wait(20) == 0
