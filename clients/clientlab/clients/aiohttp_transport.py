"""What httpx and httpx2 share on httpx-aiohttp's transport, which keeps connections in aiohttp's connector."""

from __future__ import annotations

from typing import Any, ClassVar

from clientlab.clients.aiohttp_clients import AIOHTTP_ERRORS, AiohttpSession
from clientlab.clients.client_interface import Budget, Opened
from clientlab.clients.httpx_family import FamilyAsync


class OnAiohttp(FamilyAsync):
    """One `AsyncClient` on one `ClientSession`, which is that of the lab's aiohttp client: its pool, and no cookies.

    httpx-aiohttp makes a session of its own otherwise, which stores cookies and sends a GET again.
    """

    transport: ClassVar[Any]

    def __init_subclass__(cls, library: Any, **options: Any) -> None:
        super().__init_subclass__(library, **options)
        cls.errors = (*AIOHTTP_ERRORS, *cls.errors)

    def __init__(
        self, budget: Budget, opened: Opened, *, keepalive_expiry: float | None = None, trust: str = "lab"
    ) -> None:
        super().__init__(budget, opened, keepalive_expiry=keepalive_expiry, trust=trust)

    async def open(self) -> None:
        limits, tls = self.limits(), self.tls() or self.library.create_ssl_context()
        session = AiohttpSession(self._budget, lambda: None, keepalive_timeout=limits.keepalive_expiry)
        session.trust(tls)
        transport = self.transport(verify=tls, limits=limits, client=session.new_session)
        self._client = self.made(self.library.AsyncClient, None, transport=transport)
