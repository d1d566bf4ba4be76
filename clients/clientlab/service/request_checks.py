"""Checks before a request's fields are read: the token of workers, the origin of forms, type and size of bodies."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from clientlab.service.connections import trust
from clientlab.service.lab import lab_of

BODY_SECONDS = 10.0
"""For a whole body. Workers send some hundred kilobytes at most."""

FORM_BODY = 4 << 10
SMALL_BODY = 8 << 10
"""Bytes: twice what a worker sends that names each listed strategy. The service holds the requests of all workers."""

RESULT_BODY = 2 << 20
"""Bytes: a result holds a histogram and the trial's course over time."""

_MOST_FIELDS = 20

BEARER = HTTPBearer(scheme_name="token", auto_error=False)


def worker_route(limit: int) -> type[APIRoute]:
    """The class of routes that take JSON of at most `limit` bytes from those who know the token.

    FastAPI would read and parse a body before it checks anything else.
    """

    class WorkerRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def checked(request: Request) -> Response:
                await check_token(request)
                _check_json(request)
                return await handler(_Limited(request, limit))

            return checked

    return WorkerRoute


class _Limited(Request):
    """A request whose body is read up to a limit."""

    def __init__(self, request: Request, limit: int) -> None:
        super().__init__(request.scope, request.receive)
        self._limit = limit

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = await read_body(self, self._limit)
        return self._body


async def check_token(request: Request) -> None:
    """Raises HTTPException (401) without the worker's token. A service without one trusts everybody."""
    token = lab_of(request).token
    given = await BEARER(request)
    if token and not (given and hmac.compare_digest(given.credentials.encode("latin-1"), token.encode())):
        raise HTTPException(401, "wrong token: give the worker the lab's own CLIENTLAB_TOKEN")
    if token:
        trust(request.scope)


def _check_json(request: Request) -> None:
    """Raises HTTPException (415). A browser asks before it sends this type to another site, and is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "write Content-Type: application/json")


async def read_body(request: Request, limit: int) -> bytes:
    """The body. Raises HTTPException: 413 as soon as it is known to be larger than `limit` bytes, 408 if it is late."""
    too_large = HTTPException(413, f"the body is larger than {limit:,} bytes")
    if int(request.headers.get("content-length", "0")) > limit:
        raise too_large
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for block in request.stream():
                content += block
                if len(content) > limit:
                    raise too_large
    except TimeoutError as error:
        raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS:g} s") from error
    return bytes(content)


class WrongKey(HTTPException):
    """A form without the page's key."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form of the service's own page, without its key. Raises HTTPException (403, 408, 413, 422)."""
    check_origin(request)
    content = await read_body(request, FORM_BODY)
    try:
        fields = dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(422, f"the form can't be read: {error}") from error
    if not lab_of(request).key.fits(fields.pop("key", "")):
        raise WrongKey(403, "the key is missing or wrong; open the link that the lab printed when it started")
    return fields


Form = Annotated[dict[str, str], Depends(read_form)]


def check_origin(request: Request) -> None:
    """Raises HTTPException (403) for a form of another site: a browser names the site that a form is of."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    try:
        own = origin is not None and urlsplit(origin).netloc == request.headers.get("host", "")
    except ValueError:  # such as http://[
        own = False
    if not (site == "same-origin" if site else own):
        raise HTTPException(403, "the form was not sent from this page; for programs there is /api/openapi.json")
