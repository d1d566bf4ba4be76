"""pyqwest, on Rust's reqwest, with one `SyncClient` or one asyncio `Client`:
connections are kept and used again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyqwest

from clientlab.clients.client_interface import (
    ClientBase,
    ClientSpec,
    Quirks,
    Sink,
    StatusAndBody,
)
from clientlab.errors import NO_DESCRIPTOR, ErrorTable
from clientlab.workload.workload import Request

_ANY_NUMBER = 1 << 20


class _Pyqwest(ClientBase):
    errors: ClassVar[ErrorTable] = (
        (ConnectionError, NO_DESCRIPTOR, "Too many open files"),
        (pyqwest.ConnectTimeout, "timeout-connect"),
        (TimeoutError, "timeout-read"),
        (ConnectionError, "tls", "invalid peer certificate"),
        (ConnectionError, "tls", "received corrupt message"),
        (ConnectionError, "tls", "received fatal alert"),
        (ConnectionError, "connect"),
        (pyqwest.ReadError, "protocol", "gzip"),
        (pyqwest.ReadError, "protocol", "corrupt deflate"),
        (pyqwest.ReadError, "protocol", "decompression error"),
        (pyqwest.ReadError, "protocol", "CRC computed"),
        (pyqwest.ReadError, "reset"),
        (pyqwest.WriteError, "reset"),
        (
            pyqwest.RemoteProtocolError,
            "reset",
            "connection closed before message completed",
        ),
        (
            pyqwest.RemoteProtocolError,
            "reset",
            "(SendRequest): connection error: peer closed connection",
        ),  # over TLS
        (pyqwest.RemoteProtocolError, "protocol"),
    )

    def _options(self) -> dict[str, Any]:
        ca_file, pool = self._budget.ca_file, self._budget.connections
        options: dict[str, Any] = {
            "http_version": pyqwest.HTTPVersion.HTTP1,
            # The read limit starts with connecting. The connect limit is shorter, so
            # that the two can be told apart.
            "connect_timeout": 0.95 * self._budget.timeout,
            "read_timeout": self._budget.timeout,
            "timeout": self._budget.call_timeout,
            "follow_redirects": False,
            "enable_gzip": self._budget.decode,
            "enable_brotli": self._budget.decode,
            "enable_zstd": self._budget.decode,
            "enable_otel": False,
        }
        options |= (
            {"tls_ca_cert": Path(ca_file).read_bytes()}
            if ca_file
            else {"tls_include_system_certs": True}
        )
        if pool is not None:
            options |= {
                "pool_idle_timeout": None,
                "pool_max_idle_per_host": pool or _ANY_NUMBER,
            }
            options["max_connections_per_address"] = pool or None
        return options


@ClientSpec(
    "pyqwest",
    "pyqwest",
    "pool",
    pairs=("threads",),
    extra="more",
    unlimited=True,
    native=True,
    own_threads=True,
    limits_calls=True,
    quirks=Quirks(opens_ahead=True, resumes_tls=True, uncounted=True),
)
class PyqwestClient(_Pyqwest):
    """One pyqwest SyncClient, on Rust's reqwest."""

    def open(self) -> None:
        self._transport = pyqwest.SyncHTTPTransport(**self._options())
        self._client = pyqwest.SyncClient(self._transport)

    def send(self, request: Request) -> StatusAndBody:
        response = self._client.execute(
            request.method, request.url, request.headers, request.body
        )
        return response.status, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self._client.stream(
            request.method, request.url, request.headers, request.body
        ) as response:
            for chunk in response.content:
                _hand_over(chunk, self._budget.chunk_size, sink)
            return response.status

    def close(self) -> None:
        self._transport.close()


@ClientSpec(
    "pyqwest-async",
    "pyqwest",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    extra="more",
    unlimited=True,
    native=True,
    own_threads=True,
    limits_calls=True,
    quirks=Quirks(opens_ahead=True, resumes_tls=True, uncounted=True),
)
class PyqwestAsync(_Pyqwest):
    """One pyqwest Client for asyncio, on Rust's reqwest."""

    async def open(self) -> None:
        self._transport = pyqwest.HTTPTransport(**self._options())
        self._client = pyqwest.Client(self._transport)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._client.execute(
            request.method, request.url, request.headers, request.body
        )
        return response.status, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        async with self._client.stream(
            request.method, request.url, request.headers, request.body
        ) as response:
            async for chunk in response.content:
                _hand_over(chunk, self._budget.chunk_size, sink)
            return response.status

    async def close(self) -> None:
        await self._transport.aclose()


def _hand_over(
    chunk: bytes | bytearray | memoryview, size: int | None, sink: Sink
) -> None:
    """Pass a chunk to the sink without a copy, in parts of at most `size` bytes, or
    whole if it is None.
    """
    view = memoryview(chunk)
    step = size or max(1, len(view))
    for at in range(0, len(view), step):
        sink(view[at : at + step])
