"""httpx with one blocking `Client`: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

import httpx

from clientlab.clients.httpx_per_call import HTTPX_ERRORS
from clientlab.clients.shape import Budget, Opened, Reply
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload import Request

KEEP_IDLE_SECONDS = 75.0
"""httpx drops idle connections after 5 s by itself; the other clients keep them, so all do."""


def limits_of(budget: Budget) -> httpx.Limits:
    """The budget in httpx's words; its defaults (100 in all, 20 kept, for 5 s) where there is none."""
    if budget.connections is None:
        return httpx.Limits(max_connections=100, max_keepalive_connections=20)
    return httpx.Limits(
        max_connections=budget.connections,
        max_keepalive_connections=budget.connections,
        keepalive_expiry=KEEP_IDLE_SECONDS,
    )


def timeout_of(budget: Budget) -> httpx.Timeout:
    """Time limits for connecting and for each wait for bytes; none for the wait in the pool's queue."""
    return httpx.Timeout(budget.timeout, pool=None)


class HttpxClient:
    """One client, shared by all threads of the process."""

    errors: ClassVar[ErrorTable] = HTTPX_ERRORS

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - seen by Python
        self._budget = budget

    def open(self) -> None:
        self._client = httpx.Client(
            verify=tls_context(self._budget) or True,
            limits=limits_of(self._budget),
            timeout=timeout_of(self._budget),
        )

    def send(self, request: Request) -> Reply:
        response = self._client.request(request.method, request.url, headers=request.headers, content=request.body)
        return response.status_code, response.content

    def close(self) -> None:
        self._client.close()
