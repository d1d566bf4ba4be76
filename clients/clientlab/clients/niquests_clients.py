"""niquests with one `Session` or one `AsyncSession`: connections are kept and used
again.
"""

from __future__ import annotations

from asyncio import constants
from http.cookiejar import DefaultCookiePolicy
from typing import Any, ClassVar

import niquests
from niquests.packages import urllib3

from clientlab.clients.client_interface import (
    ClientBase,
    ClientSpec,
    Quirks,
    Sink,
    StatusAndBody,
)
from clientlab.clients.retrying import make_urllib3_retry
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

_urllib3 = (
    urllib3.exceptions
)  # the exceptions of urllib3-future, under either of its package names
_AS_IT_ARRIVES = -1  # a chunk size of niquests


class _Niquests(ClientBase):
    errors: ClassVar[ErrorTable] = (
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

    def _new_session(self, session_class: Any) -> Any:
        """Return a session: HTTP/1.1, the budget's pool, and no revocation check, which
        no other client makes.
        """
        pool = self._budget.connections
        limits: dict[str, Any] = {}
        if pool is not None:
            limits = {"pool_connections": 1, "pool_maxsize": pool}
        if self._budget.retry is not None:
            limits["retries"] = make_urllib3_retry(
                niquests.RetryConfiguration, self._budget.retry
            )
        session = session_class(
            disable_http2=True,
            disable_http3=True,
            revocation_configuration=None,
            **limits,
        )
        session.cookies.set_policy(
            DefaultCookiePolicy(allowed_domains=[])
        )  # accept no cookie
        # `Connection: keep-alive`, and what each request sets itself.
        session.headers.clear()
        return session

    def _arguments(self, request: Request) -> dict[str, Any]:
        return {
            "headers": request.headers,
            "data": request.body,
            "timeout": self._budget.timeout,
            "verify": self._budget.ca_file or True,
            "allow_redirects": False,
        }


@ClientSpec(
    "niquests",
    "niquests",
    "pool",
    pairs=("threads",),
    extra="niquests",
    own_retries="urllib3",
    quirks=Quirks(
        fault_kinds=(("reset in the body", "protocol"),)
    ),  # urllib3-future: the end of the stream
)
class NiquestsSession(_Niquests):
    """One niquests.Session, HTTP/1.1."""

    def open(self) -> None:
        self._session: niquests.Session = self._new_session(niquests.Session)

    def send(self, request: Request) -> StatusAndBody:
        response = self._session.request(
            request.method, request.url, **self._arguments(request)
        )
        return response.status_code or 0, response.content or b""

    def stream(self, request: Request, sink: Sink) -> int:
        with self._session.request(
            request.method, request.url, stream=True, **self._arguments(request)
        ) as response:
            for chunk in response.iter_content(
                self._budget.chunk_size or _AS_IT_ARRIVES
            ):
                sink(chunk)
            return response.status_code or 0

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._session.request(
            request.method, request.url, **self._arguments(request)
        )
        return (
            response.status_code or 0,
            response.content or b"",
            response.elapsed.total_seconds(),
        )

    def close(self) -> None:
        self._session.close()


@ClientSpec(
    "niquests-async",
    "niquests",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    extra="niquests",
    own_retries="urllib3",
    quirks=Quirks(fault_kinds=(("reset in the body", "protocol"),)),
)
class NiquestsAsync(_Niquests):
    """One niquests.AsyncSession, HTTP/1.1."""

    async def open(self) -> None:
        # niquests does not limit the TLS handshake; asyncio's limit of 60 s would hold.
        constants.SSL_HANDSHAKE_TIMEOUT = self._budget.timeout
        self._session: niquests.AsyncSession = self._new_session(niquests.AsyncSession)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._session.request(
            request.method, request.url, **self._arguments(request)
        )
        return response.status_code or 0, response.content or b""

    async def stream(self, request: Request, sink: Sink) -> int:
        arguments = self._arguments(request)
        async with await self._session.request(
            request.method, request.url, stream=True, **arguments
        ) as response:
            async for chunk in await response.iter_content(
                self._budget.chunk_size or _AS_IT_ARRIVES
            ):
                sink(chunk)
            return response.status_code or 0

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._session.request(
            request.method, request.url, **self._arguments(request)
        )
        return (
            response.status_code or 0,
            response.content or b"",
            response.elapsed.total_seconds(),
        )

    async def close(self) -> None:
        await self._session.close()
