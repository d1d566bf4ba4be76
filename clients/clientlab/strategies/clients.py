"""The list of clients: a new library is one file under `clientlab/clients/` and one row here."""

from __future__ import annotations

from clientlab.strategies.rows import ClientRow

_CLIENTS = "clientlab.clients."

CLIENTS: dict[str, ClientRow] = {
    row.name: row
    for row in (
        ClientRow(
            "requests",
            _CLIENTS + "requests_per_call:RequestsPerCall",
            "blocking",
            "requests",
            "per call",
            "requests.request(…): a session and a connection a call",
        ),
        ClientRow(
            "requests-session",
            _CLIENTS + "requests_session:RequestsSession",
            "blocking",
            "requests",
            "pool",
            "one requests.Session",
        ),
        ClientRow(
            "httpx",
            _CLIENTS + "httpx_per_call:HttpxPerCall",
            "blocking",
            "httpx",
            "per call",
            "httpx.request(…): a client, its TLS set-up and a connection a call",
        ),
        ClientRow(
            "httpx-client",
            _CLIENTS + "httpx_client:HttpxClient",
            "blocking",
            "httpx",
            "pool",
            "one httpx.Client",
        ),
        ClientRow(
            "httpx-async",
            _CLIENTS + "httpx_async:HttpxAsync",
            "asyncio",
            "httpx",
            "pool",
            "one httpx.AsyncClient",
        ),
        ClientRow(
            "httpx-client-h2",
            _CLIENTS + "httpx_h2:HttpxClientH2",
            "blocking",
            "httpx",
            "pool",
            "one httpx.Client over HTTP/2: one connection for all",
            http="2",
        ),
        ClientRow(
            "httpx-async-h2",
            _CLIENTS + "httpx_h2:HttpxAsyncH2",
            "asyncio",
            "httpx",
            "pool",
            "one httpx.AsyncClient over HTTP/2: one connection for all",
            http="2",
        ),
        ClientRow(
            "aiohttp",
            _CLIENTS + "aiohttp_session:AiohttpSession",
            "asyncio",
            "aiohttp",
            "pool",
            "one aiohttp.ClientSession",
        ),
        ClientRow(
            "aiohttp-per-call",
            _CLIENTS + "aiohttp_per_call:AiohttpPerCall",
            "asyncio",
            "aiohttp",
            "per call",
            "an aiohttp.ClientSession and a connection a call",
        ),
        ClientRow(
            "urllib3",
            _CLIENTS + "urllib3_pool:Urllib3Pool",
            "blocking",
            "urllib3",
            "pool",
            "one urllib3.PoolManager",
        ),
        ClientRow(
            "http.client",
            _CLIENTS + "http_client:HttpClient",
            "blocking",
            "python",
            "per thread",
            "the standard library's connection, one a thread",
        ),
        ClientRow(
            "pycurl",
            _CLIENTS + "pycurl_handle:PycurlHandle",
            "blocking",
            "pycurl",
            "per thread",
            "one libcurl handle a thread, used again",
        ),
        ClientRow(
            "pycurl-h2",
            _CLIENTS + "pycurl_h2:PycurlH2",
            "blocking",
            "pycurl",
            "per thread",
            "one libcurl handle a thread over HTTP/2, a request at a time on each",
            http="2",
        ),
        ClientRow(
            "httplib2",
            _CLIENTS + "httplib2_http:Httplib2Http",
            "blocking",
            "httplib2",
            "per thread",
            "one httplib2.Http a thread",
        ),
        ClientRow(
            "pyreqwest",
            _CLIENTS + "pyreqwest_client:PyreqwestClient",
            "blocking",
            "pyreqwest",
            "pool",
            "one pyreqwest SyncClient: Rust's reqwest",
        ),
        ClientRow(
            "pyreqwest-async",
            _CLIENTS + "pyreqwest_async:PyreqwestAsync",
            "asyncio",
            "pyreqwest",
            "pool",
            "one pyreqwest Client of asyncio: Rust's reqwest",
        ),
        ClientRow(
            "aiosonic",
            _CLIENTS + "aiosonic_client:AiosonicClient",
            "asyncio",
            "aiosonic",
            "pool",
            "one aiosonic.HTTPClient",
        ),
    )
}
