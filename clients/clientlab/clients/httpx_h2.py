"""httpx over HTTP/2, blocking and asyncio: one connection carries all requests in flight."""

from __future__ import annotations

from typing import ClassVar

import httpx
from h2.exceptions import H2Error  # httpx looks for h2 when a client is made; the lab has to know before

from clientlab.clients.httpx_clients import HttpxAsync, HttpxClient
from clientlab.clients.httpx_family import errors_of
from clientlab.errors import ErrorTable

_ERRORS: ErrorTable = (
    *errors_of(httpx),
    (httpx.LocalProtocolError, "protocol"),  # httpx blames the client for malformed frames of the server
    (H2Error, "protocol"),
)


class HttpxClientH2(HttpxClient):
    """One client, shared by all threads of the process."""

    errors: ClassVar[ErrorTable] = _ERRORS
    http2 = True


class HttpxAsyncH2(HttpxAsync):
    """One client for the event loop."""

    errors: ClassVar[ErrorTable] = _ERRORS
    http2 = True
