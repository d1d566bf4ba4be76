"""GOAWAY while requests are in flight: how many requests each client of HTTP/2 loses that no server has processed.

A server on raw frames (`conformance.h2_server`) answers the first streams of each connection, then sends GOAWAY with
the number of the last of them, and closes. Requests on later streams were not processed, so each may be sent again
on a new connection (RFC 9113, 6.8). One that fails is lost without need.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.metadata import version

import hpack

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, context_on
from clientlab.conformance.h2_server import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Paths, frame, h2_server
from clientlab.conformance.server import Last, ServerAnswer
from clientlab.conformance.tls import CA_FILE
from clientlab.measuring.measurement import measure
from clientlab.workload.workload import Workload

STREAMS = 20
"""That a connection answers."""
_REQUESTS, _TRIALS = 400, 5
_CLIENTS = {
    "httpx-async-h2@workers": "httpcore",
    "httpx2-async-h2@workers": "httpcore2",
    "httpx-client-h2@threads": "httpcore",
    "httpx2-client-h2@threads": "httpcore2",
    "niquests-async-h2@workers": "niquests",
    "pycurl-h2": "pycurl",
}
"""Strategy → the package that decides."""
_OK = b"\x88"  # :status 200, an entry of HPACK's static table


def rows() -> Iterator[BenchmarkRow]:
    """The share of lost requests for each client, one and eight in flight, with the range over the trials."""
    for strategy, package in _CLIENTS.items():
        for concurrency in (1, 8):
            shares = [_lost(strategy, concurrency) for _ in range(_TRIALS)]
            name = f"GOAWAY after {STREAMS} streams, {concurrency} in flight: {strategy} ({package} {version(package)})"
            spread = f"range of {_TRIALS} trials of {_REQUESTS}"
            value = 100 * sorted(shares)[_TRIALS // 2]
            yield BenchmarkRow(name, value, 100 * min(shares), 100 * max(shares), spread, "none", True, "% lost")


def _lost(strategy: str, concurrency: int) -> float:
    workload = Workload(path="/{k}", requests=_REQUESTS, concurrency=concurrency, timeout=2.0, request_limit=20.0)
    with h2_server(_answer, _paths) as server, tempfile.TemporaryDirectory() as folder:
        found = measure(context_on(Site(server.url, str(CA_FILE)), strategy, workload, folder)).samples
    return sum(found.errors.values()) / len(found.records)


def _answer(_path: str, stream: int) -> ServerAnswer:
    """A good answer to the first streams, whose numbers are odd; then the end of the connection."""
    last = 2 * STREAMS - 1
    if stream <= last:
        return frame(HEADERS, END_HEADERS, stream, _OK) + frame(DATA, END_STREAM, stream, b"{}")
    return Last(frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + bytes(4)))


def _paths() -> Paths:
    decoder = hpack.Decoder()
    return lambda block: dict(decoder.decode(block, raw=True))[b":path"].decode()
