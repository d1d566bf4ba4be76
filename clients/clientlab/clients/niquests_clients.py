"""niquests with one `Session` or one `AsyncSession`: connections are kept and used again."""

from __future__ import annotations

from asyncio import constants
from typing import Any, ClassVar

import niquests
from niquests.packages import urllib3

from clientlab.clients.client_interface import (
    Budget,
    EventsAs,
    EventSink,
    Opened,
    Pieces,
    Sink,
    StatusAndBody,
    untouched,
)
from clientlab.clients.no_cookies import no_cookies
from clientlab.clients.urllib3_retry import retry_of
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request

_urllib3 = urllib3.exceptions  # the exceptions of urllib3-future, under either of its package names

SWITCHING_PROTOCOLS = 101
UNASKED = "the server switched to another protocol, which nobody asked for"
"""niquests then hands out a response without a body, for the other protocol."""

NIQUESTS_ERRORS: ErrorTable = (
    (niquests.exceptions.SSLError, "tls"),
    (niquests.exceptions.ConnectTimeout, "timeout-connect"),
    (niquests.exceptions.ReadTimeout, "timeout-read"),
    (_urllib3.ReadTimeoutError, "timeout-read"),
    (_urllib3.EmptyPoolError, "timeout-pool"),
    (_urllib3.NewConnectionError, "connect"),
    (_urllib3.IncompleteRead, "protocol"),
    (_urllib3.InvalidHeader, "protocol"),  # of a chunk
    (ConnectionError, "reset"),
    (niquests.exceptions.ChunkedEncodingError, "protocol"),
    (niquests.exceptions.ContentDecodingError, "protocol"),
    (_urllib3.ProtocolError, "protocol"),
    (niquests.exceptions.ConnectionError, "connect"),
    (RecursionError, "protocol"),  # one call for each interim response
)


class NiquestsClient:
    """What the blocking and the asyncio client have in common: their limits, and the arguments of each request."""

    errors: ClassVar[ErrorTable] = NIQUESTS_ERRORS
    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "lines"
    own_retry: ClassVar[str] = "niquests"

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        pool_connections: int = 1,
        as_written: bool = False,
    ) -> None:
        self._budget = budget
        self._options = options_of(untouched(budget) if as_written else budget, pool_connections)
        self._limits = {} if as_written else {"timeout": budget.timeout}

    def _words(self, request: Request) -> dict[str, Any]:
        return {
            "headers": request.headers,
            **self._limits,
            "verify": self._budget.ca_file or True,
            "allow_redirects": False,
        }


class NiquestsSession(NiquestsClient):
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    def open(self) -> None:
        self._session = niquests.Session(**self._options)
        self._session.cookies.set_policy(no_cookies())
        self._session.headers.clear()  # `Connection: keep-alive`, and what each request sets itself

    def send(self, request: Request) -> StatusAndBody:
        response = self._session.request(request.method, request.url, data=request.body, **self._words(request))
        if response.status_code == SWITCHING_PROTOCOLS:
            raise Fault("protocol", UNASKED)
        return response.status_code or 0, response.content or b""

    def stream(self, request: Request, sink: Sink) -> int:
        method, url, words = request.method, request.url, self._words(request)
        with self._session.request(method, url, data=request.body, stream=True, **words) as response:
            for chunk in response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code or 0

    def events(self, request: Request, sink: EventSink) -> int:
        method, url, words = request.method, request.url, self._words(request)
        with self._session.request(method, url, data=request.body, stream=True, **words) as response:
            status = response.status_code or 0
            sink.answered(status)
            if status >= 400:
                _ = response.content  # reads the body, so that the connection is used again
                return status
            for line in response.iter_lines():
                sink(line)
            return status

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._session.request(request.method, request.url, data=request.body, **self._words(request))
        if response.status_code == SWITCHING_PROTOCOLS:
            raise Fault("protocol", UNASKED)
        return response.status_code or 0, response.content or b"", response.elapsed.total_seconds()

    def close(self) -> None:
        self._session.close()


def options_of(budget: Budget, pool_connections: int) -> dict[str, Any]:
    """The session's arguments: HTTP/1.1, the budget's pool, and no revocation check, which no other client makes."""
    options: dict[str, Any] = {"disable_http2": True, "disable_http3": True, "revocation_configuration": None}
    if budget.retry is not None:
        options["retries"] = retry_of(urllib3.util.retry.Retry, budget.retry)
    if budget.connections is None:
        return options
    return options | {"pool_connections": pool_connections, "pool_maxsize": budget.connections}


class NiquestsAsync(NiquestsClient):
    """One session for the event loop."""

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

    async def events(self, request: Request, sink: EventSink) -> int:
        method, url, words = request.method, request.url, self._words(request)
        async with await self._session.request(method, url, data=request.body, stream=True, **words) as response:
            status = response.status_code or 0
            sink.answered(status)
            if status >= 400:
                await response.content
                return status
            async for line in response.iter_lines():
                sink(line)
            return status

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._session.request(request.method, request.url, data=request.body, **self._words(request))
        if response.status_code == SWITCHING_PROTOCOLS:
            raise Fault("protocol", UNASKED)
        return response.status_code or 0, response.content or b"", response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._session.close()
