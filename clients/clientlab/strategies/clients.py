"""The list of clients. A new client is one file in `clientlab/clients/` and one spec in this list.

Those of httpx are in httpx_specs.py, and those of native libraries in native_specs.py.
"""

from __future__ import annotations

from dataclasses import replace

from clientlab.strategies.httpx_specs import HTTPX
from clientlab.strategies.native_specs import NATIVE
from clientlab.strategies.specs import ClientSpec, Quirks

_CLIENTS = "clientlab.clients."

_NIQUESTS = Quirks(
    fault_kinds=(("reset in the body", "protocol"),),  # urllib3-future: the stream's end
    hangs_after=("switching protocols unasked", "two responses in one"),
)

_PYTHON = (
    ClientSpec(
        "requests",
        _CLIENTS + "requests_per_call:RequestsPerCall",
        "blocking",
        "requests",
        "per call",
        "requests.request(…): a session and a connection per call",
        needs=("urllib3",),
        executors=("threads", "process-chunks"),
    ),
    ClientSpec(
        "requests-session",
        _CLIENTS + "requests_session:RequestsSession",
        "blocking",
        "requests",
        "pool",
        "one requests.Session",
        needs=("urllib3",),
        executors=("threads", "queue", "futures", "gevent", "processes", "process-chunks", "sync_to_async"),
    ),
    ClientSpec(
        "aiohttp",
        _CLIENTS + "aiohttp_session:AiohttpSession",
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
        _CLIENTS + "aiohttp_per_call:AiohttpPerCall",
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
        quirks=Quirks(own_chunk_size=65_536, keep_alive_header=True, confused_after=("two responses in one",)),
    ),
    ClientSpec(
        "niquests",
        _CLIENTS + "niquests_session:NiquestsSession",
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
        _CLIENTS + "niquests_async:NiquestsAsync",
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
