"""The standard library's `http.client`: one kept connection per thread."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import ClassVar
from urllib.parse import SplitResult, urlsplit

from clientlab.clients.client_interface import (
    Budget,
    Client,
    ClientSpec,
    Opened,
    Sink,
    StatusAndBody,
    make_decoder,
    tls_context,
)
from clientlab.errors import ClientError, ErrorTable
from clientlab.workload.parts import DEFAULT_CHUNK_SIZE
from clientlab.workload.workload import Request


class _ThreadState(threading.local):
    """The connection of a thread, and the last request that it sent."""

    connection: http.client.HTTPConnection | None = None
    request: Request | None = None
    target = ""


@ClientSpec("http.client", "python", "per thread", pairs=("threads",))
class HttpClient(Client):
    """One connection of the standard library per thread."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (ConnectionError, "reset"),
        (TimeoutError, "timeout-read"),
        (http.client.HTTPException, "protocol"),
        (zlib.error, "protocol"),
    )

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)
        self._mine = _ThreadState()
        self._all: list[http.client.HTTPConnection] = []

    def open(self) -> None:
        self._tls = tls_context(self._budget)

    def send(self, request: Request) -> StatusAndBody:
        connection, target = self._prepare(request)
        try:
            response = _send_on(connection, target, request)
            return response.status, self._decoder_of(response)(response.read())
        except BaseException:
            connection.close()  # in an unknown state: the next request opens a new one
            raise

    def stream(self, request: Request, sink: Sink) -> int:
        connection, target = self._prepare(request)
        try:
            response = _send_on(connection, target, request)
            size = self._budget.chunk_size
            decode = self._decoder_of(response)
            read: Callable[[int], bytes] = (
                response.read1 if size is None else response.read
            )
            while chunk := read(size or DEFAULT_CHUNK_SIZE):
                sink(decode(chunk))
            if (
                response.length
            ):  # http.client reports it only when the whole body is read at once
                raise http.client.IncompleteRead(b"", response.length)
            if size is None:
                response.close()  # in older versions of Python, `read1` leaves it open
        except BaseException:
            connection.close()
            raise
        return response.status

    def close(self) -> None:
        for connection in self._all:
            connection.close()

    def _decoder_of(
        self, response: http.client.HTTPResponse
    ) -> Callable[[bytes], bytes]:
        return make_decoder(
            response.getheader("Content-Encoding") if self._budget.decode else None
        )

    def _prepare(self, request: Request) -> tuple[http.client.HTTPConnection, str]:
        """Return this thread's connection and the request's target.

        A repeated request is parsed only once.
        """
        mine = self._mine
        connection = mine.connection
        if connection is None or mine.request is not request:
            parts = urlsplit(request.url)
            mine.target = (
                f"{parts.path or '/'}?{parts.query}"
                if parts.query
                else parts.path or "/"
            )
            connection = mine.connection = connection or self._new_connection(parts)
            mine.request = request
        return connection, mine.target

    def _new_connection(self, parts: SplitResult) -> http.client.HTTPConnection:
        host, port, timeout = parts.hostname or "", parts.port, self._budget.timeout
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=self._tls
            )
        self._all.append(connection)
        return connection


def _send_on(
    connection: http.client.HTTPConnection, target: str, request: Request
) -> http.client.HTTPResponse:
    if connection.sock is None:
        with connecting():
            connection.connect()
    connection.request(request.method, target, request.body, request.headers)
    return connection.getresponse()


@contextlib.contextmanager
def connecting() -> Iterator[None]:
    """Give errors while connecting their own kind: the standard library raises the same
    exceptions for sending.
    """
    try:
        yield
    except ssl.SSLError:
        raise
    except TimeoutError as error:
        raise ClientError("timeout-connect", str(error)) from error
    except OSError as error:
        raise ClientError("connect", str(error)) from error
