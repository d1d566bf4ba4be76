"""The contract on aiohttp: an application, the runner that serves it, and replies that
are always the same.

A bare aiohttp application took 33 µs of CPU time for a quick request, and 18 µs without
its router and with a prepared response, so the lab's server limits its clients less.
aiohttp still reads the requests and keeps the connections.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http.client import responses
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE, HttpVersion11
from aiohttp.worker import GunicornUVLoopWebWorker
from multidict import CIMultiDict

from mockupstream.alarm import Alarm
from mockupstream.contract import (
    BODILESS,
    Call,
    Contract,
    Reply,
    Route,
    joined,
    routes_of,
)
from mockupstream.faults import BAD_BYTES, RESET_AT_CLOSE, SILENT, FaultBook
from mockupstream.metrics import CONTENT_TYPE, Ledger, UpstreamCollector, digest_of
from mockupstream.settings import Settings
from mockupstream.trace import Trace

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
QuickHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_FEWEST_SEEN = 256  # connections
_MOST_REMEMBERED = 1024  # replies
_LOOK_SECONDS = 0.05  # aiohttp does not tell a handler that its client left


def build(
    settings: Settings,
    ledger: Ledger,
    exposition: UpstreamCollector,
    faults: FaultBook,
) -> tuple[web.Application, QuickReplies]:
    """Return the application, and the replies that it remembers."""
    app = web.Application()
    upstream = _AiohttpUpstream(Contract(settings, faults), ledger)
    app.cleanup_ctx.append(upstream.run)
    app.router.add_get("/healthz", _health)
    app.router.add_get("/metrics", _metrics(exposition))
    for method in ("GET", "PUT"):
        app.router.add_route(method, "/faults", _faults(faults))
    routes, other = routes_of(settings)
    for route in routes:
        app.router.add_route(
            "*", route.template.replace("}", ":[^/]+}"), upstream.handler(route)
        )
    app.router.add_route("*", "/{path:.*}", upstream.handler(other))
    return app, upstream.quick


class Runner(web.AppRunner):
    """Runs an application, but answers a request itself if it remembers the reply.

    `options`: those of AppRunner.
    """

    def __init__(
        self,
        app: web.Application,
        quick: QuickReplies,
        trace: Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(app, **options)
        self._quick = quick
        self._trace = trace

    async def setup(self) -> None:
        await super().setup()
        if self.server is not None:
            handler = self._quick.before(self.server.request_handler)
            if self._trace is not None:
                handler = Trace(self._trace).around_handler(handler)
            self.server.request_handler = handler


class UpstreamWorker(GunicornUVLoopWebWorker):
    """gunicorn's worker for aiohttp on uvloop, with the configured backlog.

    asyncio listens on the socket once more, with a backlog of 128. In a larger burst,
    some connections would be lost and established a second later.
    """

    def notify(self) -> None:
        """Report each second to the master that the worker lives, and set
        the backlog.
        """
        super().notify()
        for listener in self.sockets:
            listener.listen(self.cfg.backlog)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at once: aiohttp's worker notices SIGTERM up to a second later."""
        super().handle_exit(sig, frame)
        self._notify_waiter_done()


class _AiohttpUpstream:
    """Serves the contract's routes in one event loop."""

    def __init__(self, contract: Contract, ledger: Ledger) -> None:
        self._contract = contract
        self._ledger = ledger
        self._seen: set[web.RequestHandler] = set()
        self._most_seen = _FEWEST_SEEN
        self.quick = QuickReplies(ledger, self._count_connection)

    async def run(self, _app: web.Application) -> AsyncIterator[None]:
        self._alarm = Alarm()
        yield
        self._alarm.close()

    def handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._count_connection(request)
            return await self._serve(route, request)

        return handle

    async def _serve(self, route: Route, request: web.Request) -> web.StreamResponse:
        self._ledger.begin()
        try:
            length, sha256 = (
                await _read(request, digest=route.digest)
                if request.body_exists
                else _NO_BODY
            )
            read = time.monotonic()
            query = request.rel_url.raw_query_string
            call = Call(
                request.method,
                query,
                request.match_info,
                length,
                sha256,
                lambda: _headers(request),
                lambda: str(request.url),
            )
            reply = self._contract.reply(route, call)
            if reply.seconds:
                await self._alarm.until(read + reply.seconds)
            if reply.fault in SILENT:
                return await self._break_off(request, reply.fault)
            sent = len(reply.body) if request.method != "HEAD" else 0
            held = time.monotonic() - read
            digest = digest_of(request.method, request.raw_path)
            self._ledger.ready(
                route.number, reply.status, held, reply.seconds, length, sent, digest
            )
            if reply.pieces is not None:
                return await self._stream(request, reply, read + reply.seconds)
            if not (reply.seconds or request.body_exists) and self._contract.is_settled(
                route, query
            ):
                self.quick.remember(request, route, reply)
            return web.Response(
                body=reply.body, status=reply.status, headers=reply.headers
            )
        finally:
            self._ledger.end()

    async def _stream(
        self, request: web.Request, reply: Reply, due: float
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        response.content_length = reply.length
        await response.prepare(request)
        for piece in reply.pieces or ():
            if piece.pause:
                due += piece.pause
                await self._alarm.until(due)
            data = piece.write(due)
            self._ledger.sent(len(data))
            if piece.ends:
                await response.write_eof(data)
                return response
            await response.write(data)
        if reply.fault is not None:
            return _BROKEN_OFF
        await response.write_eof()
        return response

    async def _break_off(
        self, request: web.Request, fault: str | None
    ) -> web.StreamResponse:
        """Reset the connection, or end it without a response."""
        if fault == "stall":
            end = time.monotonic() + self._contract.longest_stall
            while request.transport is not None and time.monotonic() < end:  # noqa: ASYNC110 - see _LOOK_SECONDS
                await asyncio.sleep(_LOOK_SECONDS)
        transport = request.transport
        if transport is None:
            return _BROKEN_OFF
        if fault == "reset":
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            transport.abort()
        if fault == "garbage":
            transport.write(BAD_BYTES)
        return _BROKEN_OFF

    def _count_connection(self, request: web.BaseRequest) -> None:
        """Count a connection at its first request.

        Forget closed ones when there are many.
        """
        protocol = request.protocol
        if protocol in self._seen:
            return
        self._ledger.connection()
        self._seen.add(protocol)
        if len(self._seen) > self._most_seen:
            self._seen = {seen for seen in self._seen if seen.transport is not None}
            self._most_seen = max(_FEWEST_SEEN, 2 * len(self._seen))


async def _read(request: web.Request, *, digest: bool) -> tuple[int, str]:
    """Read the whole body without keeping it, and return its length and SHA-256."""
    length, sha256 = 0, hashlib.sha256()
    async for data in request.content.iter_any():
        length += len(data)
        if digest:
            sha256.update(data)
    return length, sha256.hexdigest()


_NO_BODY = (0, hashlib.sha256().hexdigest())


def _headers(request: web.Request) -> Mapping[str, str]:
    # aiohttp decodes headers as UTF-8, WSGI as Latin-1. The contract uses Latin-1.
    return joined(
        (name, value.encode("utf-8", "surrogateescape").decode("latin-1"))
        for name, value in request.headers.items()
    )


class _BrokenOff(web.StreamResponse):
    """Makes aiohttp close the connection, without a word in its log."""

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002 - aiohttp's interface
        raise ConnectionResetError


_BROKEN_OFF = _BrokenOff()


async def _health(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _metrics(exposition: UpstreamCollector) -> Handler:
    async def handle(_request: web.Request) -> web.Response:
        return web.Response(
            body=exposition.text(), headers=CIMultiDict({"Content-Type": CONTENT_TYPE})
        )

    return handle


def _faults(faults: FaultBook) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        if request.method != "PUT":
            return web.json_response(faults.summary())
        status, text = faults.put(await request.read())
        return web.Response(status=status, text=text)

    return handle


class _Remembered(NamedTuple):
    """A reply as bytes; the time goes between `head` and `rest`.

    `sent`: bytes of its body.

    `digest`: that of the request (see `metrics.digest_of`).
    """

    route: int
    status: int
    head: bytes
    rest: bytes
    sent: int
    digest: int


class QuickReplies:
    """Remembers replies to GET requests without a body, and sends them without the
    router.

    Each worker has one.
    """

    def __init__(self, ledger: Ledger, saw: Callable[[web.BaseRequest], None]) -> None:
        """`saw` gets each request, because one may be the first of its connection."""
        self._ledger = ledger
        self._saw = saw
        self._remembered: dict[str, _Remembered] = {}

    def remember(self, request: web.BaseRequest, route: Route, reply: Reply) -> None:
        """Keep a reply that is always the same, without a delay and in one piece."""
        if request.method != "GET" or reply.status in BODILESS:
            return
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        lines = [
            f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}",
            *(f"{name}: {value}" for name, value in reply.headers),
            f"Content-Length: {len(reply.body)}",
            "Date: ",
        ]
        rest = f"\r\nServer: {SERVER_SOFTWARE}\r\n\r\n".encode("latin-1") + reply.body
        head = "\r\n".join(lines).encode("latin-1")
        digest = digest_of(request.method, request.raw_path)
        self._remembered[request.raw_path] = _Remembered(
            route.number, reply.status, head, rest, len(reply.body), digest
        )

    def before(self, otherwise: QuickHandler) -> QuickHandler:
        """Return a handler that sends remembered replies, and leaves all other requests
        to `otherwise`.
        """
        find, ready, saw = self._remembered.get, self._ledger.ready, self._saw

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            found = find(request.raw_path)
            if (
                found is None
                or request.method != "GET"
                or request.body_exists
                or not request.keep_alive
                or request.version != HttpVersion11
                or (transport := request.transport) is None
            ):
                return await otherwise(request)
            began = time.monotonic()
            saw(request)
            reply = b"%b%b%b" % (
                found.head,
                rfc822_formatted_time().encode(),
                found.rest,
            )
            ready(
                found.route,
                found.status,
                time.monotonic() - began,
                0.0,
                0,
                found.sent,
                found.digest,
            )
            transport.write(reply)
            return _WRITTEN

        return handle


class _Written(web.StreamResponse):
    """A response that was written already, so that aiohttp only has to keep the
    connection.
    """

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002 - aiohttp's interface
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        pass


_WRITTEN = _Written()
