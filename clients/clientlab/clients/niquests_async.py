"""niquests with one `AsyncSession`: connections are kept and used again."""

from __future__ import annotations

from asyncio import constants
from typing import Any, ClassVar

import niquests

from clientlab.clients.interfaces import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.niquests_session import NIQUESTS_ERRORS, SWITCHING_PROTOCOLS, UNASKED, options_of
from clientlab.clients.no_cookies import no_cookies
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request


class NiquestsAsync:
    """One session for the event loop."""

    errors: ClassVar[ErrorTable] = NIQUESTS_ERRORS

    def __init__(self, budget: Budget, opened: Opened, *, pool_connections: int = 1) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget
        self._options = options_of(budget, pool_connections)

    async def open(self) -> None:
        # niquests does not limit the TLS handshake; asyncio's limit of 60 s would hold.
        constants.SSL_HANDSHAKE_TIMEOUT = self._budget.timeout
        self._session = niquests.AsyncSession(**self._options)
        self._session.cookies.set_policy(no_cookies())
        self._session.headers.clear()  # `Connection: keep-alive`, and what each request sets itself

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._session.request(request.method, request.url, data=request.body, **self._words(request))
        if response.status_code == SWITCHING_PROTOCOLS:
            raise Fault("protocol", UNASKED)
        return response.status_code or 0, response.content or b""

    async def stream(self, request: Request, sink: Sink) -> int:
        method, url, words = request.method, request.url, self._words(request)
        async with await self._session.request(method, url, data=request.body, stream=True, **words) as response:
            async for chunk in await response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code or 0

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._session.request(request.method, request.url, data=request.body, **self._words(request))
        if response.status_code == SWITCHING_PROTOCOLS:
            raise Fault("protocol", UNASKED)
        return response.status_code or 0, response.content or b"", response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._session.close()

    def _words(self, request: Request) -> dict[str, Any]:
        return {
            "headers": request.headers,
            "timeout": self._budget.timeout,
            "verify": self._budget.ca_file or True,
            "allow_redirects": False,
        }
