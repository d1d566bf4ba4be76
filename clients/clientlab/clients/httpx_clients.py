"""httpx: one blocking `Client`, one `AsyncClient`, or its top-level functions, which keep no connection."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient, FamilyPerCall, errors_of
from clientlab.clients.per_thread import TimedPerThread


class HttpxClient(FamilyClient):
    """One client, shared by all threads of the process."""

    library: ClassVar[Any] = httpx
    own_retry: ClassVar[str] = "httpx"
    errors = errors_of(httpx)


class HttpxAsync(FamilyAsync):
    """One client for the event loop."""

    library: ClassVar[Any] = httpx
    own_retry: ClassVar[str] = "httpx"
    errors = errors_of(httpx)


class HttpxPerCall(FamilyPerCall):
    """`httpx.request` for each request."""

    library: ClassVar[Any] = httpx
    errors = errors_of(httpx)


class HttpxClientPerThread(TimedPerThread):
    """One client for each thread."""

    shared = HttpxClient
    errors = HttpxClient.errors
