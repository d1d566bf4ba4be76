"""What stands before every handler: the token, the limits, the origin of forms, the headers of answers."""

from __future__ import annotations

import hmac
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from pydantic import BaseModel, ValidationError

from clientlab.errors import LabError
from clientlab.service.shapes import Problem

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Shape = TypeVar("Shape", bound=BaseModel)

SMALL_BODY = 64 << 10
RESULT_BODY = 2 << 20
"""Bytes: a result holds a histogram and the trial's course over time."""

_log = logging.getLogger("clientlab.service")

HOSTS = "LAB_HOSTS"
"""The variable with more names that the service is asked for by, with commas between."""

REFUSALS = web.AppKey("refusals", deque[str])
"""The last refusals, a line each, for the page."""

MOST_REFUSALS = 10
_MOST_CHARACTERS = 300

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "clientlab",
}


class Answered(Exception):
    """A request that is answered with a status and one line."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


@web.middleware
async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every answer its headers; a page that needs others has set them."""
    try:
        response = await handler(request)
    except web.HTTPException as answer:
        answer.headers.update(_HEADERS)
        raise
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def known_hosts(bound: str, more: str) -> frozenset[str]:
    """The names that the service may be asked for by: its own, and those with commas between in `more`."""
    own = ("localhost", "lab", bound, socket.gethostname())
    return frozenset(name.strip().lower() for name in (*own, *more.split(",")) if name.strip())


def hosts(known: Iterable[str]) -> Middleware:
    """Only who asks for the service by a name of its own is answered.

    Another site's name can be made to lead here (DNS rebinding), and a browser would take our page for that site's.
    An address leads nowhere else, and no browser leaves the name out, as the containers' health check does.
    """
    names = frozenset(known)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.headers.get("Host", "")
        if asked and not _own(asked, names):
            raise Answered(421, f"the lab is not known as {asked[:100]!a}; add the name to {HOSTS} if it is yours")
        return await handler(request)

    return check


def _own(asked: str, names: frozenset[str]) -> bool:
    try:
        name = (urlsplit(f"//{asked}").hostname or "").rstrip(".")
        return name in names or bool(ip_address(name))
    except ValueError:
        return False


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what is wrong with one line of JSON, and say it in the log."""
    try:
        return await handler(request)
    except Answered as error:
        return _problem(request, error.status, str(error))
    except web.HTTPRedirection:
        raise
    except web.HTTPException as error:
        return _problem(request, error.status, error.reason or "")


def _problem(request: web.Request, status: int, line: str) -> web.Response:
    if status not in (404, 405):
        said = f"{request.method} {request.raw_path} from {request.remote}: {status}, {line}"
        _log.warning("%s", said)
        request.app[REFUSALS].append(f"{datetime.now(UTC):%H:%M:%S} {said[:_MOST_CHARACTERS]}")
    return web.json_response(Problem(error=line).model_dump(), status=status)


def check_token(request: web.Request, token: str) -> None:
    """Raises Answered (401) without the worker's token; where the service has none, everybody is trusted."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode(errors="surrogateescape")
    if token and not hmac.compare_digest(given, token.encode()):
        raise Answered(401, "wrong token: give the worker the lab's own CLIENTLAB_TOKEN")


def check_origin(request: web.Request) -> None:
    """Raises Answered (403) for a form that another site has sent, which a browser tells us."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    same = site == "same-origin" if site else origin is not None and urlsplit(origin).netloc == request.host
    if not same:
        raise Answered(403, "the form was not sent from this page; for programs there is /api/openapi.json")


async def read_body(request: web.Request, limit: int) -> bytes:
    """The body. Raises Answered (413) as soon as it is known to be larger than `limit` bytes."""
    too_large = Answered(413, f"the body is larger than {limit:,} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    content = bytearray()
    async for block in request.content.iter_chunked(64 << 10):
        content += block
        if len(content) > limit:
            raise too_large
    return bytes(content)


async def read_shape(request: web.Request, shape: type[Shape], limit: int = SMALL_BODY) -> Shape:
    """The body in its shape. Raises Answered: 413, 415 for what is no JSON, 422 for another shape."""
    if request.content_type != "application/json":
        # A browser asks before it sends this type to another site, and is not answered.
        raise Answered(415, "write Content-Type: application/json")
    content = await read_body(request, limit)
    try:
        return shape.model_validate_json(content)
    except ValidationError as error:
        raise Answered(422, first_line(error)) from error


def first_line(error: ValidationError) -> str:
    """Where and what the first of the errors is."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"


def or_conflict(error: LabError) -> Answered:
    """A LabError as the answer to a request that can't be met now."""
    return Answered(409, str(error))
