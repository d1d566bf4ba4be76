"""httpx's top-level functions: every call makes a client, a TLS context and a connection."""

from __future__ import annotations

import ssl
from typing import ClassVar

import httpx

from clientlab.clients.interfaces import Budget, Opened, Reply, Sink
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

HTTPX_ERRORS: ErrorTable = (
    (ssl.SSLError, "tls", "[SSL"),  # an SSLError without "[SSL" is anyio's want-read, part of any other error's chain
    (httpx.ConnectTimeout, "timeout-connect"),
    (httpx.ReadTimeout, "timeout-read"),
    (httpx.WriteTimeout, "timeout-read"),
    (httpx.PoolTimeout, "timeout-pool"),
    (httpx.ConnectError, "connect"),
    (ConnectionError, "reset"),
    (httpx.ReadError, "reset"),
    (httpx.WriteError, "reset"),
    (httpx.RemoteProtocolError, "reset", "without sending a response"),
    (httpx.RemoteProtocolError, "protocol"),
    (httpx.DecodingError, "protocol"),
)


class HttpxPerCall:
    """`httpx.request` for each request."""

    errors: ClassVar[ErrorTable] = HTTPX_ERRORS

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget

    def open(self) -> None:
        """Do nothing: a call keeps nothing for the next."""

    def send(self, request: Request) -> Reply:
        response = self._response(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with httpx.stream(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body,
            timeout=self._budget.timeout,
            verify=tls_context(self._budget) or True,
        ) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return response.status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._response(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        """Do nothing: each call closed its own client."""

    def _response(self, request: Request) -> httpx.Response:
        return httpx.request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body,
            timeout=self._budget.timeout,
            verify=tls_context(self._budget) or True,  # a new context per call, as httpx itself makes one
        )
