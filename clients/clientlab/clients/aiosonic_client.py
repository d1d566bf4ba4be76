"""aiosonic with one `HTTPClient`: connections are kept and used again."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, TypeVar

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

from clientlab.clients.client_interface import Budget, EventsAs, EventSink, Opened, Pieces, Sink, StatusAndBody
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request

_Part = TypeVar("_Part", bytes, str)


class AiosonicClient:
    """One client for the event loop."""

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
        (ValueError, "protocol", "for integer string conversion"),  # a size of thousands of digits
        (ValueError, "protocol", "readexactly size can not be less than zero"),
        (ValueError, "protocol", "eparator is"),  # a header longer than asyncio's buffer
        (asyncio.LimitOverrunError, "protocol"),  # a status line longer than that
        (zlib.error, "protocol"),
        (OSError, "connect"),  # an error on an open connection has one of the classes above
    )

    # aiosonic can only send chunked uploads, and does not wait until the peer has read them.
    streams_uploads: ClassVar[bool] = False
    events_as: ClassVar[EventsAs] = "str"
    pieces: ClassVar[Pieces] = "lines"

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget

    async def open(self) -> None:
        size, seconds = self._budget.connections, self._budget.timeout
        pool = PoolConfig() if size is None else PoolConfig(size, max_conn_requests=None, max_conn_idle_ms=None)
        # aiosonic limits only the read of the status line. `_Limit` limits each wait for bytes.
        timeouts = Timeouts(sock_connect=seconds, sock_read=seconds, request_timeout=None)
        connector = TCPConnector({":default": pool}, timeouts, connection_cls=_Connection)
        self._client = aiosonic.HTTPClient(connector)
        self._tls = tls_context(self._budget)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._client.request(
            request.url,
            request.method.lower(),  # aiosonic sends it in capitals, but drops the body of an upper-case "GET"
            headers=request.headers,
            data=request.body,
            ssl=self._tls
            if request.url.startswith("https:")
            else None,  # with a context, aiosonic starts TLS on plain HTTP too
        )
        body = await response.content()
        if not body:
            _check_length(response, request.method)
        return response.status_code, body

    async def stream(self, request: Request, sink: Sink) -> int:
        """Chunks are those of the server, or 64 KiB: aiosonic has no option for their size."""
        async with self._streaming(request) as response:
            _check_length(response, request.method)
            chunks = response.iter_bytes()
            while (chunk := await _next(chunks)) is not None:
                sink(chunk)
            return int(response.status_code)

    async def events(self, request: Request, sink: EventSink) -> int:
        async with self._streaming(request) as response:
            _check_length(response, request.method)
            status = int(response.status_code)
            sink.answered(status)
            if status >= 400:
                await response.content()
                return status
            async with contextlib.aclosing(response.iter_lines()) as lines:
                while (line := await _next(lines)) is not None:
                    sink(line)
            return status

    def _streaming(self, request: Request) -> contextlib.AbstractAsyncContextManager[aiosonic.HttpResponse]:
        """The response, whose body is not read yet."""
        tls = self._tls if request.url.startswith("https:") else None
        words: dict[str, Any] = {"headers": request.headers, "data": request.body, "ssl": tls}
        streaming: contextlib.AbstractAsyncContextManager[aiosonic.HttpResponse]
        streaming = self._client.stream(request.method.lower(), request.url, **words)
        return streaming

    async def close(self) -> None:
        await self._client.aclose()


def _check_length(response: aiosonic.HttpResponse, method: str) -> None:
    """Raise Fault for an interim response, and for a body that ends with the connection: aiosonic reads neither."""
    status = response.status_code
    unknown = not response.chunked and "content-length" not in response.headers
    if status < 200 or (unknown and method != "HEAD" and status not in {204, 304}):
        connection = response._connection  # noqa: SLF001 - aiosonic would use it again, with the body still to come
        connection.keep = False
        connection.close()
        raise Fault("protocol", f"aiosonic reads no body without a length, and no response behind status {status}")


async def _next(chunks: AsyncIterator[_Part]) -> _Part | None:
    """The next chunk or line, or None at the end. aiosonic reports a truncated body as a lost connection."""
    try:
        return await anext(chunks, None)
    except ConnectionDisconnected as error:
        raise Fault("protocol", "the connection was closed in the middle of the body") from error


class _Connection(Connection):  # type: ignore[misc]  # aiosonic is not typed
    """aiosonic's connection, but never used again after a fault: the rest of a response may still arrive on it."""

    _limit: _Limit | None = None

    async def connect(self, *words: Any) -> None:
        try:
            await super().connect(*words)
        except ConnectionError as error:  # refused, or dropped during the handshake: no connection was opened
            raise Fault("connect", str(error) or type(error).__name__) from error
        self._limit = _Limit(self.reader, self.pool.timeouts.sock_read)

    def close(self) -> None:
        super().close()
        if self._limit is not None:
            self._limit.end()

    @property
    def reused(self) -> bool:
        """Always False: otherwise aiosonic sends a request again when its connection was dropped."""
        return False

    @reused.setter
    def reused(self, _value: bool) -> None:
        """Called by aiosonic when a request begins. The connection is kept only from the end of the response on."""
        self.keep = False


class _Limit:
    """The time limit of each wait for bytes of a connection. aiosonic limits only the wait for the status line.

    It wraps the private method in which asyncio's reader waits; bytes that have already arrived need no wait.
    A timer per wait cost 5 % of a request, so one timer serves all waits and is set again when it expires.
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
        """Cancel the timer."""
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
