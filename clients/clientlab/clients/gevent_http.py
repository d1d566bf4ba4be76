"""geventhttpclient: greenlets, a pool of sockets and a parser in C, with one
`HTTPClient`.
"""

from __future__ import annotations

import ssl
import traceback
import zlib
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import urlsplit

import geventhttpclient
from geventhttpclient import client as library
from geventhttpclient.response import HTTPConnectionClosed, HTTPSocketPoolResponse

from clientlab.clients.client_interface import (
    Budget,
    Client,
    ClientSpec,
    Opened,
    Sink,
    StatusAndBody,
    make_decoder,
)
from clientlab.errors import ClientError, ErrorTable
from clientlab.workload.workload import Request

# geventhttpclient sends a request again when its connection is dropped. No other client
# does, and the server would count more requests than were sent. geventhttpclient has no
# option for it.
library.IDEMPOTENT_METHODS = frozenset()


@ClientSpec(
    "geventhttpclient",
    "geventhttpclient",
    "pool",
    pairs=("gevent",),
    extra="more",
    only=(
        "serial",
        "gevent",
    ),  # its pool belongs to one thread, and a process that gevent serves must not fork
)
class GeventHttp(Client):
    """One geventhttpclient.HTTPClient: sockets of gevent, a parser in C."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (TimeoutError, "timeout-read"),
        (HTTPConnectionClosed, "reset"),
        (ConnectionError, "reset"),
        (geventhttpclient.HTTPParseError, "protocol"),
        (zlib.error, "protocol"),
    )
    streams_uploads: ClassVar[bool] = (
        False  # it sends an iterable body in chunks, and drops its length
    )

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)
        self._client: geventhttpclient.HTTPClient | None = (
            None  # of one host, which the first request names
        )
        self._last: tuple[Request | None, str] = None, ""

    def send(self, request: Request) -> StatusAndBody:
        response = self._respond(request)
        return response.status_code, self._decoder_of(response)(response.read())

    def stream(self, request: Request, sink: Sink) -> int:
        size = self._budget.chunk_size
        with self._respond(request) as response:
            decode = self._decoder_of(response)
            while (
                chunk := _read_arrived(response)
                if size is None
                else response.read(size)
            ):
                sink(decode(chunk))
            return response.status_code

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _decoder_of(self, response: HTTPSocketPoolResponse) -> Callable[[bytes], bytes]:
        return make_decoder(
            str(response.get("Content-Encoding")) if self._budget.decode else None
        )

    def _respond(self, request: Request) -> HTTPSocketPoolResponse:
        """Return the response before its body is read.

        A repeated request is parsed only once.
        """
        last, target = self._last
        if self._client is None:
            self._client = self._new_client(request.url)
        if last is not request:
            parts = urlsplit(request.url)
            target = (
                f"{parts.path or '/'}?{parts.query}"
                if parts.query
                else parts.path or "/"
            )
            self._last = request, target
        try:
            return self._client.request(
                request.method, target, request.body, request.headers
            )
        except OSError as error:
            # Connecting raises the same exceptions as sending and reading.
            frames = (
                frame.f_code.co_name
                for frame, _ in traceback.walk_tb(error.__traceback__)
            )
            if isinstance(error, ssl.SSLError) or "_create_socket" not in frames:
                raise
            kind = "timeout-connect" if isinstance(error, TimeoutError) else "connect"
            raise ClientError(kind, str(error)) from error

    def _new_client(self, url: str) -> geventhttpclient.HTTPClient:
        budget = self._budget
        options: dict[str, Any] = {
            "connection_timeout": budget.timeout,
            "network_timeout": budget.timeout,
        }
        if budget.connections is not None:
            options["concurrency"] = budget.connections
        if budget.ca_file is not None:
            options["ssl_options"] = {"ca_certs": budget.ca_file}
        return geventhttpclient.HTTPClient.from_url(url, **options)


def _read_arrived(response: HTTPSocketPoolResponse) -> bytes:
    """Return at least one byte of the body, or ``b""`` at its end.

    The library's `read` waits for a whole chunk.
    """
    arrived = response._body_buffer  # noqa: SLF001
    while not arrived and (connection := response._sock) is not None:  # noqa: SLF001 - None once the response is whole
        response.feed(connection.recv(response.block_size))
    chunk = bytes(arrived)
    arrived.clear()
    return chunk
