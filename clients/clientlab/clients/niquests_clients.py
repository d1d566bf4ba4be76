"""niquests with one `Session` or one `AsyncSession`: connections are kept and used again."""

from __future__ import annotations

from asyncio import constants
from http.cookiejar import DefaultCookiePolicy
from typing import Any, ClassVar

import niquests
from niquests.packages import urllib3

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

_urllib3 = urllib3.exceptions  # the exceptions of urllib3-future, under either of its package names

NIQUESTS_ERRORS: ErrorTable = (
    (niquests.exceptions.SSLError, "tls"),
    (niquests.exceptions.ConnectTimeout, "timeout-connect"),
    (niquests.exceptions.ReadTimeout, "timeout-read"),
    (_urllib3.ReadTimeoutError, "timeout-read"),
    (_urllib3.EmptyPoolError, "timeout-pool"),
    (_urllib3.NewConnectionError, "connect"),
    (_urllib3.IncompleteRead, "protocol"),
    (_urllib3.InvalidHeader, "protocol"),  # of a chunk
    (ConnectionError, "reset"),
    (niquests.exceptions.ChunkedEncodingError, "protocol"),
    (niquests.exceptions.ContentDecodingError, "protocol"),
    (_urllib3.ProtocolError, "protocol"),
    (niquests.exceptions.ConnectionError, "connect"),
)


class _Niquests:
    """What the blocking and the asyncio client share: their limits, and the arguments of each request."""

    errors: ClassVar[ErrorTable] = NIQUESTS_ERRORS

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget

    def _made(self, session_class: Any) -> Any:
        """Return a session: HTTP/1.1, the budget's pool, and no revocation check, which no other client makes."""
        pool = self._budget.connections
        limits = {} if pool is None else {"pool_connections": 1, "pool_maxsize": pool}
        session = session_class(disable_http2=True, disable_http3=True, revocation_configuration=None, **limits)
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # accept no cookie
        session.headers.clear()  # `Connection: keep-alive`, and what each request sets itself
        return session

    def _words(self, request: Request) -> dict[str, Any]:
        return {
            "headers": request.headers,
            "data": request.body,
            "timeout": self._budget.timeout,
            "verify": self._budget.ca_file or True,
            "allow_redirects": False,
        }


class NiquestsSession(_Niquests):
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    def open(self) -> None:
        self._session: niquests.Session = self._made(niquests.Session)

    def send(self, request: Request) -> StatusAndBody:
        response = self._session.request(request.method, request.url, **self._words(request))
        return response.status_code or 0, response.content or b""

    def stream(self, request: Request, sink: Sink) -> int:
        with self._session.request(request.method, request.url, stream=True, **self._words(request)) as response:
            for chunk in response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code or 0

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._session.request(request.method, request.url, **self._words(request))
        return response.status_code or 0, response.content or b"", response.elapsed.total_seconds()

    def close(self) -> None:
        self._session.close()


class NiquestsAsync(_Niquests):
    """One session for the event loop."""

    async def open(self) -> None:
        # niquests does not limit the TLS handshake; asyncio's limit of 60 s would hold.
        constants.SSL_HANDSHAKE_TIMEOUT = self._budget.timeout
        self._session: niquests.AsyncSession = self._made(niquests.AsyncSession)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._session.request(request.method, request.url, **self._words(request))
        return response.status_code or 0, response.content or b""

    async def stream(self, request: Request, sink: Sink) -> int:
        words = self._words(request)
        async with await self._session.request(request.method, request.url, stream=True, **words) as response:
            async for chunk in await response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code or 0

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._session.request(request.method, request.url, **self._words(request))
        return response.status_code or 0, response.content or b"", response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._session.close()
