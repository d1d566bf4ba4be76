"""httpx with httpx-aiohttp's transport: httpx's interface, and aiohttp's pool and parser below it."""

from __future__ import annotations

import httpx
from httpx_aiohttp import AiohttpTransport

from clientlab.clients.aiohttp_transport import OnAiohttp


class HttpxOnAiohttp(OnAiohttp, library=httpx):
    """One `httpx.AsyncClient` for the event loop, on one `aiohttp.ClientSession`."""

    transport = AiohttpTransport
