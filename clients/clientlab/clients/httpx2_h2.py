"""httpx2 over HTTP/2, blocking and asyncio: one connection carries all requests in flight."""

from __future__ import annotations

import httpx2

from clientlab.clients.httpx_family import FamilyAsync, FamilyClient

SPARE = 1
"""After a time-out, httpx2 neither uses an HTTP/2 connection again nor frees its place: a pool of one waits for ever.
With one place more, a new connection is opened, and the failed one is closed as one too many."""


class Httpx2ClientH2(FamilyClient, library=httpx2, http2=True):
    """One client, shared by all threads of the process."""

    spare = SPARE


class Httpx2AsyncH2(FamilyAsync, library=httpx2, http2=True):
    """One client for the event loop."""

    spare = SPARE
