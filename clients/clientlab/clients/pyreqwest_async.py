"""pyreqwest with one `Client` of asyncio, Rust's reqwest: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

from pyreqwest.client import ClientBuilder
from pyreqwest.logging import flush_logs

from clientlab.clients.pyreqwest_client import PYREQWEST_ERRORS, tell_of_connections, within
from clientlab.clients.shape import Budget, Opened, Reply
from clientlab.errors import ErrorTable
from clientlab.workload import Request


class PyreqwestAsync:
    """One client for the loop."""

    errors: ClassVar[ErrorTable] = PYREQWEST_ERRORS

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: float | None = None) -> None:
        self._budget = budget
        self._keepalive = keepalive
        self._opened = opened

    async def open(self) -> None:
        self._client = within(ClientBuilder(), self._budget, self._keepalive).build()
        tell_of_connections(self._opened)

    async def send(self, request: Request) -> Reply:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = building.body_bytes(request.body)
        try:
            response = await building.build().send()
            return response.status, (await response.bytes()).to_bytes()
        finally:
            flush_logs()

    async def close(self) -> None:
        await self._client.close()
        flush_logs()
