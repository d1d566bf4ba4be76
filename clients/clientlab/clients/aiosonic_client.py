"""aiosonic with one `HTTPClient`: connections are kept and used again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, ClassVar

import aiosonic
from aiosonic.connection import Connection
from aiosonic.connectors import TCPConnector
from aiosonic.exceptions import (
    ConnectionDisconnected,
    ConnectionPoolAcquireTimeout,
    ConnectTimeout,
    DecompressionError,
    HttpParsingError,
    ReadTimeout,
    RequestTimeout,
)
from aiosonic.pools import PoolConfig
from aiosonic.timeout import Timeouts

from clientlab.clients.shape import Budget, Opened, Reply, Sink
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable, Fault
from clientlab.workload import Request


class AiosonicClient:
    """One client for the loop."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (ConnectTimeout, "timeout-connect"),
        (ConnectionPoolAcquireTimeout, "timeout-pool"),
        (ReadTimeout, "timeout-read"),
        (RequestTimeout, "timeout-read"),
        (TimeoutError, "timeout-read"),
        (ConnectionDisconnected, "reset"),
        (ConnectionResetError, "reset"),
        (HttpParsingError, "protocol"),
        (DecompressionError, "protocol"),
        (asyncio.IncompleteReadError, "protocol"),
        (UnicodeDecodeError, "protocol"),
        (ValueError, "protocol", "invalid literal for int()"),  # a size
        (OSError, "connect"),  # what happens to an open connection has one of the classes above
    )

    # It knows no other framing of them than chunks, and does not wait for the peer to take them.
    streams_uploads: ClassVar[bool] = False

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - seen by Python
        self._budget = budget

    async def open(self) -> None:
        size, seconds = self._budget.connections, self._budget.timeout
        pool = PoolConfig() if size is None else PoolConfig(size, max_conn_requests=None, max_conn_idle_ms=None)
        # Its limit of a read is for the first line only: `_Connection` has one for each wait that follows.
        timeouts = Timeouts(sock_connect=seconds, sock_read=seconds, request_timeout=None)
        connector = TCPConnector({":default": pool}, timeouts, connection_cls=_Connection)
        self._client = aiosonic.HTTPClient(connector)
        self._tls = tls_context(self._budget)

    async def send(self, request: Request) -> Reply:
        method = request.method.lower()  # sent in capitals; but of a "GET" aiosonic leaves out the body
        response = await self._client.request(
            request.url, method, headers=request.headers, data=request.body, ssl=self._context(request)
        )
        return response.status_code, await response.content()

    async def stream(self, request: Request, sink: Sink) -> int:
        """Chunks are the server's own, or of 64 KiB: aiosonic takes no size."""
        method = request.method.lower()
        words: dict[str, Any] = {"headers": request.headers, "data": request.body, "ssl": self._context(request)}
        async with self._client.stream(method, request.url, **words) as response:
            chunks = response.iter_bytes()
            while (chunk := await _next(chunks)) is not None:
                sink(chunk)
            return int(response.status_code)

    async def close(self) -> None:
        await self._client.aclose()

    def _context(self, request: Request) -> ssl.SSLContext | None:
        """With one aiosonic speaks TLS to plain servers as well."""
        return self._tls if request.url.startswith("https:") else None


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    """The next chunk, or None; aiosonic tells an answer that was cut short as if none had come."""
    try:
        return await anext(chunks, None)
    except ConnectionDisconnected as error:
        raise Fault("protocol", "the connection was closed in the middle of the body") from error


class _Connection(Connection):  # type: ignore[misc]  # aiosonic is not typed
    """aiosonic's own, which else would be used again after a fault, with the rest of an answer still to come.

    Each wait for bytes has the time limit. What is here already is not waited for, and costs no timer: to tell takes
    a look into asyncio's reader, which has no public word for it.
    """

    async def readline(self) -> Any:
        if self.reader is None or b"\n" in self.reader._buffer:  # noqa: SLF001
            return await super().readline()
        async with asyncio.timeout(self.pool.timeouts.sock_read):
            return await super().readline()

    async def readexactly(self, size: int) -> Any:
        if self.reader is None or len(self.reader._buffer) >= size:  # noqa: SLF001
            return await super().readexactly(size)
        parts: list[bytes] = []
        missing = size
        while missing:
            part = await self.read(missing)
            if not part:
                raise asyncio.IncompleteReadError(b"".join(parts), size)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    async def read(self, size: int = -1) -> Any:
        async with asyncio.timeout(self.pool.timeouts.sock_read):
            return await super().read(size)

    async def connect(self, *words: Any) -> None:
        try:
            await super().connect(*words)
        except ConnectionError as error:  # refused, or dropped amid the handshake: no connection
            raise Fault("connect", str(error) or type(error).__name__) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.keep = False
        await super().__aexit__(kind, error, trace)

    @property
    def reused(self) -> bool:
        """Never, as far as aiosonic knows: it would send a request again whose connection was dropped."""
        return False

    @reused.setter
    def reused(self, value: bool) -> None: ...
