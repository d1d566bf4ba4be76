"""aiosonic with one `HTTPClient`: connections are kept and used again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
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
        # Its limit of a read is for the first line only: `_Limit` is for each wait.
        timeouts = Timeouts(sock_connect=seconds, sock_read=seconds, request_timeout=None)
        connector = TCPConnector({":default": pool}, timeouts, connection_cls=_Connection)
        self._client = aiosonic.HTTPClient(connector)
        self._tls = tls_context(self._budget)

    async def send(self, request: Request) -> Reply:
        response = await self._client.request(
            request.url,
            request.method.lower(),  # sent in capitals; but of a "GET" aiosonic leaves out the body
            headers=request.headers,
            data=request.body,
            ssl=self._tls if request.url.startswith("https:") else None,  # with one it speaks TLS to plain servers
        )
        return response.status_code, await response.content()

    async def stream(self, request: Request, sink: Sink) -> int:
        """Chunks are the server's own, or of 64 KiB: aiosonic takes no size."""
        method = request.method.lower()
        tls = self._tls if request.url.startswith("https:") else None
        words: dict[str, Any] = {"headers": request.headers, "data": request.body, "ssl": tls}
        async with self._client.stream(method, request.url, **words) as response:
            chunks = response.iter_bytes()
            while (chunk := await _next(chunks)) is not None:
                sink(chunk)
            return int(response.status_code)

    async def close(self) -> None:
        await self._client.aclose()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    """The next chunk, or None; aiosonic tells an answer that was cut short as if none had come."""
    try:
        return await anext(chunks, None)
    except ConnectionDisconnected as error:
        raise Fault("protocol", "the connection was closed in the middle of the body") from error


class _Connection(Connection):  # type: ignore[misc]  # aiosonic is not typed
    """aiosonic's own, which else would be used again after a fault, with the rest of an answer still to come."""

    _limit: _Limit | None = None

    async def connect(self, *words: Any) -> None:
        try:
            await super().connect(*words)
        except ConnectionError as error:  # refused, or dropped amid the handshake: no connection
            raise Fault("connect", str(error) or type(error).__name__) from error
        self._limit = _Limit(self.reader, self.pool.timeouts.sock_read)

    def close(self) -> None:
        super().close()
        if self._limit is not None:
            self._limit.end()

    @property
    def reused(self) -> bool:
        """Never, as far as aiosonic knows: it would send a request again whose connection was dropped."""
        return False

    @reused.setter
    def reused(self, _value: bool) -> None:
        """Set at the begin of each request. At the end of its answer aiosonic keeps the connection, and not before."""
        self.keep = False


class _Limit:
    """The time limit of each wait for bytes of a connection; aiosonic has one for the first line only.

    It is put where asyncio's reader waits, for which there is no public word: what is here already is not waited for.
    A timer for each wait cost 5 % of a request, so there is one for all, begun anew when it goes off.
    """

    def __init__(self, reader: asyncio.StreamReader, seconds: float) -> None:
        self._reader = reader
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._wait_for_data: Callable[[str], Awaitable[None]] = reader._wait_for_data  # type: ignore[attr-defined]  # noqa: SLF001
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._look)
        reader._wait_for_data = self._wait  # type: ignore[attr-defined]  # noqa: SLF001

    def end(self) -> None:
        """Nothing is waited for any more."""
        self._timer.cancel()

    async def _wait(self, reading: str) -> None:
        self._since = self._loop.time()
        try:
            await self._wait_for_data(reading)
        finally:
            self._since = None

    def _look(self) -> None:
        now = self._loop.time()
        due = (now if self._since is None else self._since) + self._seconds
        if now >= due:
            self._reader.set_exception(TimeoutError(f"no bytes for {self._seconds:g} s"))
        else:
            self._timer = self._loop.call_at(due, self._look)
