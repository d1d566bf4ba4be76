"""httpx with one blocking `Client`: connections are kept and used again."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from clientlab.clients.httpx_family import FamilyClient, errors_of


class HttpxClient(FamilyClient):
    """One client, shared by all threads of the process."""

    library: ClassVar[Any] = httpx
    errors = errors_of(httpx)
