"""What every answer of the service has: security headers, and one line in a log that no client can flood."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clientlab.results.part import shortened
from clientlab.service.schemas import Problem

REQUESTS = "clientlab.service.requests"
"""The logger of refused requests."""

MOST_LINES = 20
SECONDS = 10.0

_LOGGERS = (REQUESTS, "uvicorn.error", "asyncio")
_service_log = logging.getLogger("clientlab.service")


class LogLimit(logging.Filter):
    """Lets the first 20 lines of each 10 seconds pass, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._until = 0.0
        self._passed = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - all lines are alike
        with self._lock:
            if time.monotonic() >= self._until:
                self._sum_up()
            if self._passed < MOST_LINES:
                self._passed += 1
                return True
            self._left_out += 1
            return False

    def look(self) -> None:
        """Log how many lines were left out, when their 10 seconds are over."""
        with self._lock:
            if self._left_out and time.monotonic() >= self._until:
                self._sum_up()

    def _sum_up(self) -> None:
        if self._left_out:
            _service_log.warning("%d more lines about requests were left out of the log", self._left_out)
        self._passed = self._left_out = 0
        self._until = time.monotonic() + SECONDS


@contextmanager
def limited() -> Iterator[LogLimit]:
    """Limit the log meanwhile."""
    limit = LogLimit()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(limit)
    try:
        yield limit
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(limit)


HOSTS = "LAB_HOSTS"
"""The environment variable with more host names of the service, separated by commas."""

MOST_REFUSALS = 10

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # else a browser may keep the script of an older version
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "clientlab",
}
_RAW_HEADERS = tuple((name.lower().encode(), value.encode()) for name, value in _HEADERS.items())

_log = logging.getLogger(REQUESTS)


class SecurityHeaders:
    """ASGI middleware: adds the headers that a page has not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message["headers"]
                there = {name for name, _ in own}
                message["headers"] = [*own, *(one for one in _RAW_HEADERS if one[0] not in there)]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def known_hosts(bound: str, more: str) -> frozenset[str]:
    """The host names of the service: its own, and those in `more`, separated by commas."""
    own = ("localhost", "lab", bound, socket.gethostname())
    return frozenset(name.strip().lower() for name in (*own, *more.split(",")) if name.strip())


class KnownHosts:
    """ASGI middleware: answers 421 to a request whose `Host` is no name of the service.

    Another site's name can be made to lead here (DNS rebinding), and a browser would take this page for that site's.
    An address leads nowhere else. A health check may leave the name out, and no browser does. Starlette's
    TrustedHostMiddleware knows no addresses.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = _header(scope, b"host")
        if host and not self._known(host):
            line = f"the lab is not known as {host[:100]!a}; add the name to {HOSTS} if it is yours"
            await refusal(Request(scope), HTTPStatus.MISDIRECTED_REQUEST, line)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
            return name in self._hosts or bool(ip_address(name))
        except ValueError:
            return False


class PlainBodies:
    """ASGI middleware: answers 415 to a compressed body, before it is read. A megabyte can unpack to a gigabyte."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        encoding = _header(scope, b"content-encoding")
        if encoding.strip().lower() in ("identity", ""):
            await self._app(scope, receive, send)
        else:
            line = f"Content-Encoding {encoding[:100]!a}: send the body as it is"
            await refusal(Request(scope), HTTPStatus.UNSUPPORTED_MEDIA_TYPE, line)(scope, receive, send)


def _header(scope: Scope, name: bytes) -> str:
    """The first header of a name; empty where there is none. Starlette's own way makes three objects."""
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), "")


def refusal(request: Request, status: int, line: str) -> JSONResponse:
    """The answer to a refused request. The log and the page show it, unless no such path or method exists.

    The connection ends with it if the request has a body, because nobody will read that. `line` may hold what the
    client has sent, such as the name of an unknown field.
    """
    if status not in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        client = request.client.host if request.client else "an unknown client"
        message = shortened(f"{request.method} {_shown_path(request)} from {client}: {status:d}, {shortened(line)}")
        _log.warning("%s", message)
        refusals: deque[str] = request.app.state.refusals
        refusals.append(f"{datetime.now(UTC):%H:%M:%S} {message}")
    headers = {"Connection": "close"} if _has_body(request) else None
    return JSONResponse(Problem(error=line).model_dump(), status, headers)


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _shown_path(request: Request) -> str:
    """The path as it was sent: a decoded line break would begin a line of its own in the log.

    A query is shown as ``?…``: no route of the service reads one, and somebody may write the page's key there.
    """
    path: bytes = request.scope["raw_path"]
    return path.decode("ascii", "backslashreplace") + "?…" * bool(request.scope["query_string"])


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an HTTPException with its status and its line."""
    if not isinstance(error, HTTPException):
        raise error
    return refusal(request, error.status_code, error.detail)


async def on_gone(request: Request, error: Exception) -> JSONResponse:
    """A client that went away in its request gets no answer; the log has its line."""
    if not isinstance(error, ClientDisconnect):
        raise error
    return refusal(request, HTTPStatus.BAD_REQUEST, "the client went away before the end of its request")


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """Answer a body that does not fit its schema."""
    if not isinstance(error, RequestValidationError):
        raise error
    return refusal(request, HTTPStatus.UNPROCESSABLE_ENTITY, first_line(error))


def first_line(error: ValidationError | RequestValidationError) -> str:
    """The field and the message of the first validation error."""
    first: dict[str, Any] = dict(error.errors()[0])
    if first["type"] == "json_invalid":
        return f"body: not JSON: {first['ctx']['error']}"
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    return f"{field or 'body'}: {first['msg']}"
