"""httpx's top-level functions: every call makes a client, a TLS context and a connection."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from clientlab.clients.httpx_family import FamilyPerCall, errors_of


class HttpxPerCall(FamilyPerCall):
    """`httpx.request` for each request."""

    library: ClassVar[Any] = httpx
    errors = errors_of(httpx)
