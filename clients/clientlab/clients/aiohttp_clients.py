"""aiohttp with one `ClientSession`, or with a new session for each request, against which its documentation warns."""

from __future__ import annotations

import ssl
from typing import Any, ClassVar

import aiohttp

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.tls_context import tls_context, trusting
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

AIOHTTP_ERRORS: ErrorTable = (
    (aiohttp.ClientSSLError, "tls"),
    (aiohttp.ConnectionTimeoutError, "timeout-connect"),
    (aiohttp.SocketTimeoutError, "timeout-read"),
    (TimeoutError, "timeout"),
    (aiohttp.ClientConnectorError, "connect"),
    (aiohttp.ServerDisconnectedError, "reset"),
    (ConnectionError, "reset"),
    (aiohttp.ClientPayloadError, "reset", "ConnectionResetError"),
    (aiohttp.ClientOSError, "reset"),
    (aiohttp.ClientPayloadError, "protocol"),
    (aiohttp.ClientResponseError, "protocol"),
)

LIBRARY_LIMIT = 100
LIBRARY_KEEP_IDLE_SECONDS = 15.0
KEEP_IDLE_SECONDS = 75.0
"""The other clients keep idle connections at least as long. aiohttp does so too, except with `library_defaults`."""


class AiohttpSession:
    """One session for the event loop."""

    errors: ClassVar[ErrorTable] = AIOHTTP_ERRORS

    def __init__(  # noqa: PLR0913 - the connector's settings
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        limit_per_host: int = 0,
        ttl_dns_cache: int | None = 10,
        keepalive_timeout: float | None = None,
        force_close: bool = False,
        trust: str = "lab",
    ) -> None:
        self._budget = budget
        self._trust = trust
        if keepalive_timeout is None:
            keepalive_timeout = LIBRARY_KEEP_IDLE_SECONDS if budget.connections is None else KEEP_IDLE_SECONDS
        limit = LIBRARY_LIMIT if budget.connections is None else budget.connections
        self._connector: dict[str, Any] = {"limit": limit, "limit_per_host": limit_per_host}
        self._connector["ttl_dns_cache"] = ttl_dns_cache
        self._connector |= {"force_close": True} if force_close else {"keepalive_timeout": keepalive_timeout}
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=budget.timeout, sock_read=budget.timeout)

    async def open(self) -> None:
        self.trust(trusting(self._budget, self._trust, ssl.create_default_context))
        self._session = self.new_session()

    def trust(self, context: ssl.SSLContext | None) -> None:
        """Set the TLS context of later sessions; None: aiohttp's own."""
        self._connector["ssl"] = context or True

    def new_session(self) -> aiohttp.ClientSession:
        """Return a session with the budget's limits, in the running loop."""
        connector, cookies = aiohttp.TCPConnector(**self._connector), aiohttp.DummyCookieJar()
        session = aiohttp.ClientSession(connector=connector, timeout=self._limits, cookie_jar=cookies)
        # aiohttp sends a GET again when its connection is dropped. No other client does, and the
        # server would count more requests than were sent. aiohttp has no public option for it.
        session._retry_connection = False  # noqa: SLF001
        return session

    async def send(self, request: Request) -> StatusAndBody:
        async with self._session.request(
            request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
        ) as response:
            return response.status, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        return await self._stream_in(self._session, request, sink)

    async def _stream_in(self, session: aiohttp.ClientSession, request: Request, sink: Sink) -> int:
        async with session.request(
            request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
        ) as response:
            async for chunk in response.content.iter_chunked(self._budget.chunk_size):
                sink(chunk)
            return response.status

    async def close(self) -> None:
        await self._session.close()


class AiohttpPerCall(AiohttpSession):
    """A session, its connector and a connection for each request. Only the TLS context is kept."""

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)

    async def open(self) -> None:
        self.trust(tls_context(self._budget))

    async def send(self, request: Request) -> StatusAndBody:
        async with (
            self.new_session() as session,
            session.request(
                request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
            ) as response,
        ):
            return response.status, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        async with self.new_session() as session:
            return await self._stream_in(session, request, sink)

    async def close(self) -> None:
        """Do nothing: each call closed its own session."""
