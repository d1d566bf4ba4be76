"""httpx, and httpx2, its continuation: the same code for both, so that a difference is
the library's.

A trial imports only its own library. The module therefore imports neither of them;
`import_library` does.
"""

from __future__ import annotations

import importlib
import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, ClassVar

from clientlab.clients.client_interface import (
    IN_THREADS,
    SEARCHES,
    Budget,
    Client,
    ClientBase,
    ClientSpec,
    Opened,
    Quirks,
    Sink,
    StatusAndBody,
    TimedPerThread,
    tls_context,
)
from clientlab.errors import ClientError
from clientlab.workload.workload import Request

# The other clients keep idle connections at least as long; the library's default is 5
# s.
KEEP_IDLE_SECONDS = 75.0


class _Httpx(ClientBase):
    library_name: ClassVar[str] = "httpx"
    library: ClassVar[Any]

    @classmethod
    def import_library(cls) -> None:
        library = cls.library = importlib.import_module(cls.library_name)
        # One without "[SSL" is anyio's want-read, part of any other error's chain.
        cls.errors = (
            (
                ssl.SSLError,
                "tls",
                "[SSL",
            ),
            (library.ConnectTimeout, "timeout-connect"),
            (library.ReadTimeout, "timeout-read"),
            (library.WriteTimeout, "timeout-read"),
            (library.PoolTimeout, "timeout-pool"),
            (library.ConnectError, "connect"),
            (ConnectionError, "reset"),
            (library.ReadError, "reset"),
            (library.WriteError, "reset"),
            (library.RemoteProtocolError, "reset", "without sending a response"),
            (library.RemoteProtocolError, "protocol"),
            (library.DecodingError, "protocol"),
            (
                AttributeError,
                "reset",
                "getpeername",
            ),  # anyio under uvloop, if the peer has already reset the socket
        )


class _KeptClient(_Httpx):
    http2: ClassVar[bool] = False
    spare: ClassVar[int] = (
        # Connections beyond the budget's, for failed ones that keep their place in the
        # pool.
        0
    )

    def __init__(
        self,
        budget: Budget,
        opened: Opened,
        *,
        max_keepalive: int | None = None,
        keepalive_expiry: float | None = None,
        trust: str = "lab",
    ) -> None:
        super().__init__(budget, opened)
        self._max_keepalive = max_keepalive
        self._keepalive_expiry = keepalive_expiry
        self._trust = trust

    @classmethod
    def import_library(cls) -> None:
        super().import_library()
        if cls.http2:
            h2_errors = importlib.import_module("h2.exceptions")
            # The library blames the client for malformed frames of the server.
            over_h2 = (
                (cls.library.LocalProtocolError, "protocol"),
                (h2_errors.H2Error, "protocol"),
            )
            cls.errors = (*cls.errors, *over_h2)

    def make_client(self, client_class: Any, check: Any, **options: Any) -> Any:
        """Return a client with the budget's limits.

        `check` looks at each response over HTTP/2.
        """
        if self.http2:
            options |= {"http2": True, "event_hooks": {"response": [check]}}
        tls = self.make_tls() or True
        limits = self.make_limits()
        retry = self._budget.retry
        if retry is not None:
            transport_class = self.library.AsyncHTTPTransport
            if client_class is self.library.Client:
                transport_class = self.library.HTTPTransport
            options["transport"] = transport_class(
                verify=tls,
                http2=self.http2,
                limits=limits,
                retries=retry.attempts - 1,
            )
        client = client_class(
            verify=tls,
            limits=limits,
            timeout=self.library.Timeout(
                self._budget.timeout, pool=None
            ),  # no limit for the wait for a connection
            cookies=CookieJar(
                DefaultCookiePolicy(allowed_domains=[])
            ),  # a jar that stays empty
            **options,
        )
        del client.headers[
            "Connection"
        ]  # `keep-alive`, which other clients do not send
        return client

    def make_tls(self) -> ssl.SSLContext | None:
        return tls_context(self._budget, self._trust, self.library.create_ssl_context)

    def make_limits(self) -> Any:
        """Return the budget and the settings as limits of the library."""
        pool, seconds = (
            self._budget.connections,
            5.0 if self._budget.connections is None else KEEP_IDLE_SECONDS,
        )
        kept = 20 if pool is None else pool or None  # None: no limit
        connections = 100 if pool is None else kept and kept + self.spare
        kept = kept if self._max_keepalive is None else self._max_keepalive
        seconds = seconds if self._keepalive_expiry is None else self._keepalive_expiry
        return self.library.Limits(
            max_connections=connections,
            max_keepalive_connections=kept,
            keepalive_expiry=seconds,
        )


@ClientSpec(
    "httpx-client",
    "httpx",
    "pool",
    pairs=("threads",),
    unlimited=True,
    quirks=SEARCHES,
    own_retries="connecting",
)
class HttpxClient(_KeptClient):
    """One httpx.Client."""

    def open(self) -> None:
        self._client = self.make_client(self.library.Client, _check_version)

    def send(self, request: Request) -> StatusAndBody:
        response = self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        with self._client.stream(
            method, url, headers=request.headers, content=request.body
        ) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return int(response.status_code)

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._client.close()


@ClientSpec(
    "httpx-async",
    "httpx",
    "pool",
    kind="asyncio",
    pairs=("workers", "gather", "semaphore"),
    unlimited=True,
    quirks=SEARCHES,
    own_retries="connecting",
)
class HttpxAsync(_KeptClient):
    """One httpx.AsyncClient."""

    async def open(self) -> None:
        self._client = self.make_client(self.library.AsyncClient, _acheck_version)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        async with self._client.stream(
            method, url, headers=request.headers, content=request.body
        ) as response:
            async for chunk in response.aiter_bytes(self._budget.chunk_size):
                sink(chunk)
            return int(response.status_code)

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content, response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._client.aclose()


@ClientSpec("httpx", "httpx", "per call", quirks=Quirks(keep_alive_header=True))
class HttpxPerCall(_Httpx, Client):
    """httpx.request(…): a client, its TLS set-up and a connection per call."""

    def __init__(self, budget: Budget, opened: Opened, *, trust: str = "lab") -> None:
        super().__init__(budget, opened)
        self._trust = trust

    def send(self, request: Request) -> StatusAndBody:
        response = self.library.request(
            request.method, request.url, **self._arguments(request)
        )
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self.library.stream(
            request.method, request.url, **self._arguments(request)
        ) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return int(response.status_code)

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self.library.request(
            request.method, request.url, **self._arguments(request)
        )
        return response.status_code, response.content, response.elapsed.total_seconds()

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of a call.

        It has a new TLS context, as the library itself makes one.
        """
        tls = tls_context(self._budget, self._trust, self.library.create_ssl_context)
        options = {
            "headers": request.headers,
            "content": request.body,
            "timeout": self._budget.timeout,
        }
        return {**options, "verify": tls or True}


@ClientSpec(
    "httpx-client-per-thread",
    "httpx",
    "per thread",
    only=IN_THREADS,
    quirks=SEARCHES,
    own_retries="connecting",
)
class HttpxClientPerThread(TimedPerThread):
    """One httpx.Client for each thread, with a pool of one connection."""

    shared = HttpxClient

    @classmethod
    def import_library(cls) -> None:
        cls.shared.import_library()
        cls.errors = cls.shared.errors


# httpcore and httpcore2 (`http2.py`) announce 100 streams to the server, and open no
# more. Threads cannot share a connection over HTTP/2, so these are in no listed pair
# with threads: see docs/limits.md.
@ClientSpec(
    "httpx-client-h2",
    "httpx",
    "pool",
    http="2",
    streams=100,
    needs=("h2",),
    own_retries="connecting",
)
class HttpxClientH2(HttpxClient):
    """One httpx.Client over HTTP/2: one connection for all."""

    http2 = True


@ClientSpec(
    "httpx-async-h2",
    "httpx",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    http="2",
    streams=100,
    needs=("h2",),
    own_retries="connecting",
)
class HttpxAsyncH2(HttpxAsync):
    """One httpx.AsyncClient over HTTP/2: one connection for all."""

    http2 = True


@ClientSpec(
    "httpx-aiohttp",
    "httpx-aiohttp",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    needs=("httpx", "aiohttp"),
    unlimited=True,
)
class HttpxOnAiohttp(HttpxAsync):
    """One httpx.AsyncClient on aiohttp, by httpx-aiohttp's transport.

    Its `ClientSession` is that of the lab's aiohttp client. The one that httpx-aiohttp
    makes otherwise stores cookies and sends a GET again.
    """

    transport: ClassVar[str] = "httpx_aiohttp"

    def __init__(
        self,
        budget: Budget,
        opened: Opened,
        *,
        keepalive_expiry: float | None = None,
        trust: str = "lab",
    ) -> None:
        super().__init__(budget, opened, keepalive_expiry=keepalive_expiry, trust=trust)

    @classmethod
    def import_library(cls) -> None:
        super().import_library()
        importlib.import_module(cls.transport)
        aiohttp_clients = importlib.import_module("clientlab.clients.aiohttp_clients")
        cls.errors = (*aiohttp_clients.AIOHTTP_ERRORS, *cls.errors)

    async def open(self) -> None:
        from clientlab.clients.aiohttp_clients import (  # noqa: PLC0415 - the other clients need no aiohttp
            AiohttpSession,
        )

        limits, tls = (
            self.make_limits(),
            self.make_tls() or self.library.create_ssl_context(),
        )
        session = AiohttpSession(
            self._budget, lambda: None, keepalive_timeout=limits.keepalive_expiry
        )
        session.tls = tls
        transport_class = importlib.import_module(self.transport).AiohttpTransport
        transport = transport_class(
            verify=tls, limits=limits, client=session.new_session
        )
        self._client = self.make_client(
            self.library.AsyncClient, None, transport=transport
        )


def _check_version(response: Any) -> None:
    """Raise ClientError if the response is not HTTP/2.

    Both libraries fall back to HTTP/1.1 silently.
    """
    if response.extensions["http_version"] != b"HTTP/2":
        raise ClientError(
            "protocol",
            f"the server spoke {response.http_version} where HTTP/2 was asked for",
        )


async def _acheck_version(response: Any) -> None:
    _check_version(response)


# httpx2


@ClientSpec(
    "httpx2-client",
    "httpx2",
    "pool",
    pairs=("threads",),
    unlimited=True,
    quirks=SEARCHES,
    own_retries="connecting",
)
class Httpx2Client(HttpxClient):
    """One httpx2.Client."""

    library_name = "httpx2"


@ClientSpec(
    "httpx2-async",
    "httpx2",
    "pool",
    kind="asyncio",
    pairs=("workers", "trio"),
    unlimited=True,
    quirks=SEARCHES,
    own_retries="connecting",
)
class Httpx2Async(HttpxAsync):
    """One httpx2.AsyncClient."""

    library_name = "httpx2"


@ClientSpec("httpx2", "httpx2", "per call", quirks=Quirks(keep_alive_header=True))
class Httpx2PerCall(HttpxPerCall):
    """httpx2.request(…): a client, its TLS set-up and a connection per call."""

    library_name = "httpx2"


@ClientSpec(
    "httpx2-client-per-thread",
    "httpx2",
    "per thread",
    only=IN_THREADS,
    quirks=SEARCHES,
    own_retries="connecting",
)
class Httpx2ClientPerThread(HttpxClientPerThread):
    """One httpx2.Client for each thread, with a pool of one connection."""

    shared = Httpx2Client


# After a time-out, httpx2 neither uses an HTTP/2 connection again nor frees its place:
# a pool of one waits forever. With one place more, a new connection is opened, and the
# failed one is closed as one too many.
@ClientSpec(
    "httpx2-client-h2",
    "httpx2",
    "pool",
    http="2",
    streams=100,
    needs=("h2",),
    own_retries="connecting",
)
class Httpx2ClientH2(HttpxClientH2):
    """One httpx2.Client over HTTP/2: one connection for all."""

    library_name = "httpx2"
    spare = 1


@ClientSpec(
    "httpx2-async-h2",
    "httpx2",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    http="2",
    streams=100,
    needs=("h2",),
    own_retries="connecting",
)
class Httpx2AsyncH2(HttpxAsyncH2):
    """One httpx2.AsyncClient over HTTP/2: one connection for all."""

    library_name = "httpx2"
    spare = 1


@ClientSpec(
    "httpx2-aiohttp",
    "httpx-aiohttp",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    needs=("httpx2", "aiohttp"),
    unlimited=True,
)
class Httpx2OnAiohttp(HttpxOnAiohttp):
    """One httpx2.AsyncClient on aiohttp, by httpx-aiohttp's transport."""

    library_name = "httpx2"
    transport = "httpx_aiohttp.httpx2"
