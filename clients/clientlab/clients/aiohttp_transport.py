"""What httpx and httpx2 share on httpx-aiohttp's transport, which keeps connections in aiohttp's connector."""

from __future__ import annotations

from typing import Any, ClassVar

from clientlab.clients.aiohttp_clients import AiohttpSession
from clientlab.clients.client_interface import Budget, Opened
from clientlab.clients.httpx_family import FamilyAsync, Made


class OnAiohttp(FamilyAsync):
    """One `AsyncClient` on httpx-aiohttp's transport."""

    transport: ClassVar[Any]

    def __init__(
        self, budget: Budget, opened: Opened, *, keepalive_expiry: float | None = None, trust: str = "lab"
    ) -> None:
        super().__init__(budget, opened, keepalive_expiry=keepalive_expiry, trust=trust)

    async def open(self) -> None:
        self._client = self.made(
            self.library.AsyncClient, None, transport=on_aiohttp(self, self.transport, self._budget)
        )


def on_aiohttp(client: Made, transport: Any, budget: Budget) -> Any:
    """A transport of the class for a client, on a `ClientSession` of the lab's aiohttp client: its pool, no cookies.

    httpx-aiohttp makes a session of its own otherwise, which stores cookies and sends a GET again.
    """
    limits, tls = client.limits(), client.tls() or client.library.create_ssl_context()
    session = AiohttpSession(budget, lambda: None, keepalive_timeout=limits.keepalive_expiry)
    session.trust(tls)
    return transport(verify=tls, limits=limits, client=session.new_session)
