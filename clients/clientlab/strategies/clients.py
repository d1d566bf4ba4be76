"""The list of clients. A new client is one file in `clientlab/clients/` and one spec in this list."""

from __future__ import annotations

from dataclasses import replace

from clientlab.strategies.specs import ClientSpec, Quirks

_CLIENTS = "clientlab.clients."

_LIBCURL = Quirks(
    resends_after=("used connection closed", "used connection reset"),
    resumes_tls=True,
    own_chunk_size=16_384,
    late_in_bodies=8.0,  # libcurl measures the speed of a body over the last seconds
)
_PYREQWEST = Quirks(opens_ahead=True, resumes_tls=True)
_NIQUESTS = Quirks(fault_kinds=(("reset in the body", "protocol"),))  # urllib3-future: the stream's end


def _libcurl_lacks_http2() -> str | None:
    import pycurl  # noqa: PLC0415 - for one client only, whose library alone knows it

    if pycurl.version_info()[4] & pycurl.VERSION_HTTP2:
        return None
    return (
        f"libcurl {pycurl.version_info()[1]} has no HTTP/2; pip install --force-reinstall --only-binary pycurl pycurl, "
        "or build it on a libcurl with nghttp2"
    )


CLIENTS: dict[str, ClientSpec] = {
    spec.name: spec
    for spec in (
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
            "httpx",
            _CLIENTS + "httpx_per_call:HttpxPerCall",
            "blocking",
            "httpx",
            "per call",
            "httpx.request(…): a client, its TLS set-up and a connection per call",
            quirks=Quirks(keep_alive_header=True),
        ),
        ClientSpec(
            "httpx-client",
            _CLIENTS + "httpx_client:HttpxClient",
            "blocking",
            "httpx",
            "pool",
            "one httpx.Client",
            unlimited=True,
            executors=("threads", "sync_to_async"),
        ),
        ClientSpec(
            "httpx-async",
            _CLIENTS + "httpx_async:HttpxAsync",
            "asyncio",
            "httpx",
            "pool",
            "one httpx.AsyncClient",
            unlimited=True,
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
            needs=("h2",),
        ),
        ClientSpec(
            "httpx-async-h2",
            _CLIENTS + "httpx_h2:HttpxAsyncH2",
            "asyncio",
            "httpx",
            "pool",
            "one httpx.AsyncClient over HTTP/2: one connection for all",
            http="2",
            needs=("h2",),
            executors=("workers",),
        ),
        ClientSpec(
            "aiohttp",
            _CLIENTS + "aiohttp_session:AiohttpSession",
            "asyncio",
            "aiohttp",
            "pool",
            "one aiohttp.ClientSession",
            unlimited=True,
            executors=("gather", "as-completed", "semaphore", "workers", "async-processes"),
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
            "pycurl",
            _CLIENTS + "pycurl_handle:PycurlHandle",
            "blocking",
            "pycurl",
            "per thread",
            "one libcurl handle per thread",
            executors=("threads", "multi", "processes"),
            native=True,
            quirks=_LIBCURL,
        ),
        ClientSpec(
            "pycurl-h2",
            _CLIENTS + "pycurl_h2:PycurlH2",
            "blocking",
            "pycurl",
            "per thread",
            "one libcurl handle per thread over HTTP/2, one request at a time on each",
            http="2",
            executors=("threads",),
            lacks=_libcurl_lacks_http2,
            native=True,
            quirks=replace(_LIBCURL, one_request_per_connection=True),
        ),
        ClientSpec(
            "curl-cffi",
            _CLIENTS + "curl_cffi_session:CurlCffiSession",
            "blocking",
            "curl-cffi",
            "per thread",
            "one curl_cffi.Session without impersonation: a libcurl handle per thread",
            executors=("threads",),
            native=True,
            quirks=_LIBCURL,
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
            "pyreqwest",
            _CLIENTS + "pyreqwest_client:PyreqwestClient",
            "blocking",
            "pyreqwest",
            "pool",
            "one pyreqwest SyncClient, on Rust's reqwest",
            unlimited=True,
            executors=("threads",),
            native=True,
            own_threads=True,
            quirks=_PYREQWEST,
        ),
        ClientSpec(
            "pyreqwest-async",
            _CLIENTS + "pyreqwest_async:PyreqwestAsync",
            "asyncio",
            "pyreqwest",
            "pool",
            "one pyreqwest Client for asyncio, on Rust's reqwest",
            unlimited=True,
            executors=("workers",),
            native=True,
            own_threads=True,
            quirks=_PYREQWEST,
        ),
        ClientSpec(
            "aiosonic",
            _CLIENTS + "aiosonic_client:AiosonicClient",
            "asyncio",
            "aiosonic",
            "pool",
            "one aiosonic.HTTPClient",
            executors=("workers",),
            quirks=Quirks(own_chunk_size=65_536, keep_alive_header=True),
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
            quirks=replace(_NIQUESTS, one_request_per_connection=True),
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
            quirks=replace(_NIQUESTS, one_request_per_connection=True),
        ),
        ClientSpec(
            "ab",
            _CLIENTS + "apache_bench:ApacheBench",
            "program",
            "python",
            "pool",
            "ApacheBench, a load generator and no library: HTTP/1.0 with keep-alive, timed by its own clock",
            program="ab",
            package="apache2-utils",
        ),
    )
}
