"""httpx with the package httpx-sse, which parses server-sent events: clients that only read streams."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx
import httpx_sse

from clientlab.clients.client_interface import EventSink, Pieces
from clientlab.clients.httpx_family import OneAsyncClient, OneClient, errors_of
from clientlab.clients.sse_events import data_of
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

_ERRORS: ErrorTable = (*errors_of(httpx), (httpx_sse.SSEError, "protocol"))


class HttpxSse(OneClient):
    """One `httpx.Client`, whose streams `connect_sse` reads."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx
    errors = _ERRORS

    def events(self, request: Request, sink: EventSink) -> int:
        # `connect_sse` changes the headers that it is given.
        words: dict[str, Any] = {"headers": dict(request.headers), "content": request.body}
        with httpx_sse.connect_sse(self._client, request.method, request.url, **words) as source:
            response = source.response
            sink.answered(response.status_code)
            if response.status_code >= 400:
                response.read()
                return response.status_code
            for event in source.iter_sse():
                sink(data_of(event))
            return response.status_code


class HttpxSseAsync(OneAsyncClient):
    """One `httpx.AsyncClient`, whose streams `aconnect_sse` reads."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx
    errors = _ERRORS

    async def events(self, request: Request, sink: EventSink) -> int:
        words: dict[str, Any] = {"headers": dict(request.headers), "content": request.body}
        async with httpx_sse.aconnect_sse(self._client, request.method, request.url, **words) as source:
            response = source.response
            sink.answered(response.status_code)
            if response.status_code >= 400:
                await response.aread()
                return response.status_code
            async for event in source.aiter_sse():
                sink(data_of(event))
            return response.status_code
