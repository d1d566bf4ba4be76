"""aiohttp with a session a request: what its documentation warns of."""

from __future__ import annotations

from typing import ClassVar

from clientlab.clients.aiohttp_session import AIOHTTP_ERRORS, AiohttpSession
from clientlab.clients.shape import Budget, Opened, Reply, Sink
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload import Request


class AiohttpPerCall:
    """A session, its connector and a connection for each request."""

    errors: ClassVar[ErrorTable] = AIOHTTP_ERRORS

    def __init__(self, budget: Budget, opened: Opened) -> None:
        self._budget = budget
        self._opened = opened

    async def open(self) -> None:
        """Nothing is kept from call to call but the TLS context, as aiohttp keeps its own."""
        self._tls = tls_context(self._budget)

    async def send(self, request: Request) -> Reply:
        session = AiohttpSession(self._budget, self._opened, self._tls)
        await session.open()
        try:
            return await session.send(request)
        finally:
            await session.close()

    async def stream(self, request: Request, sink: Sink) -> int:
        session = AiohttpSession(self._budget, self._opened, self._tls)
        await session.open()
        try:
            return await session.stream(request, sink)
        finally:
            await session.close()

    async def close(self) -> None:
        """Each call closed its own."""
