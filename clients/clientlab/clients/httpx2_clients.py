"""httpx2, Pydantic's continuation of httpx: one blocking `Client`, one `AsyncClient`, and its top-level functions."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx2

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient, FamilyPerCall, errors_of
from clientlab.clients.per_thread import TimedPerThread

_ERRORS = errors_of(httpx2)


class Httpx2Client(FamilyClient):
    """One client, shared by all threads of the process."""

    library: ClassVar[Any] = httpx2
    own_retry: ClassVar[str] = "httpx2"
    errors = _ERRORS


class Httpx2Async(FamilyAsync):
    """One client for the event loop."""

    library: ClassVar[Any] = httpx2
    own_retry: ClassVar[str] = "httpx2"
    errors = _ERRORS


class Httpx2PerCall(FamilyPerCall):
    """`httpx2.request` for each request."""

    library: ClassVar[Any] = httpx2
    errors = _ERRORS


class Httpx2ClientPerThread(TimedPerThread):
    """One client for each thread."""

    shared = Httpx2Client
    errors = Httpx2Client.errors
