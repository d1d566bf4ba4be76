"""punkreq, on Rust's hyper by way of httpunk, with one asyncio `Client` over HTTP/1.1 or HTTP/2."""

from __future__ import annotations

import ssl
from typing import ClassVar

import punkreq
from punkreq import _transport
from punkreq.asyncio import Client

from clientlab.clients.client_interface import Budget, EventsAs, EventSink, Opened, Pieces, Sink, StatusAndBody
from clientlab.clients.tls_context import trusting
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request

KEEP_IDLE_SECONDS, LIBRARY_KEEP_IDLE_SECONDS = 75.0, 90.0

# punkreq sends a request again when its used connection is dropped. No other client does, and the server would count
# more requests than were sent. punkreq has no public option for it.
_transport._MAX_NACK_RETRIES = 0  # noqa: SLF001


class PunkreqClient:
    """One client for the event loop. punkreq has no blocking one."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (punkreq.ConnectTimeout, "timeout-connect"),
        (punkreq.PoolTimeout, "timeout-pool"),
        (punkreq.ReadTimeout, "timeout-read"),
        (punkreq.ConnectError, "connect"),
        (ConnectionError, "reset"),
        (punkreq.ReadError, "reset"),
        (punkreq.RemoteProtocolError, "reset", "Server disconnected"),
        (punkreq.RemoteProtocolError, "protocol"),
        (punkreq.DecodingError, "protocol"),
    )
    http2: ClassVar[bool] = False
    # punkreq sends an iterable body in chunks, and drops its length; only of a file it sends the length.
    streams_uploads: ClassVar[bool] = False
    events_as: ClassVar[EventsAs] = "str"
    pieces: ClassVar[Pieces] = "lines"

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        max_keepalive: int | None = None,
        keepalive_expiry: float | None = None,
        trust: str = "lab",
    ) -> None:
        self._budget = budget
        self._trust = trust
        seconds = LIBRARY_KEEP_IDLE_SECONDS if budget.connections is None else KEEP_IDLE_SECONDS
        self._limits = punkreq.Limits(
            max_connections=budget.connections or None,  # the library's own: no limit
            max_keepalive_connections=max_keepalive,
            keepalive_expiry=seconds if keepalive_expiry is None else keepalive_expiry,
        )

    async def open(self) -> None:
        self._client = Client(
            verify=trusting(self._budget, self._trust, ssl.create_default_context) or True,
            limits=self._limits,
            timeout=punkreq.Timeout(self._budget.timeout, pool=None, total=None),
            follow_redirects=False,
            http2=self.http2,
        )

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._asked(request)
        return response.status_code, await response.read()

    async def stream(self, request: Request, sink: Sink) -> int:
        response = await self._asked(request)
        async with response:
            async for chunk in response.iter_bytes(self._budget.chunk_size):
                sink(chunk)
        return response.status_code

    async def events(self, request: Request, sink: EventSink) -> int:
        response = await self._asked(request)
        async with response:
            status = response.status_code
            sink.answered(status)
            if status >= 400:
                await response.read()
                return status
            async for line in response.iter_lines():
                sink(line)
        return status

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._asked(request)
        body = await response.read()
        return response.status_code, body, response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._client.close()

    async def _asked(self, request: Request) -> punkreq.Response:
        """The response, whose body is not read yet."""
        response = await self._client.request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        if self.http2 and response.http_version != "HTTP/2":
            await response.close()
            raise Fault("protocol", f"the server spoke {response.http_version} where HTTP/2 was asked for")
        return response


class PunkreqH2(PunkreqClient):
    """One client for the event loop over HTTP/2: one connection for all."""

    http2 = True
