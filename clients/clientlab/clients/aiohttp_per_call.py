"""aiohttp with a new session for each request. Its documentation warns against this use."""

from __future__ import annotations

from clientlab.clients.aiohttp_session import AiohttpSession
from clientlab.clients.interfaces import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.tls_context import tls_context
from clientlab.workload.workload import Request


class AiohttpPerCall(AiohttpSession):
    """A session, its connector and a connection for each request. Only the TLS context is kept."""

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)

    async def open(self) -> None:
        self.trust(tls_context(self._budget))

    async def send(self, request: Request) -> StatusAndBody:
        async with (
            self.new_session() as session,
            session.request(
                request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
            ) as response,
        ):
            return response.status, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        async with self.new_session() as session:
            return await self.stream_in(session, request, sink)

    async def close(self) -> None:
        """Do nothing: each call closed its own session."""
