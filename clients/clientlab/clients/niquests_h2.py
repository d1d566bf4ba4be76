"""niquests over HTTP/2, blocking and asyncio. By default it sends one request at a time on each connection."""

from __future__ import annotations

from typing import Any

from clientlab.clients.client_interface import Budget, Opened
from clientlab.clients.niquests_clients import NiquestsAsync, NiquestsSession
from clientlab.errors import Fault

HTTP2 = 20


def check_version(response: Any) -> None:
    """Raise Fault if the response is not HTTP/2: niquests falls back to HTTP/1.1 silently."""
    if response.http_version != HTTP2:
        raise Fault("protocol", "the server spoke HTTP/1 where HTTP/2 was asked for")


HOOKS: list[Any] = [check_version]


class NiquestsSessionH2(NiquestsSession):
    """One session, shared by all threads of the process."""

    def __init__(self, budget: Budget, opened: Opened, *, pool_connections: int = 1) -> None:
        super().__init__(budget, opened, pool_connections=pool_connections)
        self._options["disable_http2"] = False

    def open(self) -> None:
        super().open()
        self._session.hooks["response"] = HOOKS


class NiquestsAsyncH2(NiquestsAsync):
    """One session for the event loop."""

    def __init__(self, budget: Budget, opened: Opened, *, pool_connections: int = 1) -> None:
        super().__init__(budget, opened, pool_connections=pool_connections)
        self._options["disable_http2"] = False

    async def open(self) -> None:
        await super().open()
        self._session.hooks["response"] = HOOKS
