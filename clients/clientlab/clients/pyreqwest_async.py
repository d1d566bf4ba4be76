"""pyreqwest (Rust's reqwest) with one asyncio `Client`: connections are kept and used again."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from pyreqwest.client import ClientBuilder
from pyreqwest.request import StreamRequest

from clientlab.clients.interfaces import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.pyreqwest_client import PYREQWEST_ERRORS, ConnectionLog, with_body, within
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


class PyreqwestAsync:
    """One client for the event loop."""

    errors: ClassVar[ErrorTable] = PYREQWEST_ERRORS

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: float | None = None) -> None:
        self._budget = budget
        self._keepalive = keepalive
        self._opened = opened

    async def open(self) -> None:
        self._client = within(ClientBuilder(), self._budget, self._keepalive).build()
        self._log = ConnectionLog(self._opened)

    async def send(self, request: Request) -> StatusAndBody:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        try:
            response = await building.build().send()
            return response.status, (await response.bytes()).to_bytes()
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        try:
            async with self._streaming(request) as response:
                while (chunk := await response.body_reader.read(self._budget.chunk_size)) is not None:
                    sink(chunk.to_bytes())
                return response.status
        finally:
            if monotonic() >= self._log.due:
                self._log.read()

    def tell(self) -> None:
        self._log.read()

    async def close(self) -> None:
        await self._client.close()
        self._log.read()

    def _streaming(self, request: Request) -> StreamRequest:
        building = self._client.request(request.method, request.url).headers(request.headers)
        if request.body is not None:
            building = with_body(building, request.body)
        return building.streamed_read_buffer_limit(self._budget.chunk_size).build_streamed()
