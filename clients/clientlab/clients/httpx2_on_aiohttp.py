"""httpx2 with httpx-aiohttp's transport: httpx2's interface, and aiohttp's pool and parser below it."""

from __future__ import annotations

import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

from clientlab.clients.aiohttp_transport import OnAiohttp


class Httpx2OnAiohttp(OnAiohttp, library=httpx2):
    """One `httpx2.AsyncClient` for the event loop, on one `aiohttp.ClientSession`."""

    transport = AiohttpTransport
