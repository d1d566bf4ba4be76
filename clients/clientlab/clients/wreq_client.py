"""wreq, in Rust, without emulation: one blocking or asyncio `Client`, whose connections are kept and used again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import wreq
from wreq import blocking, exceptions

from clientlab.clients.bodies import hand_over
from clientlab.clients.client_interface import Budget, EventsAs, EventSink, Opened, Pieces, Sink, StatusAndBody
from clientlab.errors import NO_DESCRIPTOR, ErrorTable
from clientlab.workload.workload import Request

_METHODS = {name: getattr(wreq.Method, name) for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")}


class _Wreq:
    """What both clients share: their limits, and their table of errors."""

    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "chunks"

    errors: ClassVar[ErrorTable] = (
        (exceptions.ConnectionError, NO_DESCRIPTOR, "Too many open files"),
        (exceptions.ConnectionError, "timeout-connect", "TimedOut"),
        (exceptions.TimeoutError, "timeout-read"),
        (exceptions.BodyError, "timeout-read", "TimedOut"),
        (exceptions.TlsError, "tls"),
        (exceptions.ConnectionError, "tls", "code: SSL"),  # BoringSSL's error, not that of the socket below it
        (exceptions.ConnectionError, "connect"),
        (exceptions.ConnectionResetError, "reset"),
        (exceptions.RequestError, "reset", "IncompleteMessage"),
        (exceptions.BodyError, "protocol"),
        (exceptions.DecodingError, "protocol"),
        (exceptions.RequestError, "protocol"),
    )

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - wreq does not report its connections
        self._budget = budget

    def _options(self) -> dict[str, Any]:
        """The client's arguments: HTTP/1.1, no redirect, no proxy, no decompression."""
        budget, seconds = self._budget, timedelta(seconds=self._budget.timeout)
        options: dict[str, Any] = {
            "http1_only": True,
            # The read limit starts with connecting. The connect limit is shorter, so that the two can be told apart.
            "connect_timeout": 0.95 * seconds,
            "read_timeout": seconds,
            "redirect": wreq.Policy.none(),
            "no_proxy": True,
            "gzip": False,
            "brotli": False,
            "deflate": False,
            "zstd": False,
        }
        if budget.ca_file is not None:
            options["tls_verify"] = wreq.CertStore.from_pem_stack(Path(budget.ca_file).read_bytes())
        if budget.connections:
            # wreq returns a used connection in a thread of its own, and may open another one meanwhile. A pool without
            # room for it would throw one away each time.
            options["pool_max_idle_per_host"] = 2 * budget.connections
        return options


class WreqClient(_Wreq):
    """One client, shared by all threads of the process."""

    def open(self) -> None:
        self._client = blocking.Client(**self._options())

    def send(self, request: Request) -> StatusAndBody:
        with self._asked(request) as response:
            return response.status.as_int(), bytes(response.bytes())

    def stream(self, request: Request, sink: Sink) -> int:
        with self._asked(request) as response:
            for chunk in response.stream():
                if isinstance(chunk, memoryview):
                    hand_over(chunk, self._budget.chunk_size, sink)
            return int(response.status.as_int())

    def events(self, request: Request, sink: EventSink) -> int:
        with self._asked(request) as response:
            status = int(response.status.as_int())
            sink.answered(status)
            with response.stream() as pieces:
                for piece in pieces:
                    if status < 400 and isinstance(piece, memoryview):
                        sink(bytes(piece))
            return status

    def close(self) -> None:
        self._client.close()

    def _asked(self, request: Request) -> blocking.Response:
        """The response, whose body is not read yet."""
        body = request.body if request.body is None or isinstance(request.body, bytes) else iter(request.body)
        return self._client.request(_METHODS[request.method], request.url, headers=request.headers, body=body)


class WreqAsync(_Wreq):
    """One client for the event loop."""

    async def open(self) -> None:
        self._client = wreq.Client(**self._options())

    async def send(self, request: Request) -> StatusAndBody:
        async with await self._asked(request) as response:
            return response.status.as_int(), bytes(await response.bytes())

    async def stream(self, request: Request, sink: Sink) -> int:
        async with await self._asked(request) as response:
            async for chunk in response.stream():
                if isinstance(chunk, memoryview):
                    hand_over(chunk, self._budget.chunk_size, sink)
            return int(response.status.as_int())

    async def events(self, request: Request, sink: EventSink) -> int:
        async with await self._asked(request) as response:
            status = int(response.status.as_int())
            sink.answered(status)
            async with response.stream() as pieces:
                async for piece in pieces:
                    if status < 400 and isinstance(piece, memoryview):
                        sink(bytes(piece))
            return status

    async def close(self) -> None:
        self._client.close()

    async def _asked(self, request: Request) -> wreq.Response:
        """The response, whose body is not read yet."""
        body = request.body if request.body is None or isinstance(request.body, bytes) else aiter(request.body)
        return await self._client.request(_METHODS[request.method], request.url, headers=request.headers, body=body)
