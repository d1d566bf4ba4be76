"""httpx with one blocking `Client`: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

import httpx

from clientlab.clients.httpx_per_call import HTTPX_ERRORS
from clientlab.clients.interfaces import Budget, Opened, Reply, Sink
from clientlab.clients.no_cookies import empty_jar
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

KEEP_IDLE_SECONDS = 75.0
"""httpx closes idle connections after 5 s by default. The other clients keep them, so httpx does here too."""


def limits_of(budget: Budget, max_keepalive: int | None = None, keepalive_expiry: float | None = None) -> httpx.Limits:
    """The budget as httpx's limits, with the number of idle connections and the seconds they are kept.

    Without settings, all connections are kept. Without a budget: httpx's defaults (100, 20 kept for 5 s).
    """
    connections: int | None = 100
    kept: int | None = 20
    seconds = 5.0
    if budget.connections is not None:
        connections = kept = budget.connections or None  # None: no limit
        seconds = KEEP_IDLE_SECONDS
    return httpx.Limits(
        max_connections=connections,
        max_keepalive_connections=kept if max_keepalive is None else max_keepalive,
        keepalive_expiry=seconds if keepalive_expiry is None else keepalive_expiry,
    )


def timeout_of(budget: Budget) -> httpx.Timeout:
    """Time limits for connecting and for each wait for bytes. The wait for a pooled connection has no limit."""
    return httpx.Timeout(budget.timeout, pool=None)


class HttpxClient:
    """One client, shared by all threads of the process."""

    errors: ClassVar[ErrorTable] = HTTPX_ERRORS

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        max_keepalive: int | None = None,
        keepalive_expiry: float | None = None,
    ) -> None:
        self._budget = budget
        self._limits = limits_of(budget, max_keepalive, keepalive_expiry)

    def open(self) -> None:
        self._client = httpx.Client(
            verify=tls_context(self._budget) or True,
            limits=self._limits,
            timeout=timeout_of(self._budget),
            cookies=empty_jar(),
        )
        del self._client.headers["Connection"]  # `keep-alive`, which other clients do not send

    def send(self, request: Request) -> Reply:
        response = self._client.request(request.method, request.url, headers=request.headers, content=request.body)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        with self._client.stream(method, url, headers=request.headers, content=request.body) as response:
            for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
            return response.status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._client.request(request.method, request.url, headers=request.headers, content=request.body)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._client.close()
