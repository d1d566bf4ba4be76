"""httpx over HTTP/2, blocking and asyncio: one connection carries all requests in flight."""

from __future__ import annotations

import httpx

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient


class HttpxClientH2(FamilyClient, library=httpx, http2=True):
    """One client, shared by all threads of the process."""


class HttpxAsyncH2(FamilyAsync, library=httpx, http2=True):
    """One client for the event loop."""
