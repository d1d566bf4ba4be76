"""The list of clients. A new client is one file in `clientlab/clients/` and one spec in this list.

The specs of native libraries are in native_specs.py, those of clients that only read streams in stream_specs.py.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace

from clientlab.strategies.native_specs import NATIVE
from clientlab.strategies.specs import ClientSpec, Quirks
from clientlab.strategies.stream_specs import STREAM_READERS

_CLIENTS = "clientlab.clients."
_H2_STREAMS = 100
"""The limit of httpcore and httpcore2 (`http2.py`): they announce 100 streams to the server, and open no more."""
_HTTPX = Quirks(confused_after=("two responses in one",), searches_pool=True)
_H2_WITHOUT_RESET = Quirks(resets_no_stream=True)
_REQUESTS = Quirks(holds_events=512)
_URLLIB3 = Quirks(holds_events=65_536)
_IN_THREADS = ("threads", "queue", "sync_to_async")
"""The executors of a client for each thread: in one thread it would be the shared client."""

HTTPX = (
    ClientSpec(
        "httpx",
        _CLIENTS + "httpx_clients:HttpxPerCall",
        "blocking",
        "httpx",
        "per call",
        "httpx.request(…): a client, its TLS set-up and a connection per call",
        quirks=Quirks(keep_alive_header=True),
    ),
    ClientSpec(
        "httpx-client",
        _CLIENTS + "httpx_clients:HttpxClient",
        "blocking",
        "httpx",
        "pool",
        "one httpx.Client",
        unlimited=True,
        quirks=_HTTPX,
        executors=("threads", "sync_to_async"),
    ),
    ClientSpec(
        "httpx-client-per-thread",
        _CLIENTS + "httpx_clients:HttpxClientPerThread",
        "blocking",
        "httpx",
        "per thread",
        "one httpx.Client for each thread, with a pool of one connection",
        only=_IN_THREADS,
        quirks=_HTTPX,
    ),
    ClientSpec(
        "httpx-async",
        _CLIENTS + "httpx_clients:HttpxAsync",
        "asyncio",
        "httpx",
        "pool",
        "one httpx.AsyncClient",
        unlimited=True,
        quirks=_HTTPX,
        executors=("gather", "as-completed", "semaphore", "workers", "async-processes"),
        on_uvloop=("workers",),
    ),
    ClientSpec(
        "httpx-client-h2",
        _CLIENTS + "httpx_h2:HttpxClientH2",
        "blocking",
        "httpx",
        "pool",
        "one httpx.Client over HTTP/2: one connection for all",
        # Without the executor threads, because threads cannot share its connection: docs/known-limits.md.
        http="2",
        streams=_H2_STREAMS,
        needs=("h2",),
        quirks=_H2_WITHOUT_RESET,
    ),
    ClientSpec(
        "httpx-async-h2",
        _CLIENTS + "httpx_h2:HttpxAsyncH2",
        "asyncio",
        "httpx",
        "pool",
        "one httpx.AsyncClient over HTTP/2: one connection for all",
        http="2",
        streams=_H2_STREAMS,
        needs=("h2",),
        executors=("workers",),
        quirks=_H2_WITHOUT_RESET,
    ),
    ClientSpec(
        "httpx2",
        _CLIENTS + "httpx2_clients:Httpx2PerCall",
        "blocking",
        "httpx2",
        "per call",
        "httpx2.request(…): a client, its TLS set-up and a connection per call",
        quirks=Quirks(keep_alive_header=True),
    ),
    ClientSpec(
        "httpx2-client",
        _CLIENTS + "httpx2_clients:Httpx2Client",
        "blocking",
        "httpx2",
        "pool",
        "one httpx2.Client",
        unlimited=True,
        quirks=_HTTPX,
        executors=("threads",),
    ),
    ClientSpec(
        "httpx2-client-per-thread",
        _CLIENTS + "httpx2_clients:Httpx2ClientPerThread",
        "blocking",
        "httpx2",
        "per thread",
        "one httpx2.Client for each thread, with a pool of one connection",
        only=_IN_THREADS,
        quirks=_HTTPX,
    ),
    ClientSpec(
        "httpx2-async",
        _CLIENTS + "httpx2_clients:Httpx2Async",
        "asyncio",
        "httpx2",
        "pool",
        "one httpx2.AsyncClient",
        unlimited=True,
        quirks=_HTTPX,
        executors=("workers", "trio"),
    ),
    ClientSpec(
        "httpx2-client-h2",
        _CLIENTS + "httpx2_h2:Httpx2ClientH2",
        "blocking",
        "httpx2",
        "pool",
        "one httpx2.Client over HTTP/2: one connection for all",
        http="2",
        streams=_H2_STREAMS,
        needs=("h2",),
        quirks=_H2_WITHOUT_RESET,
    ),
    ClientSpec(
        "httpx2-async-h2",
        _CLIENTS + "httpx2_h2:Httpx2AsyncH2",
        "asyncio",
        "httpx2",
        "pool",
        "one httpx2.AsyncClient over HTTP/2: one connection for all",
        http="2",
        streams=_H2_STREAMS,
        needs=("h2",),
        executors=("workers",),
        quirks=_H2_WITHOUT_RESET,
    ),
    ClientSpec(
        "httpx-aiohttp",
        _CLIENTS + "httpx_on_aiohttp:HttpxOnAiohttp",
        "asyncio",
        "httpx-aiohttp",
        "pool",
        "one httpx.AsyncClient on aiohttp, by httpx-aiohttp's transport",
        needs=("httpx", "aiohttp"),
        unlimited=True,
        executors=("workers",),
    ),
    ClientSpec(
        "httpx2-aiohttp",
        _CLIENTS + "httpx2_on_aiohttp:Httpx2OnAiohttp",
        "asyncio",
        "httpx-aiohttp",
        "pool",
        "one httpx2.AsyncClient on aiohttp, by httpx-aiohttp's transport",
        needs=("httpx2", "aiohttp"),
        unlimited=True,
        executors=("workers",),
    ),
)


_NIQUESTS = Quirks(
    fault_kinds=(("reset in the body", "protocol"),),  # urllib3-future: the stream's end
    hangs_after=("switching protocols unasked", "two responses in one"),
)

_PYTHON = (
    ClientSpec(
        "requests",
        _CLIENTS + "requests_clients:RequestsPerCall",
        "blocking",
        "requests",
        "per call",
        "requests.request(…): a session and a connection per call",
        needs=("urllib3",),
        executors=("threads", "process-chunks"),
        quirks=_REQUESTS,
    ),
    ClientSpec(
        "requests-session",
        _CLIENTS + "requests_clients:RequestsSession",
        "blocking",
        "requests",
        "pool",
        "one requests.Session",
        needs=("urllib3",),
        executors=("threads", "queue", "futures", "gevent", "processes", "process-chunks", "sync_to_async"),
        quirks=_REQUESTS,
    ),
    ClientSpec(
        "requests-session-per-thread",
        _CLIENTS + "requests_clients:RequestsSessionPerThread",
        "blocking",
        "requests",
        "per thread",
        "one requests.Session for each thread, with a pool of one connection",
        needs=("urllib3",),
        only=_IN_THREADS,
        quirks=_REQUESTS,
    ),
    ClientSpec(
        "aiohttp",
        _CLIENTS + "aiohttp_clients:AiohttpSession",
        "asyncio",
        "aiohttp",
        "pool",
        "one aiohttp.ClientSession",
        unlimited=True,
        executors=("gather", "as-completed", "semaphore", "workers", "async-processes", "async-threads"),
        on_uvloop=("workers", "semaphore"),
    ),
    ClientSpec(
        "aiohttp-per-call",
        _CLIENTS + "aiohttp_clients:AiohttpPerCall",
        "asyncio",
        "aiohttp",
        "per call",
        "an aiohttp.ClientSession and a connection per call",
    ),
    ClientSpec(
        "urllib3",
        _CLIENTS + "urllib3_pool:Urllib3Pool",
        "blocking",
        "urllib3",
        "pool",
        "one urllib3.PoolManager",
        executors=("threads", "gevent"),
        quirks=_URLLIB3,
    ),
    ClientSpec(
        "urllib3-per-thread",
        _CLIENTS + "urllib3_pool:Urllib3PerThread",
        "blocking",
        "urllib3",
        "per thread",
        "one urllib3.PoolManager for each thread, with a pool of one connection",
        only=_IN_THREADS,
        quirks=_URLLIB3,
    ),
    ClientSpec(
        "http.client",
        _CLIENTS + "http_client:HttpClient",
        "blocking",
        "python",
        "per thread",
        "one connection of the standard library per thread",
        executors=("threads",),
    ),
    ClientSpec(
        "httplib2",
        _CLIENTS + "httplib2_http:Httplib2Http",
        "blocking",
        "httplib2",
        "per thread",
        "one httplib2.Http per thread",
        executors=("threads",),
        quirks=Quirks(closes_after_head=True),
    ),
    ClientSpec(
        "aiosonic",
        _CLIENTS + "aiosonic_client:AiosonicClient",
        "asyncio",
        "aiosonic",
        "pool",
        "one aiosonic.HTTPClient",
        executors=("workers",),
        quirks=Quirks(
            own_chunk_size=65_536,
            keep_alive_header=True,
            confused_after=("two responses in one",),
            needs_length=True,
        ),
    ),
    ClientSpec(
        "niquests",
        _CLIENTS + "niquests_clients:NiquestsSession",
        "blocking",
        "niquests",
        "pool",
        "one niquests.Session, HTTP/1.1",
        extra="niquests",
        executors=("threads",),
        quirks=_NIQUESTS,
    ),
    ClientSpec(
        "niquests-async",
        _CLIENTS + "niquests_clients:NiquestsAsync",
        "asyncio",
        "niquests",
        "pool",
        "one niquests.AsyncSession, HTTP/1.1",
        extra="niquests",
        executors=("workers",),
        quirks=_NIQUESTS,
    ),
    ClientSpec(
        "niquests-h2",
        _CLIENTS + "niquests_h2:NiquestsSessionH2",
        "blocking",
        "niquests",
        "pool",
        "one niquests.Session over HTTP/2, one request at a time on each connection",
        http="2",
        extra="niquests",
        executors=("threads",),
        quirks=replace(_NIQUESTS, hangs_after=(), one_request_per_connection=True),
    ),
    ClientSpec(
        "niquests-async-h2",
        _CLIENTS + "niquests_h2:NiquestsAsyncH2",
        "asyncio",
        "niquests",
        "pool",
        "one niquests.AsyncSession over HTTP/2, one request at a time on each connection",
        http="2",
        extra="niquests",
        executors=("workers",),
        quirks=replace(_NIQUESTS, hangs_after=(), one_request_per_connection=True),
    ),
)

CLIENTS: dict[str, ClientSpec] = {spec.name: spec for spec in (*_PYTHON, *HTTPX, *NATIVE)}
"""Those that send requests of any kind."""

STREAM_CLIENTS: dict[str, ClientSpec] = {spec.name: spec for spec in STREAM_READERS}
"""Those that only read streams of events."""

EVERY_CLIENT: Mapping[str, ClientSpec] = ChainMap(STREAM_CLIENTS, CLIENTS)
"""Both, those that send any request first."""
