"""A log of when the handler had each request, for trials that are explained.

An upstream that was started with MOCKUPSTREAM_TRACE, a folder, logs the requests that
carry a number: in a header, or in the query if the client gets nothing but a URL. Each
worker has a file, ``PID.trace``, of records of 24 bytes: the number, and when the
handler began and ended, in nanoseconds of the machine's monotonic clock. The upstream
of an ordinary run has no trace, and no code of this module in its way.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web

HEADER = "X-Request-Number"
_WSGI_HEADER = "HTTP_X_REQUEST_NUMBER"
STREAMS = "mockupstream.streams"
"""Key of a WSGI environment whose response is made while it is sent."""

_IN_QUERY = re.compile(r"[?&]request-number=(\d+)")
_MOST_DIGITS = 18  # of a whole number of eight bytes
_RECORD = struct.Struct("<qqq")

AioHandler = Callable[["web.BaseRequest"], Awaitable["web.StreamResponse"]]
WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Trace:
    """Writes the log of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = 0
        self._file = -1

    def write(self, number: str, began: int, ended: int | None = None) -> None:
        """Log when the handler began and ended a request; by default, it ends now."""
        if ended is None:
            ended = time.monotonic_ns()
        if self._pid != os.getpid():
            self._pid = os.getpid()
            path = self._folder / f"{self._pid}.trace"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if number.isdecimal() and len(number) <= _MOST_DIGITS:
            os.write(self._file, _RECORD.pack(int(number), began, ended))

    def around_handler(self, handler: AioHandler) -> AioHandler:
        """Return a handler of aiohttp that logs the requests with numbers."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            number = request.headers.get(HEADER) or _find_in_query(request.raw_path)
            if number is None:
                return await handler(request)
            began = time.monotonic_ns()
            try:
                return await handler(request)
            finally:
                self.write(number, began)

        return handle

    def middleware(self) -> Any:
        """Return this log as a middleware, for an application without a runner."""
        from aiohttp import web  # noqa: PLC0415 - an image has only one framework

        @web.middleware
        async def log(request: web.Request, handler: Any) -> web.StreamResponse:
            return await self.around_handler(handler)(request)

        return log

    def around_app(self, app: WsgiApp) -> WsgiApp:
        """Return a WSGI application that logs the requests with numbers."""
        from werkzeug.wsgi import ClosingIterator  # noqa: PLC0415 - it belongs to Flask

        def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            number = environ.get(_WSGI_HEADER) or _find_in_query(environ["RAW_URI"])
            if number is None:
                return app(environ, start_response)
            began = time.monotonic_ns()
            body = app(environ, start_response)
            answered = time.monotonic_ns()

            def write() -> None:
                # A stream ends when its body does; another response was ready before.
                ended = None if environ.get(STREAMS) else answered
                self.write(number, began, ended)

            return ClosingIterator(body, write)

        return call


def _find_in_query(target: str) -> str | None:
    found = _IN_QUERY.search(target)
    return None if found is None else found[1]
