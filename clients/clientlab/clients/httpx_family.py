"""Clients of httpx and of httpx2, its continuation: the same code, so that a difference is the library's.

A client is a subclass with its library: ``class HttpxClient(FamilyClient, library=httpx)``. No library is imported
here, because a trial imports only its own.
"""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, ClassVar

from clientlab.clients.client_interface import Budget, NothingKept, Opened, Sink, StatusAndBody
from clientlab.clients.tls_context import trusting
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request

KEEP_IDLE_SECONDS = 75.0
"""Both libraries close idle connections after 5 s by default. The other clients keep them, so these do too."""


def errors_of(library: Any, *, http2: bool = False) -> ErrorTable:
    """Return the table of a library's exceptions."""
    over_h2: ErrorTable = ()
    if http2:
        from h2.exceptions import H2Error  # noqa: PLC0415 - only clients with HTTP/2 need it

        # The library blames the client for malformed frames of the server.
        over_h2 = ((library.LocalProtocolError, "protocol"), (H2Error, "protocol"))
    return (
        (ssl.SSLError, "tls", "[SSL"),  # one without "[SSL" is anyio's want-read, part of any other error's chain
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
        (AttributeError, "reset", "getpeername"),  # anyio under uvloop: the peer has reset it before anyio looks at it
        *over_h2,
    )


class _OfLibrary:
    """A client of one of the libraries, with its table of errors."""

    library: ClassVar[Any]
    errors: ClassVar[ErrorTable]
    http2: ClassVar[bool]

    def __init_subclass__(cls, library: Any = None, *, http2: bool = False) -> None:
        if library is not None:
            cls.library, cls.errors, cls.http2 = library, errors_of(library, http2=http2), http2


class _Made(_OfLibrary):
    """A client that is made once: its limits, its TLS context and the check of its version of HTTP."""

    spare: ClassVar[int] = 0  # connections beside the budget's, for failed ones that keep their place in the pool

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        max_keepalive: int | None = None,
        keepalive_expiry: float | None = None,
        trust: str = "lab",
    ) -> None:
        self._budget = budget
        self._max_keepalive = max_keepalive
        self._keepalive_expiry = keepalive_expiry
        self._trust = trust

    def made(self, client_class: Any, hook: Any, **options: Any) -> Any:
        """Return a client with the budget's limits. `hook` looks at each response over HTTP/2."""
        if self.http2:
            options |= {"http2": True, "event_hooks": {"response": [hook]}}
        client = client_class(
            verify=self.tls() or True,
            limits=self.limits(),
            timeout=self.library.Timeout(self._budget.timeout, pool=None),  # no limit for the wait for a connection
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # a jar that stays empty
            **options,
        )
        del client.headers["Connection"]  # `keep-alive`, which other clients do not send
        return client

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, or None for the library's own."""
        return trusting(self._budget, self._trust, self.library.create_ssl_context)

    def limits(self) -> Any:
        """Return the budget as limits of the library; without one, its defaults: 100 connections, 20 kept for 5 s."""
        connections: int | None = 100
        kept: int | None = 20
        seconds = 5.0
        if self._budget.connections is not None:
            kept = self._budget.connections or None  # None: no limit
            connections = kept and kept + self.spare
            seconds = KEEP_IDLE_SECONDS
        return self.library.Limits(
            max_connections=connections,
            max_keepalive_connections=kept if self._max_keepalive is None else self._max_keepalive,
            keepalive_expiry=seconds if self._keepalive_expiry is None else self._keepalive_expiry,
        )


class FamilyClient(_Made):
    """One blocking `Client`, shared by all threads of the process."""

    def open(self) -> None:
        self._client = self.made(self.library.Client, check_version)

    def send(self, request: Request) -> StatusAndBody:
        response = self._client.request(request.method, request.url, headers=request.headers, content=request.body)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        with self._client.stream(method, url, headers=request.headers, content=request.body) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return int(response.status_code)

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._client.request(request.method, request.url, headers=request.headers, content=request.body)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._client.close()


class FamilyAsync(_Made):
    """One `AsyncClient` for the event loop."""

    async def open(self) -> None:
        self._client = self.made(self.library.AsyncClient, acheck_version)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        async with self._client.stream(method, url, headers=request.headers, content=request.body) as response:
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


class FamilyPerCall(NothingKept, _OfLibrary):
    """The library's top-level functions: every call makes a client, a TLS context and a connection."""

    def __init__(self, budget: Budget, opened: Opened, *, trust: str = "lab") -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget
        self._trust = trust

    def send(self, request: Request) -> StatusAndBody:
        response = self.library.request(request.method, request.url, **self._options(request))
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self.library.stream(request.method, request.url, **self._options(request)) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return int(response.status_code)

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self.library.request(request.method, request.url, **self._options(request))
        return response.status_code, response.content, response.elapsed.total_seconds()

    def _options(self, request: Request) -> dict[str, Any]:
        """Return the arguments of a call. It has a new TLS context, as the library itself makes one."""
        tls = trusting(self._budget, self._trust, self.library.create_ssl_context)
        options = {"headers": request.headers, "content": request.body, "timeout": self._budget.timeout}
        return {**options, "verify": tls or True}


def check_version(response: Any) -> None:
    """Raise Fault if the response is not HTTP/2: both libraries fall back to HTTP/1.1 silently."""
    if response.extensions["http_version"] != b"HTTP/2":
        raise Fault("protocol", f"the server spoke {response.http_version} where HTTP/2 was asked for")


async def acheck_version(response: Any) -> None:
    """`check_version` as an asyncio hook."""
    check_version(response)
