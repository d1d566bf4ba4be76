"""httpx with one `AsyncClient`: connections are kept and used again."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from clientlab.clients.httpx_family import FamilyAsync, errors_of


class HttpxAsync(FamilyAsync):
    """One client for the event loop."""

    library: ClassVar[Any] = httpx
    errors = errors_of(httpx)
