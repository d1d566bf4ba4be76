"""httpx: one blocking `Client`, one `AsyncClient`, or its top-level functions, which keep no connection."""

from __future__ import annotations

import httpx

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient, FamilyPerCall
from clientlab.clients.per_thread import TimedPerThread


class HttpxClient(FamilyClient, library=httpx):
    """One client, shared by all threads of the process."""


class HttpxAsync(FamilyAsync, library=httpx):
    """One client for the event loop."""


class HttpxPerCall(FamilyPerCall, library=httpx):
    """`httpx.request` for each request."""


class HttpxClientPerThread(TimedPerThread):
    """One client for each thread."""

    shared = HttpxClient
    errors = HttpxClient.errors
