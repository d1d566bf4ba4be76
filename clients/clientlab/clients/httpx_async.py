"""httpx with one `AsyncClient`: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

import httpx

from clientlab.clients.httpx_client import limits_of, timeout_of
from clientlab.clients.httpx_per_call import HTTPX_ERRORS
from clientlab.clients.interfaces import Budget, Opened, Reply, Sink
from clientlab.clients.no_cookies import empty_jar
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


class HttpxAsync:
    """One client for the event loop."""

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

    async def open(self) -> None:
        self._client = httpx.AsyncClient(
            verify=tls_context(self._budget) or True,
            limits=self._limits,
            timeout=timeout_of(self._budget),
            cookies=empty_jar(),
        )
        del self._client.headers["Connection"]  # `keep-alive`, which other clients do not send

    async def send(self, request: Request) -> Reply:
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        method, url = request.method, request.url
        async with self._client.stream(method, url, headers=request.headers, content=request.body) as response:
            async for chunk in response.aiter_bytes(self._budget.chunk_size):
                sink(chunk)
            return response.status_code

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return response.status_code, response.content, response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._client.aclose()
