"""pyreqwest with one blocking `SyncClient`, Rust's reqwest: connections are kept and used again."""

from __future__ import annotations

import functools
import logging
import re
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import ClassVar, TypeVar

from pyreqwest import exceptions
from pyreqwest.client import BaseClientBuilder, SyncClientBuilder
from pyreqwest.logging import flush_logs
from pyreqwest.request import RequestBuilder, SyncRequestBuilder, SyncStreamRequest

from clientlab.clients.shape import Budget, Opened, Reply, Sink
from clientlab.errors import NO_DESCRIPTOR, ErrorTable
from clientlab.workload import Body, Request

CONNECTING = "client error (Connect)"
"""What reqwest writes among the causes; pyreqwest itself calls all a ConnectError that has no answer yet."""

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
    # What a body's first part, read ahead where it is streamed, fails of has no class of its own.
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

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: float | None = None) -> None:
        self._budget = budget
        self._keepalive = keepalive
        self._opened = opened

    def open(self) -> None:
        self._client = within(SyncClientBuilder(), self._budget, self._keepalive).build()
        self._log = ConnectionLog(self._opened)

    def send(self, request: Request) -> Reply:
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

    def tell(self) -> None:
        self._log.read()

    def close(self) -> None:
        self._client.close()
        self._log.read()

    def _streaming(self, request: Request) -> SyncStreamRequest:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        return building.streamed_read_buffer_limit(self._budget.chunk_size).build_streamed()


def within(builder: B, budget: Budget, keepalive: float | None) -> B:
    """The builder with the budget's limits, and what is pinned equal for all; idle connections kept for `keepalive`."""
    # The limit of a read begins with connecting: that of connecting is the shorter one, to be told from it.
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
    """The request being built, with its body."""
    return building.body_bytes(body) if isinstance(body, bytes) else building.body_stream(body)


class ConnectionLog:
    """Reports each connection to `opened`, from now on, once reqwest's log is read.

    That holds a line for each request as well, which costs 2 to 5 us where it is read after each, and 0.3 us where many
    are read together. It has room for 10,000 lines.
    """

    def __init__(self, opened: Opened) -> None:
        _hand_over_the_log()
        logger = logging.getLogger("reqwest::connect")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.handlers = [_Telling(opened)]
        # The line of each request, which nobody wants: with a function in C that takes any arguments it costs 0.27 us,
        # with Logger.log, which finds its level too low, 0.45.
        logging.getLogger("reqwest::retry").log = "".format  # type: ignore[method-assign, assignment]
        # It writes of each failed certificate to stderr, which the exception tells as well.
        logging.getLogger("rustls_platform_verifier::verification::others").propagate = False
        self.due = 0.0

    def read(self) -> None:
        """Report all connections so far; to be done after a request when `due` has passed."""
        flush_logs()
        self.due = monotonic() + _READ_EVERY_SECONDS


@functools.cache
def _hand_over_the_log() -> None:
    """Make reqwest's log Python's, in which it writes a line for each connection that it begins.

    pyreqwest does so once any client was built as verbose; all others write nothing more for that. Once a process,
    and so in the warm-up: it costs as much as a client. Not at import: who has built a client can't fork.
    """
    SyncClientBuilder().connection_verbose(enable=True).build().close()


class _Telling(logging.Handler):
    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened = opened

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("starting new connection"):
            self._opened()
