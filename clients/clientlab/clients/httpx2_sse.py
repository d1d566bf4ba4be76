"""httpx2 with its own `sse()`, which parses server-sent events: clients that only read streams."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx2

from clientlab.clients.client_interface import EventSink, Pieces
from clientlab.clients.httpx_family import OneAsyncClient, OneClient, errors_of
from clientlab.clients.sse_events import data_of
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

_ERRORS: ErrorTable = (*errors_of(httpx2), (httpx2.SSEError, "protocol"))


class Httpx2Sse(OneClient):
    """One `httpx2.Client`, whose streams `sse` reads."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    def events(self, request: Request, sink: EventSink) -> int:
        words: dict[str, Any] = {"headers": request.headers, "content": request.body}
        with self._client.sse(request.url, method=request.method, **words) as source:
            status = int(source.response.status_code)
            sink.answered(status)
            if status >= 400:
                source.response.read()
                return status
            for event in source:
                sink(data_of(event))
            return status


class Httpx2SseAsync(OneAsyncClient):
    """One `httpx2.AsyncClient`, whose streams `sse` reads."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    async def events(self, request: Request, sink: EventSink) -> int:
        words: dict[str, Any] = {"headers": request.headers, "content": request.body}
        async with self._client.sse(request.url, method=request.method, **words) as source:
            status = int(source.response.status_code)
            sink.answered(status)
            if status >= 400:
                await source.response.aread()
                return status
            async for event in source:
                sink(data_of(event))
            return status
