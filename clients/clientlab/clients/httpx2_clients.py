"""httpx2, Pydantic's continuation of httpx: one blocking `Client`, one `AsyncClient`, and its top-level functions."""

from __future__ import annotations

import httpx2

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient, FamilyPerCall
from clientlab.clients.per_thread import TimedPerThread


class Httpx2Client(FamilyClient, library=httpx2):
    """One client, shared by all threads of the process."""


class Httpx2Async(FamilyAsync, library=httpx2):
    """One client for the event loop."""


class Httpx2PerCall(FamilyPerCall, library=httpx2):
    """`httpx2.request` for each request."""


class Httpx2ClientPerThread(TimedPerThread):
    """One client for each thread."""

    shared = Httpx2Client
    errors = Httpx2Client.errors
