"""aiohttp with one `ClientSession`, or with a session per request, which its
documentation warns against.
"""

from __future__ import annotations

import ssl
from functools import partial
from typing import Any, ClassVar

import aiohttp
from yarl import URL

from clientlab.clients.client_interface import (
    Budget,
    ClientBase,
    ClientSpec,
    Opened,
    Sink,
    StatusAndBody,
    tls_context,
)
from clientlab.clients.retrying import wrap_aiohttp_session
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

# The other clients keep idle connections at least as long; the library's default is 15
# s.
KEEP_IDLE_SECONDS = 75.0


@ClientSpec(
    "aiohttp",
    "aiohttp",
    "pool",
    kind="asyncio",
    unlimited=True,
    pairs=(
        "workers",
        "gather",
        "as-completed",
        "semaphore",
        "async-processes",
        "async-threads",
    ),
    own_retries="aiohttp-retry",
    limits_calls=True,
)
class AiohttpSession(ClientBase):
    """One aiohttp.ClientSession."""

    errors: ClassVar[ErrorTable] = AIOHTTP_ERRORS

    def __init__(  # noqa: PLR0913 - the connector's settings
        self,
        budget: Budget,
        opened: Opened,
        *,
        limit_per_host: int = 0,
        ttl_dns_cache: int | None = 10,
        keepalive_timeout: float | None = None,
        force_close: bool = False,
        trust: str = "lab",
    ) -> None:
        super().__init__(budget, opened)
        self._trust = trust
        self.tls: ssl.SSLContext | None = None  # None: aiohttp's own
        self._connector: dict[str, Any] = {
            "limit_per_host": limit_per_host,
            "ttl_dns_cache": ttl_dns_cache,
        }
        if budget.connections is not None:
            self._connector["limit"] = budget.connections
            keepalive_timeout = (
                KEEP_IDLE_SECONDS if keepalive_timeout is None else keepalive_timeout
            )
        if force_close:
            self._connector["force_close"] = True
        elif keepalive_timeout is not None:
            self._connector["keepalive_timeout"] = keepalive_timeout
        self._limits = aiohttp.ClientTimeout(
            total=budget.call_timeout,
            sock_connect=budget.timeout,
            sock_read=budget.timeout,
        )

    async def open(self) -> None:
        self.tls = tls_context(self._budget, self._trust, ssl.create_default_context)
        self._session = self.new_session()
        if self._budget.retry is not None:
            self._session = wrap_aiohttp_session(self._session, self._budget.retry)

    def new_session(self) -> aiohttp.ClientSession:
        """Return a session with the budget's limits, in the running loop."""
        connector, cookies = (
            aiohttp.TCPConnector(ssl=self.tls or True, **self._connector),
            aiohttp.DummyCookieJar(),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=self._limits,
            cookie_jar=cookies,
            skip_auto_headers=["Content-Type"],
        )
        # aiohttp sends a GET again when its connection is dropped. No other client
        # does, and the server would count more requests than were sent. aiohttp has no
        # public option for it.
        session._retry_connection = False  # noqa: SLF001
        # aiohttp decodes parts of a URL, such as %2F in a query. httpx-aiohttp gives it
        # a text, not a `URL`.
        session._build_url = partial(URL, encoded=True)  # type: ignore[method-assign]  # noqa: SLF001
        return session

    async def send(self, request: Request) -> StatusAndBody:
        async with self._session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
        ) as response:
            return response.status, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        async with _respond(self._session, request) as response:
            return await self._pass_on(response, sink)

    async def _pass_on(self, response: aiohttp.ClientResponse, sink: Sink) -> int:
        content, size = response.content, self._budget.chunk_size
        async for chunk in (
            content.iter_any() if size is None else content.iter_chunked(size)
        ):
            sink(chunk)
        return response.status

    async def close(self) -> None:
        await self._session.close()


@ClientSpec(
    "aiohttp-per-call", "aiohttp", "per call", kind="asyncio", limits_calls=True
)
class AiohttpPerCall(AiohttpSession):
    """An aiohttp.ClientSession and a connection per call."""

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)

    async def open(self) -> None:
        self.tls = tls_context(self._budget)

    async def send(self, request: Request) -> StatusAndBody:
        async with (
            self.new_session() as session,
            _respond(session, request) as response,
        ):
            return response.status, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        async with (
            self.new_session() as session,
            _respond(session, request) as response,
        ):
            return await self._pass_on(response, sink)

    async def close(self) -> None:
        """Do nothing: each call closed its own session."""


def _respond(session: aiohttp.ClientSession, request: Request) -> Any:
    return session.request(
        request.method,
        request.url,
        headers=request.headers,
        data=request.body,
        allow_redirects=False,
    )
