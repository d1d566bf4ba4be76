"""httpx2 with httpx-aiohttp's transport: httpx2's interface, and aiohttp's pool and parser below it."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

from clientlab.clients.aiohttp_clients import AIOHTTP_ERRORS
from clientlab.clients.aiohttp_transport import OnAiohttp
from clientlab.clients.httpx_family import errors_of


class Httpx2OnAiohttp(OnAiohttp):
    """One `httpx2.AsyncClient` for the event loop, on one `aiohttp.ClientSession`."""

    library: ClassVar[Any] = httpx2
    transport = AiohttpTransport
    errors = (*AIOHTTP_ERRORS, *errors_of(httpx2))
