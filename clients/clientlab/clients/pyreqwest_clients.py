"""pyreqwest (Rust's reqwest) with one `SyncClient` or one asyncio `Client`: connections are kept and used again."""

from __future__ import annotations

import functools
import logging
import re
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import ClassVar, TypeVar

from pyreqwest import exceptions
from pyreqwest.client import BaseClientBuilder, ClientBuilder, SyncClientBuilder
from pyreqwest.logging import flush_logs
from pyreqwest.request import RequestBuilder, StreamRequest, SyncRequestBuilder, SyncStreamRequest

from clientlab.clients.client_interface import Budget, EventsAs, EventSink, Opened, Pieces, Sink, StatusAndBody
from clientlab.errors import NO_DESCRIPTOR, ErrorTable
from clientlab.workload.workload import Body, Request

CONNECTING = "client error (Connect)"
"""Texts in reqwest's chain of causes. pyreqwest raises ConnectError for every error before a response."""

PYREQWEST_ERRORS: ErrorTable = (
    (exceptions.ConnectError, NO_DESCRIPTOR, "Too many open files"),
    (exceptions.ConnectTimeoutError, "timeout-connect", CONNECTING),
    (exceptions.PoolTimeoutError, "timeout-pool"),
    (exceptions.RequestTimeoutError, "timeout-read"),
    (exceptions.ConnectError, "tls", "invalid peer certificate"),
    (exceptions.ConnectError, "tls", "received corrupt message"),
    (exceptions.ConnectError, "tls", "received fatal alert"),
    (exceptions.ConnectError, "connect", CONNECTING),
    (exceptions.ReadError, "protocol", "unexpected EOF"),
    (exceptions.NetworkError, "reset"),
    (exceptions.DecodeError, "protocol"),
    # An error in the first part of a streamed body, which is read ahead, has no class of its own.
    (exceptions.RequestError, "protocol", "end of file before message length reached"),
    (exceptions.RequestError, "protocol", "unexpected EOF"),
    (exceptions.RequestError, "reset", "error reading a body from connection"),
)

PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_READ_EVERY_SECONDS = 0.1

B = TypeVar("B", bound=BaseClientBuilder)
R = TypeVar("R", SyncRequestBuilder, RequestBuilder)


class PyreqwestClient:
    """One client, shared by all threads of the process."""

    errors: ClassVar[ErrorTable] = PYREQWEST_ERRORS
    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "chunks"

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: float | None = None) -> None:
        self._budget = budget
        self._keepalive = keepalive
        self._opened = opened

    def open(self) -> None:
        self._client = within(SyncClientBuilder(), self._budget, self._keepalive).build()
        self._log = ConnectionLog(self._opened)

    def send(self, request: Request) -> StatusAndBody:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        try:
            response = building.build().send()
            return response.status, response.bytes().to_bytes()
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    def stream(self, request: Request, sink: Sink) -> int:
        try:
            with self._streaming(request) as response:
                while (chunk := response.body_reader.read(self._budget.chunk_size)) is not None:
                    sink(chunk.to_bytes())
                return response.status
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    def events(self, request: Request, sink: EventSink) -> int:
        try:
            with self._streaming(request, ahead=0) as response:
                status = response.status
                sink.answered(status)
                while (chunk := response.body_reader.read_chunk()) is not None:
                    if status < 400:
                        sink(chunk.to_bytes())
                return status
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    def tell(self) -> None:
        self._log.read()

    def close(self) -> None:
        self._client.close()
        self._log.read()

    def _streaming(self, request: Request, ahead: int | None = None) -> SyncStreamRequest:
        """The request, of whose body `ahead` bytes are read before its response is handed over; None: a chunk."""
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        limit = self._budget.chunk_size if ahead is None else ahead
        return building.streamed_read_buffer_limit(limit).build_streamed()


def within(builder: B, budget: Budget, keepalive: float | None) -> B:
    """The builder with the budget's limits and the common settings. `keepalive`: seconds for idle connections."""
    # The read limit starts with connecting. The connect limit is shorter, so that the two can be told apart.
    builder = builder.connect_timeout(timedelta(seconds=0.95 * budget.timeout))
    builder = builder.read_timeout(timedelta(seconds=budget.timeout))
    builder = builder.no_proxy().http1_only().follow_redirects(enable=False)
    if budget.ca_file is not None:
        for certificate in PEM.findall(Path(budget.ca_file).read_bytes()):
            builder = builder.add_root_certificate_pem(certificate)
    if budget.connections is None:
        return builder
    if budget.connections:
        builder = builder.max_connections(budget.connections)
    return builder.pool_idle_timeout(None if keepalive is None else timedelta(seconds=keepalive))


def with_body(building: R, body: Body) -> R:
    """The request builder with the body."""
    return building.body_bytes(body) if isinstance(body, bytes) else building.body_stream(body)


class ConnectionLog:
    """Calls `opened` for each connection that reqwest logs, when the log is read.

    reqwest also logs a line per request. Reading it costs 2 to 5 µs after each request, and 0.3 µs when many lines are
    read together. The log's buffer holds 10,000 lines.
    """

    def __init__(self, opened: Opened) -> None:
        _hand_over_the_log()
        logger = logging.getLogger("reqwest::connect")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.handlers = [_Telling(opened)]
        # Nobody needs the line of each request. Dropped by a C function with any arguments it costs 0.27 µs, by
        # Logger.log, which checks its level, 0.45 µs.
        logging.getLogger("reqwest::retry").log = "".format  # type: ignore[method-assign, assignment]
        # It writes each failed certificate to stderr; the exception has the same text.
        logging.getLogger("rustls_platform_verifier::verification::others").propagate = False
        self.due = 0.0

    def read(self) -> None:
        """Report all connections so far. The client calls it after a request once `due` has passed."""
        flush_logs()
        self.due = monotonic() + _READ_EVERY_SECONDS


@functools.cache
def _hand_over_the_log() -> None:
    """Route reqwest's log to Python's logging; it has a line for each connection attempt.

    pyreqwest does so once any client was built as verbose; other clients log nothing more for it. Called once per
    process, in the warm-up, since it costs as much as a client. Not at import: a process with a client must not fork.
    """
    SyncClientBuilder().connection_verbose(enable=True).build().close()


class _Telling(logging.Handler):
    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened = opened

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("starting new connection"):
            self._opened()


class PyreqwestAsync:
    """One client for the event loop."""

    errors: ClassVar[ErrorTable] = PYREQWEST_ERRORS
    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "chunks"

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: float | None = None) -> None:
        self._budget = budget
        self._keepalive = keepalive
        self._opened = opened

    async def open(self) -> None:
        self._client = within(ClientBuilder(), self._budget, self._keepalive).build()
        self._log = ConnectionLog(self._opened)

    async def send(self, request: Request) -> StatusAndBody:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        try:
            response = await building.build().send()
            return response.status, (await response.bytes()).to_bytes()
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        try:
            async with self._streaming(request) as response:
                while (chunk := await response.body_reader.read(self._budget.chunk_size)) is not None:
                    sink(chunk.to_bytes())
                return response.status
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    async def events(self, request: Request, sink: EventSink) -> int:
        try:
            async with self._streaming(request, ahead=0) as response:
                status = response.status
                sink.answered(status)
                while (chunk := await response.body_reader.read_chunk()) is not None:
                    if status < 400:
                        sink(chunk.to_bytes())
                return status
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    def tell(self) -> None:
        self._log.read()

    async def close(self) -> None:
        await self._client.close()
        self._log.read()

    def _streaming(self, request: Request, ahead: int | None = None) -> StreamRequest:
        """The request, of whose body `ahead` bytes are read before its response is handed over; None: a chunk."""
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        limit = self._budget.chunk_size if ahead is None else ahead
        return building.streamed_read_buffer_limit(limit).build_streamed()
