"""httpx2 over HTTP/2, blocking and asyncio: one connection carries all requests in flight."""

from __future__ import annotations

from typing import ClassVar

import httpx2
from h2.exceptions import H2Error  # httpx2 looks for h2 when a client is made; the lab has to know before

from clientlab.clients.httpx2_clients import Httpx2Async, Httpx2Client
from clientlab.clients.httpx_family import errors_of
from clientlab.errors import ErrorTable

_ERRORS: ErrorTable = (
    *errors_of(httpx2),
    (httpx2.LocalProtocolError, "protocol"),  # httpx2 blames the client for malformed frames of the server
    (H2Error, "protocol"),
)

SPARE = 1
"""After a time-out, httpx2 neither uses an HTTP/2 connection again nor frees its place: a pool of one waits for ever.
With one place more, a new connection is opened, and the failed one is closed as one too many."""


class Httpx2ClientH2(Httpx2Client):
    """One client, shared by all threads of the process."""

    errors: ClassVar[ErrorTable] = _ERRORS
    http2 = True
    spare = SPARE


class Httpx2AsyncH2(Httpx2Async):
    """One client for the event loop."""

    errors: ClassVar[ErrorTable] = _ERRORS
    http2 = True
    spare = SPARE
