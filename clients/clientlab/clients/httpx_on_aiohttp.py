"""httpx with httpx-aiohttp's transport: httpx's interface, and aiohttp's pool and parser below it."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx
from httpx_aiohttp import AiohttpTransport

from clientlab.clients.aiohttp_clients import AIOHTTP_ERRORS
from clientlab.clients.aiohttp_transport import OnAiohttp
from clientlab.clients.httpx_family import errors_of


class HttpxOnAiohttp(OnAiohttp):
    """One `httpx.AsyncClient` for the event loop, on one `aiohttp.ClientSession`."""

    library: ClassVar[Any] = httpx
    transport = AiohttpTransport
    errors = (*AIOHTTP_ERRORS, *errors_of(httpx))
