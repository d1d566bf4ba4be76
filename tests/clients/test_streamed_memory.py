"""Memory of large bodies read in chunks: every client that can, those of HTTP/2 over TLS."""

from __future__ import annotations

import asyncio

import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.conformance.h2_proxy import h2_proxy
from clientlab.conformance.server import counting_server
from clientlab.conformance.tls import CA_FILE
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload
from clients.each_library import one_of_each_library
from clients.measured import measure
from running import eventually

pytestmark = pytest.mark.slow

MIB = 1 << 20
SIZE = 32 * MIB
MOST_ABOVE_IDLE = 24 * MIB  # buffers, and what the first request loads: 20.2 MiB of pyreqwest on Python 3.13
STREAMING = {
    name: spec
    for name, spec in strategies.CLIENTS.items()
    if not spec.program and hasattr(strategies.load(spec.import_path), "stream")
}
H2_CLIENTS = [name for name, spec in STREAMING.items() if spec.http == "2"]


def chunked(body: bytes, size: int = MIB) -> bytes:
    """A whole answer of unknown length."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


SMALL = bytes(range(250)) * 1200
LARGE = chunked(bytes(SIZE))


@pytest.fixture(scope="module")
def behind():
    """A server without TLS."""
    with counting_server(lambda seen: LARGE if seen.target == "/large" else chunked(SMALL, 7000)) as running:
        yield running


@pytest.fixture(scope="module")
def url(behind):
    """Caddy in front of it, which speaks HTTP/2."""
    with h2_proxy(behind.port) as running:
        yield running.url


@pytest.mark.parametrize("client", one_of_each_library(STREAMING))
def test_a_large_body_read_in_chunks_is_not_held(client, request, behind):
    """32 MiB without a length take less than one body above idle, first request included; all of it is received."""
    workload = Workload(path="/large", requests=2, concurrency=1, warmup=0, read="chunks")
    where = (behind.url, None)
    if client in H2_CLIENTS:
        where = (request.getfixturevalue("url"), CA_FILE)
    measured = measure(client, workload, where[0], ca_file=where[1])
    assert measured.samples.errors == {}
    assert measured.samples.records["bytes"].tolist() == [SIZE] * 2
    assert measured.outcome.peak_pss_bytes - measured.outcome.idle_pss_bytes <= MOST_ABOVE_IDLE


@pytest.mark.parametrize("client", one_of_each_library(H2_CLIENTS))
def test_the_whole_body_comes_in_chunks_over_http2(client, url):
    """Every byte once and in order, and in more than one piece."""
    spec, chunks = STREAMING[client], []
    made = strategies.load(spec.import_path)(Budget(1, 5.0, chunk_size=10_000, ca_file=CA_FILE), lambda: None)
    asked = requests_of(Workload(), url)(0)

    async def awaited() -> int:
        await made.open()
        try:
            return await made.stream(asked, chunks.append)
        finally:
            await made.close()

    def blocking() -> int:
        made.open()
        try:
            return made.stream(asked, chunks.append)
        finally:
            made.close()

    assert (asyncio.run(awaited()) if spec.kind == "asyncio" else blocking()) == 200
    assert b"".join(chunks) == SMALL
    assert len(chunks) > 3


@pytest.mark.parametrize("client", one_of_each_library(H2_CLIENTS))
def test_a_connection_is_used_again_after_a_body_streamed_over_http2(client, url, behind):
    """As after one that was read whole."""
    workload = Workload(requests=6, warmup=0, read="chunks")
    measured = measure(client, workload, url, on_start=behind.reset, ca_file=CA_FILE)
    eventually(lambda: behind.in_flight == 0, "the server is done")
    assert (measured.samples.errors, measured.outcome.connections_begun) == ({}, 1)
    assert measured.samples.records["bytes"].tolist() == [len(SMALL)] * 6
    assert len({seen.headers["x-seen-port"] for seen in behind.seen}) == 1
