"""Bodies that are streamed, and the library's own measure: every client that can, against a server on raw sockets."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.conformance.server import Last, counting_server, ok
from clientlab.errors import LabError
from clientlab.strategies import STRATEGIES, check_capabilities
from clientlab.workload.making import Upload, requests_of
from clientlab.workload.workload import Workload
from clients.ahead import begun_ahead
from clients.each_library import one_of_each_library
from clients.measured import counted, measure
from running import eventually

CLIENTS = {name: spec for name, spec in strategies.CLIENTS.items() if spec.http == "1.1" and not spec.program}
SIZE = 300_000
CHUNK = 10_000
BODY = bytes(range(250)) * (SIZE // 250)

STREAMING = [name for name, spec in CLIENTS.items() if hasattr(strategies.load(spec.import_path), "stream")]
UPLOADING = [
    name for name, spec in CLIENTS.items() if getattr(strategies.load(spec.import_path), "streams_uploads", True)
]
TIMING = [name for name, spec in CLIENTS.items() if hasattr(strategies.load(spec.import_path), "timed")]


def chunked(body: bytes) -> bytes:
    """A whole answer of unknown length, in chunks of its own size."""
    pieces = [body[at : at + 7000] for at in range(0, len(body), 7000)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


def streamed(client: str, url: str) -> tuple[int, list[bytes]]:
    """The status and the chunks of one request, by the client itself."""
    spec = CLIENTS[client]
    made = strategies.load(spec.import_path)(Budget(1, 5.0, chunk_size=CHUNK), lambda: None)
    request, chunks = requests_of(Workload(), url)(0), []

    async def awaited() -> int:
        await made.open()
        try:
            return await made.stream(request, chunks.append)
        finally:
            await made.close()

    if spec.kind == "asyncio":
        return asyncio.run(awaited()), chunks
    made.open()
    try:
        return made.stream(request, chunks.append), chunks
    finally:
        made.close()


@pytest.mark.parametrize("client", STREAMING)
@pytest.mark.parametrize("answer", [ok, chunked])
def test_the_whole_body_comes_in_chunks_of_the_size_asked_for(client, answer):
    """Every byte once and in order, with and without a length; no chunk larger than was asked for."""
    with counting_server(lambda _: answer(BODY)) as server:
        status, chunks = streamed(client, server.url)
    assert status == 200
    assert b"".join(chunks) == BODY
    assert len(chunks) > 3
    assert max(map(len, chunks)) <= (CLIENTS[client].quirks.own_chunk_size or CHUNK)


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(STREAMING))
def test_a_connection_is_used_again_after_a_streamed_body(client):
    """As after one that was read whole; bytes are counted, errors of status as well.

    A client that opens connections ahead may open one more, and use it or not.
    """

    def by_number(seen):
        return ok(BODY, "503 Service Unavailable" if seen.target == "/2" else "200 OK")

    with counting_server(by_number) as server:
        workload = Workload(path="/{k}", requests=6, concurrency=1, warmup=0, read="chunks")
        measured = measure(client, workload, server.url)
        used = server.connections
        begun = counted(client, measured.outcome.connections_begun, server.accepted)
        eventually(lambda: server.accepted >= begun, "the server has every connection that was counted")
    permitted = {6} if CLIENTS[client].policy == "per call" else {1, 2} if CLIENTS[client].quirks.opens_ahead else {1}
    assert {used, begun} <= permitted
    assert begun == (server.accepted if CLIENTS[client].quirks.opens_ahead else used)
    assert measured.samples.errors == {"status-5xx": 1}
    assert measured.samples.records["bytes"].tolist() == [SIZE] * 6


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(STREAMING))
def test_a_stream_that_is_cut_short_is_of_kind_protocol(client):
    """With and without a length. What came before the cut is no success; the next request is not spoiled."""
    cut = {"/1": Last(ok(BODY)[:-5]), "/3": Last(chunked(BODY)[:-900])}
    with counting_server(lambda seen: cut.get(seen.target, ok(BODY))) as server:
        workload = Workload(path="/{k}", requests=5, concurrency=1, warmup=0, read="chunks")
        measured = measure(client, workload, server.url)
        assert [seen.target for seen in server.seen] == [f"/{k}" for k in range(5)]
    assert measured.samples.errors == {"protocol": 2}
    assert measured.samples.records["bytes"].tolist() == [SIZE, 0, SIZE, 0, SIZE]


@pytest.fixture(scope="module")
def silenced(request):
    """A server that sends the head and half of the body, and no more."""
    with counting_server(lambda _: ok(BODY)[: -SIZE // 2]) as server:
        workload = Workload(requests=2, concurrency=1, warmup=0, timeout=0.3, read="chunks")
        yield from begun_ahead(request, "client", lambda client: measure(client, workload, server.url))


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(STREAMING))
def test_silence_between_chunks_is_a_time_out(client, silenced):
    """A server that pauses too long between two chunks causes an error of kind timeout-read."""
    assert silenced(client).samples.errors == {"timeout-read": 2}


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(UPLOADING))
@pytest.mark.parametrize("upload", ["whole", "stream"])
def test_an_upload_arrives_whole_with_its_length(client, upload):
    """The same bytes for a seed, framed alike by all, streamed or not, on one connection or many."""
    workload = Workload(method="POST", requests=3, warmup=0, upload_size=SIZE, upload=upload, seed=7)
    with counting_server() as server:
        measured = measure(client, workload, server.url)
    assert measured.samples.errors == {}
    sent = hashlib.sha256(b"".join(Upload(SIZE, 7))).hexdigest()
    assert [hashlib.sha256(seen.body).hexdigest() for seen in server.seen] == [sent] * 3
    for name, value in {"content-length": str(SIZE), "content-type": "application/octet-stream"}.items():
        assert [seen.headers.get(name) for seen in server.seen] == [value] * 3
    assert not any("transfer-encoding" in seen.headers or "expect" in seen.headers for seen in server.seen)


@pytest.mark.parametrize(
    "strategy", ["requests-session@threads", "aiohttp@workers", "urllib3@processes", "requests-session@gevent"]
)
def test_many_requests_in_flight_stream_each_their_own(strategy):
    """Bodies are not mixed up: each request sends and receives all of its bytes."""
    workload = Workload(
        method="PUT", requests=24, concurrency=4, warmup=1, read="chunks", upload_size=SIZE, upload="stream"
    )
    with counting_server(lambda _: ok(BODY)) as server:
        measured = measure(strategy, workload, server.url, on_start=server.reset)
    assert measured.samples.errors == {}
    assert measured.samples.records["bytes"].tolist() == [SIZE] * 24
    assert {seen.body for seen in server.seen} == {b"".join(Upload(SIZE, 1))}
    assert len(server.seen) == 24


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [*TIMING, "requests-session@threads", "httpx-async@workers"])
def test_the_librarys_own_elapsed_is_kept_beside_the_labs_time(strategy):
    """For each successful request, no longer than what the lab measured, and 0 for a failed one."""
    workload = Workload(path="/{k}", requests=12, concurrency=3, warmup=1, elapsed=True)
    with counting_server(lambda seen: None if seen.target == "/5" else ok(), hold=0.02) as server:
        measured = measure(strategy, workload, server.url)
    records = measured.samples.records
    good = records[records["error"] == 0]
    assert len(good) == 11
    assert (good["elapsed"] >= 0.02).all()
    assert (good["elapsed"] <= good["seconds"] + 1e-4).all()
    assert records["elapsed"][records["error"] > 0].tolist() == [0.0]


def test_elapsed_is_to_the_end_of_headers_in_requests_and_of_the_body_in_httpx():
    """The time in which a large body is read is a part of one and not of the other."""
    with counting_server(lambda _: ok(BODY * 40)) as server:
        workload = Workload(requests=5, warmup=1, elapsed=True)
        by_requests, by_httpx = (
            measure(client, workload, server.url).samples.records for client in ("requests-session", "httpx-client")
        )
    assert (by_requests["elapsed"] < by_requests["seconds"]).all()
    share = {"requests": by_requests, "httpx": by_httpx}
    parts = {name: float((records["elapsed"] / records["seconds"]).mean()) for name, records in share.items()}
    assert parts["requests"] < parts["httpx"]


def test_without_being_asked_no_elapsed_is_kept():
    """Unless the workload records the library's own elapsed time, that field of a sample stays 0."""
    with counting_server() as server:
        measured = measure("requests-session", Workload(requests=3, warmup=0), server.url)
    assert measured.samples.records["elapsed"].tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("strategy", "changes", "says"),
    [
        ("httplib2@threads", {"read": "chunks"}, r"^read: chunks: .*'httplib2@threads' reads no .* requests, .*url"),
        ("pycurl@multi", {"read": "chunks"}, r"^read: chunks: .*'pycurl@multi' sends whole .* client pycurl with"),
        ("pycurl@multi", {"upload_size": 5, "upload": "stream"}, r"^upload: stream: .*'pycurl@multi' sends whole"),
        ("aiosonic", {"upload_size": 5, "upload": "stream"}, r"^upload: stream: .*'aiosonic' streams no .*http.client"),
        ("urllib3", {"elapsed": True}, r"^elapsed: .*'urllib3' does not measure .* are requests, .*httpx-async"),
    ],
)  # fmt: skip
def test_a_client_that_cannot_is_refused_with_those_that_can(strategy, changes, says):
    """In one line, before anything is started."""
    with pytest.raises(LabError, match=says) as caught:
        check_capabilities(strategies.find(strategy), Workload(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, s in STRATEGIES.items() if not strategies.CLIENTS[s.client].program])
def test_a_workload_that_asks_for_nothing_special_suits_every_strategy(name):
    """A plain workload, with a body held in memory too, suits every strategy."""
    check_capabilities(STRATEGIES[name], Workload(upload_size=10))
